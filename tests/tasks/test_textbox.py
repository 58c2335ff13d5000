"""TextBox: the seven settings against the protocol's table, and streams of images that never change."""

import hashlib

import pytest
import torch

from saliometer.engine.train import PER_BUCKET_TRAIN, size
from saliometer.tasks._scene import BOX1, BOX2, TEXT
from saliometer.tasks.textbox import (
    BUCKETS,
    OBJECTS,
    SETTINGS,
    VERSION,
    counterfactuals,
    cycle,
    draw,
    edits,
    label_of,
    labels_of,
    reasonings,
    textbox,
)
from saliometer.types import ABSENT, NEITHER, PRIMARY, SECONDARY

# smerf.md 2.2, cell by cell: label in the paper / in the authors' code; P, focus; S, avoid; ? is undefined.
COLUMNS = ("simple-fr", "simple-nr", "complex-fr", "complex-cr1", "complex-cr2", "complex-cr3", "complex-cr4")
TABLE = """
1|0; P -; S -|?|0; P -; S -|?|?|0/1; P -; S -|0/1; P -; S -
2|0; P -; S T|0; P T; S -|0; P -; S T|0; P T; S -|0; P T; S -|0/1; P -; S T|0/1; P -; S T
3|0; P -; S T|1; P T; S -|0; P -; S T|1; P T; S -|1; P T; S -|0/1; P -; S T|0/1; P -; S T
4|0; P -; S B2|?|0; P -; S -|0/1; P B2; S -|?|?|1/0; P B2; S -
5|0; P -; S T+B2|0; P T; S B2|0; P -; S T|0/1; P B2; S T|0; P T; S B2|0; P B2+T; S -|1/0; P B2; S T
6|0; P -; S T+B2|1; P T; S B2|0; P -; S T|0/1; P B2; S T|1; P T; S B2|1; P B2+T; S -|1/0; P B2; S T
7|1; P B1; S -|?|0; P -; S -|?|0/1; P B1; S -|1/0; P B1; S -|?
8|1; P B1; S T|0; P T; S B1|0; P -; S T|0; P T; S B1|0/1; P B1; S T|1/0; P B1; S T|0; P B1+T; S -
9|1; P B1; S T|1; P T; S B1|0; P -; S T|1; P T; S B1|0/1; P B1; S T|1/0; P B1; S T|1; P B1+T; S -
10|1; P B1; S B2|?|1; P B1+B2; S -|1/0; P B1+B2; S -|1/0; P B1+B2; S -|?|?
11|1; P B1; S T+B2|0; P T; S B1+B2|1; P B1+B2; S T|1/0; P B1+B2; S T|1/0; P B1+B2; S T|0; P B2+T; S B1|0; P B1+T; S B2
12|1; P B1; S T+B2|1; P T; S B1+B2|1; P B1+B2; S T|1/0; P B1+B2; S T|1/0; P B1+B2; S T|1; P B2+T; S B1|1; P B1+T; S B2
"""
NAMED = {"T": TEXT, "B1": BOX1, "B2": BOX2}

# smerf.md 2.2, the derived sets: buckets with a primary object, with a secondary one, with both.
SETS = {
    "simple-fr": ({7, 8, 9, 10, 11, 12}, {2, 3, 4, 5, 6, 8, 9, 10, 11, 12}, {8, 9, 10, 11, 12}),
    "simple-nr": ({2, 3, 5, 6, 8, 9, 11, 12}, {5, 6, 8, 9, 11, 12}, {5, 6, 8, 9, 11, 12}),
    "complex-fr": ({10, 11, 12}, {2, 3, 5, 6, 8, 9, 11, 12}, {11, 12}),
    "complex-cr1": ({2, 3, 4, 5, 6, 8, 9, 10, 11, 12}, {5, 6, 8, 9, 11, 12}, {5, 6, 8, 9, 11, 12}),
    "complex-cr2": ({2, 3, 5, 6, 7, 8, 9, 10, 11, 12}, {5, 6, 8, 9, 11, 12}, {5, 6, 8, 9, 11, 12}),
    "complex-cr3": ({5, 6, 7, 8, 9, 11, 12}, {2, 3, 8, 9, 11, 12}, {8, 9, 11, 12}),
    "complex-cr4": ({4, 5, 6, 8, 9, 11, 12}, {2, 3, 5, 6, 11, 12}, {5, 6, 11, 12}),
}


