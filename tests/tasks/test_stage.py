"""Scenes of any objects: drawn as a slow painter would, apart from each other, the same whoever else is drawn."""

import pytest
import torch

from saliometer.seeds import forks
from saliometer.tasks import GREEN, RED, Decided, Kind, Object, Task, cross, disc, left, right, square, triangle
from saliometer.tasks._stage import Stage, placed

LAMP = Object("lamp", {"red": Kind(disc(9), RED), "green": Kind(0.5 * disc(7), GREEN)})
POST = Object("post", {"left": Kind(cross(11), place=left), "right": Kind(triangle(6), place=right)})


def lamp_decides(shown):
    return Decided(int(shown["lamp"] == "green"), by="lamp") if shown["lamp"] else None


def stripes(seeds, *, split):
    """Of a brightness that follows the image's seed."""
    level = (seeds % 100).float()[:, None, None, None] / 200
    return level.expand(-1, 3, 64, 64) * (torch.arange(64) % 2)


TASK = Task("mine", [LAMP, POST], {"lamp": lamp_decides}, background=stripes)


def test_an_image_is_its_objects_painted_over_the_background():
    """Against a painter that walks object by object."""
    stage = TASK.draw("lamp", "test", torch.arange(24), 0)
    images, boxes, ink = stage.images(), stage.boxes(), stage.ink()
    assert images.shape == (24, 3, 64, 64)
    for i in range(24):
        wanted = stripes(stage.seeds[i : i + 1], split="test")[0].clone()
        shown = TASK.buckets[int(stage.buckets[i])]
        for k, thing in enumerate((LAMP, POST)):
            if not shown[thing.name]:
                assert not boxes[i, k].any()
                assert not ink[i, k].any()
                continue
            kind = thing.every[shown[thing.name]]
            row, column = stage.corners[i, k].tolist()
            height, width = kind.size
            assert boxes[i, k].tolist() == [row, row + height, column, column + width]
            part = wanted[:, row : row + height, column : column + width]
            part += kind.shape * (torch.tensor(kind.colour)[:, None, None].float() - part)
            assert torch.equal(ink[i, k].nonzero() - torch.tensor([row, column]), kind.shape.nonzero())
        torch.testing.assert_close(images[i], wanted, rtol=0, atol=1e-6)


def test_any_part_of_a_stream_is_drawn_the_same():
    whole, part = TASK.draw("lamp", "test", torch.arange(40), 0), TASK.draw("lamp", "test", torch.arange(17, 23), 0)
    assert torch.equal(whole[slice(17, 23)].images(), part.images())


def test_places_follow_the_rule_of_the_kind():
    samples = TASK.samples("lamp", count=600)
    for bucket in TASK.reasonings("lamp"):
        column = samples.boxes[[b == str(bucket) for b in samples.buckets], 1, 2]
        shown = TASK.buckets[bucket]["post"]
        if shown == "left":
            assert column.max() < 27
            assert column.max() > 20
        if shown == "right":
            assert column.min() >= 29
            assert column.max() > 50


@pytest.mark.parametrize("gap", [0, 3])
def test_no_two_boxes_come_nearer_than_the_gap(gap):
    made = Task(
        "mine",
        [Object(name, Kind(square(18))) for name in "abc"],
        {"a": lambda s: Decided(int(bool(s["a"])), by=["a"] * bool(s["a"]))},
        gap=gap,
    )
    boxes = made.samples("a", count=400).boxes
    top, bottom, start, end = boxes.unbind(2)
    nearest = []
    for one in range(3):
        for other in range(one):
            apart = torch.stack(
                (
                    top[:, one] - bottom[:, other],
                    top[:, other] - bottom[:, one],
                    start[:, one] - end[:, other],
                    start[:, other] - end[:, one],
                )
            ).amax(0)
            both = boxes[:, one].any(1) & boxes[:, other].any(1)
            nearest.append(apart[both])
    assert torch.cat(nearest).min() == gap


def test_objects_that_cannot_lie_side_by_side_are_refused():
    big = [Object(name, Kind(square(40))) for name in "ab"]
    made = Task("mine", big, {"a": lambda s: Decided(int(bool(s["a"])), by=["a"] * bool(s["a"]))})
    with pytest.raises(ValueError, match=r"bucket 4 \(a \+ b\): after 2000 draws its objects still overlap"):
        made.samples("a", count=8)


def test_counterfactual_pairs_differ_in_one_object_alone():
    for number in TASK.reasonings("lamp"):
        for thing, before, after in TASK.counterfactuals("lamp", number, 30, 0):
            place = TASK.things.index(thing)
            other = 1 - place
            assert torch.equal(before.boxes()[:, other], after.boxes()[:, other])
            assert torch.equal(before.seeds, after.seeds)
            changed = (before.images() != after.images()).any(1)
            inside = before.ink()[:, place] | after.ink()[:, place]
            assert not (changed & ~inside).any()
            assert changed.flatten(1).any(1).all()
            assert TASK.buckets[int(before.buckets[0])][thing] != TASK.buckets[int(after.buckets[0])][thing]


def test_pairs_lead_to_every_defined_neighbour():
    found = {
        (number, int(after.buckets[0]))
        for number in TASK.reasonings("lamp")
        for _, _, after in TASK.counterfactuals("lamp", number, 2, 0)
    }
    assert (2, 3) in found  # red to green
    assert (2, 1) not in found  # no lamp: no label
    assert (2, 5) in found  # a post on the left comes in


def test_places_are_drawn_once_for_both_images_of_a_pair():
    buckets = torch.full((20,), 2)
    seeds = forks(0, torch.arange(20))
    (alone,) = placed((LAMP, POST), buckets, seeds)
    both = placed((LAMP, POST), buckets, seeds, 0, buckets)
    assert torch.equal(both[0], both[1])
    assert torch.equal(both[0], alone)
    assert isinstance(Stage((LAMP, POST), buckets, alone, seeds).images(), torch.Tensor)