IMAGES = {
    "simple-fr": "96bc28309538684b",
    "simple-nr": "f246600523b74b2d",
    "complex-fr": "add610273cabc1e0",
    "complex-cr1": "92c2d152fe2505d9",
    "complex-cr2": "bab458fd479b52ca",
    "complex-cr3": "257015ddcaa2c129",
    "complex-cr4": "20016e7eb6e22a76",
}  # golden digests
SCENES = {"authors": "720713d9eb4c9ae5", "train": "d02d41db072372f6"}


def told() -> dict[tuple[str, int], tuple[int, int, set[int], set[int]] | None]:
    """(setting, bucket) -> (paper's label, authors' label, primary, secondary), or None where undefined."""
    found = {}
    for line in TABLE.strip().splitlines():
        number, *cells = (part.strip() for part in line.split("|"))
        for setting, cell in zip(COLUMNS, cells, strict=True):
            if cell == "?":
                found[setting, int(number)] = None
                continue
            label, focus, avoid = cell.split("; ")
            paper, _, authors = label.partition("/")
            primary, secondary = ({NAMED[n] for n in part[2:].split("+") if n != "-"} for part in (focus, avoid))
            found[setting, int(number)] = int(paper), int(authors or paper), primary, secondary
    return found


TOLD = told()


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_bucket_is_labelled_and_read_as_the_table_says(setting):
    for labelling, column in (("paper", 0), ("authors", 1)):
        samples = textbox(setting, count=24, labelling=labelling)
        for i, bucket in enumerate(samples.buckets):
            cell = TOLD[setting, int(bucket)]
            assert cell is not None, f"bucket {bucket} has no label in {setting}"
            assert samples.labels[i] == samples.batch.targets[i] == cell[column], f"{setting} {bucket} {labelling}"
            roles = samples.roles[i].tolist()
            assert {thing for thing in range(3) if roles[thing] == PRIMARY} == cell[2], f"{setting} {bucket}"
            assert {thing for thing in range(3) if roles[thing] == SECONDARY} == cell[3], f"{setting} {bucket}"
            shown = BUCKETS[int(bucket)].present
            assert [role == ABSENT for role in roles] == [not here for here in shown]
    assert set(samples.buckets) == {str(n) for (name, n), cell in TOLD.items() if name == setting and cell}


def test_a_lone_box_plays_no_part_in_complex_fr_alone():
    for setting in SETTINGS:
        samples = textbox(setting, count=24)
        neither = {int(b) for b, roles in zip(samples.buckets, samples.roles.tolist(), strict=True) if NEITHER in roles}
        assert neither == (set(range(4, 10)) if setting == "complex-fr" else set())


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_buckets_with_primary_and_secondary_objects_are_those_of_the_protocol(setting):
    samples = textbox(setting, count=24)
    has = {role: set() for role in (PRIMARY, SECONDARY)}
    for bucket, roles in zip(samples.buckets, samples.roles.tolist(), strict=True):
        for role, numbers in has.items():
            if role in roles:
                numbers.add(int(bucket))
    primary, secondary, both = SETS[setting]
    assert has[PRIMARY] == primary
    assert has[SECONDARY] == secondary
    assert has[PRIMARY] & has[SECONDARY] == both


def test_the_totals_are_14_and_37_primary_16_and_32_secondary_buckets():
    primary, secondary, double = ({"simple": 0, "complex": 0} for _ in range(3))
    for setting in SETTINGS:
        group = setting.split("-")[0]
        for number, said in reasonings(setting).items():
            present = {thing for thing in range(3) if BUCKETS[number].present[thing]}
            primary[group] += bool(said.primary)
            secondary[group] += bool(present - said.primary - said.neither)
            double[group] += len(said.primary) == 2
    assert primary == {"simple": 14, "complex": 37}
    assert secondary == {"simple": 16, "complex": 32}
    assert double == {"simple": 0, "complex": 17}


@pytest.mark.parametrize("setting", [name for name in SETTINGS if name.startswith("complex-cr")])
@pytest.mark.parametrize("labelling", ["paper", "authors"])
def test_conditional_settings_have_five_buckets_of_each_class(setting, labelling):
    labels = [label_of(setting, number, labelling) for number in reasonings(setting)]
    assert sorted(labels) == [0] * 5 + [1] * 5


# Streams


def same(one, other) -> bool:
    tensors = ("labels", "objects", "boxes", "roles")
    return (
        all(torch.equal(getattr(one, name), getattr(other, name)) for name in tensors)
        and torch.equal(one.batch.images, other.batch.images)
        and torch.equal(one.batch.seeds, other.batch.seeds)
        and (one.ids, one.buckets) == (other.ids, other.buckets)
    )


@pytest.mark.parametrize("setting", SETTINGS)
def test_any_stretch_of_a_stream_is_the_same_however_it_is_reached(setting):
    whole, late = textbox(setting, count=40), textbox(setting, start=25, count=5)
    assert late.ids == tuple(f"test-{i}" for i in range(25, 30))
    assert torch.equal(whole.batch.images[25:30], late.batch.images)
    assert torch.equal(whole.batch.seeds[25:30], late.batch.seeds)
    assert torch.equal(whole.boxes[25:30], late.boxes)
    assert whole.buckets[25:30] == late.buckets
    assert same(late, textbox(setting, start=25, count=5))


@pytest.mark.parametrize("sampler", ["disjoint", "authors"])
def test_images_may_be_asked_for_in_any_order(sampler):
    indices = torch.tensor([17, 3, 250_000, 3, 0])
    scene = draw("complex-fr", "train", indices, 5, sampler)
    for i, index in enumerate(indices.tolist()):
        alone = draw("complex-fr", "train", torch.tensor([index]), 5, sampler)
        assert torch.equal(alone.images()[0], scene.images()[i])
        assert alone.buckets[0] == scene.buckets[i]


def test_split_seed_and_setting_give_other_places_and_other_map_seeds():
    streams = {
        "test": textbox("simple-fr", count=120),
        "train": textbox("simple-fr", count=120, split="train"),
        "seed": textbox("simple-fr", count=120, seed=1),
        "setting": textbox("complex-fr", count=120),
    }
    seeds = torch.cat([samples.batch.seeds for samples in streams.values()])
    assert len(seeds.unique()) == len(seeds)
    places = [samples.boxes[:, TEXT, :3:2] for samples in streams.values()]
    shown = places[0].any(1)
    for name, other in zip(list(streams)[1:], places[1:], strict=True):
        # 1296 places: two independent letters meet about once in a thousand images
        assert (other[shown] == places[0][shown]).all(1).sum() <= 2, name


def test_labels_and_the_authors_sampler_leave_the_stream_of_seeds_alone():
    plain = textbox("complex-cr1", count=20)
    for params in ({"labelling": "authors"}, {"sampler": "authors"}):
        other = textbox("complex-cr1", count=20, **params)
        assert torch.equal(plain.batch.seeds, other.batch.seeds)
        assert plain.buckets == other.buckets


@pytest.mark.parametrize(
    ("setting", "per_bucket", "total"),
    [
        ("simple-fr", 2000, 24000),
        ("simple-nr", 2000, 16000),
        ("complex-fr", 2000, 36000),
        ("complex-cr3", 15000, 150000),
    ],
)
def test_training_sets_have_the_paper_s_sizes_per_bucket(setting, per_bucket, total):
    """smerf.md 2.4: Complex-FR takes three times as many images of the buckets with label 1."""
    round_ = cycle(setting, "train")
    assert size(PER_BUCKET_TRAIN, setting) == per_bucket
    assert per_bucket * len(round_) == total
    wanted = {n: 3 if setting == "complex-fr" and n in (10, 11, 12) else 1 for n in reasonings(setting)}
    assert {n: round_.count(n) for n in wanted} == wanted
    assert sorted(cycle(setting, "test")) == sorted(wanted)


def test_the_training_stream_of_complex_fr_holds_2000_and_6000():
    numbers = torch.tensor(cycle("complex-fr", "train"))
    counts = torch.bincount(numbers[torch.arange(36000) % len(numbers)], minlength=13)[1:]
    assert counts.tolist() == [2000] * 9 + [6000] * 3
    scene = draw("complex-fr", "train", torch.arange(90), 0)
    assert torch.equal(scene.buckets, numbers[torch.arange(90) % len(numbers)])


def test_images_and_truth_have_the_shapes_and_types_the_engine_counts_on():
    samples = textbox("simple-fr", count=7)
    assert samples.batch.images.shape == (7, 3, 64, 64)
    assert samples.batch.images.dtype == torch.float32
    assert samples.objects.shape == (7, 3, 64, 64)
    assert samples.objects.dtype == torch.bool
    assert samples.boxes.shape == (7, 3, 4)
    assert samples.roles.dtype == torch.int8
    assert len(samples) == len(samples.ids) == len(samples.buckets) == 7


def test_the_objects_are_the_pixels_that_are_not_black():
    samples = textbox("simple-fr", count=24)
    assert torch.equal(samples.objects.any(1), samples.batch.images[:, 0] > 0)
    assert not (samples.objects & ~samples.boxed).any()  # ink within boxes


def test_the_images_are_those_of_version_textbox_1():
    """Golden: shipped models, cards and published numbers rest on these pixels."""
    assert VERSION == "textbox-1"
    found = {setting: hashlib.sha256() for setting in SETTINGS}
    for setting, digest in found.items():
        samples = textbox(setting, count=24)
        digest.update((samples.batch.images * 255).round().byte().numpy().tobytes())
        digest.update(samples.boxes.numpy().tobytes())
        digest.update(samples.batch.seeds.numpy().tobytes())
    assert {setting: digest.hexdigest()[:16] for setting, digest in found.items()} == IMAGES


def test_the_authors_images_and_the_training_images_are_golden_too():
    scenes = {
        "authors": draw("complex-cr1", "test", torch.arange(24), 0, "authors"),
        "train": draw("complex-cr1", "train", torch.arange(24), 0),
    }
    found = {name: hashlib.sha256(scene.boxes().numpy().tobytes()).hexdigest()[:16] for name, scene in scenes.items()}
    assert found == SCENES


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"setting": "simple-f"}, "there is no setting 'simple-f'. Did you mean 'simple-fr'?"),
        ({"split": "tests"}, "there is no split 'tests'. Did you mean 'test'?"),
        ({"sampler": "author"}, "there is no sampler 'author'. Did you mean 'authors'?"),
        ({"labelling": "papers"}, "there is no labelling 'papers'. Did you mean 'paper'?"),
    ],
)
def test_an_unknown_word_is_answered_with_the_nearest(params, words):
    with pytest.raises(LookupError) as told:
        textbox(**({"setting": "simple-fr", "count": 2} | params))
    assert str(told.value).startswith(words)


# Counterfactuals


def test_an_edit_changes_one_object_and_every_single_change_is_there():
    """Against brute force over all pairs of buckets."""
    for number, bucket in BUCKETS.items():
        wanted = set()
        for other in BUCKETS.values():
            differ = [
                name
                for name, changed in zip(
                    OBJECTS,
                    (bucket.letter != other.letter, bucket.box1 != other.box1, bucket.box2 != other.box2),
                    strict=True,
                )
                if changed
            ]
            if len(differ) == 1:
                wanted.add((differ[0], other.number))
        assert set(edits(number)) == wanted
        assert len(list(edits(number))) == 4


@pytest.mark.parametrize("setting", SETTINGS)
def test_pairs_lead_to_defined_buckets_and_none_is_missing(setting):
    defined = set(reasonings(setting))
    for number in sorted(defined):
        found = [
            (thing, int(before.buckets[0]), int(after.buckets[0]))
            for thing, before, after in counterfactuals(setting, number, 2, 0)
        ]
        assert found == [(thing, number, other) for thing, other in edits(number) if other in defined]


def test_the_number_of_pairs_of_each_setting_is_that_of_its_card():
    """12 buckets x 4 edits, or what is left of them where buckets are undefined: 48, 24, 48, 34, 34, 34, 34."""
    kinds = [sum(len(list(counterfactuals(s, n, 1, 0))) for n in reasonings(s)) for s in SETTINGS]
    assert kinds == [48, 24, 48, 34, 34, 34, 34]


@pytest.mark.parametrize("setting", ["simple-fr", "simple-nr", "complex-cr1", "complex-cr4"])
def test_a_pair_is_the_same_but_for_the_edited_object(setting):
    for number in reasonings(setting):
        for thing, before, after in counterfactuals(setting, number, 8, 0):
            place = OBJECTS.index(thing)
            one, other = before.images(), after.images()
            edited = torch.zeros(8, 64, 64, dtype=torch.bool)
            for scene in (before, after):
                for i, (top, bottom, left, right) in enumerate(scene.boxes()[:, place].tolist()):
                    edited[i, top:bottom, left:right] = True
            outside = ~edited[:, None].expand_as(one)
            assert torch.equal(one[outside], other[outside])
            assert (one != other).flatten(1).any(1).all()
            kept = [k for k in range(3) if k != place]
            assert torch.equal(before.boxes()[:, kept], after.boxes()[:, kept])
            assert not before.overlapping().any()
            assert not after.overlapping().any()


def test_pairs_are_fresh_images_of_their_own_seed():
    def places(number: int, seed: int):
        return next(counterfactuals("simple-fr", number, 50, seed))[1].corners

    assert torch.equal(places(2, 0), places(2, 0))
    assert (places(2, 0) != places(2, 1)).any(2).any(1).double().mean() > 0.9
    assert (places(2, 0) != places(3, 0)).any(2).any(1).double().mean() > 0.9


def test_labels_of_a_tensor_of_buckets_are_those_of_each():
    for setting in SETTINGS:
        numbers = list(reasonings(setting))
        for labelling in ("paper", "authors"):
            found = labels_of(setting, torch.tensor(numbers), labelling).tolist()
            assert found == [TOLD[setting, n][labelling == "authors"] for n in numbers]
