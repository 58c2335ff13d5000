"""Rules of one's own: what follows from them, and how a rule that contradicts itself is refused, bucket by bucket."""

import itertools
import re

import pytest
import torch

from saliometer.tasks import Decided, Kind, Object, Task, anywhere, square
from saliometer.tasks import textbox as textbox_module
from saliometer.tasks._rules import called, decided, edits, roles, shown_in
from saliometer.types import ABSENT, NEITHER, PRIMARY, SECONDARY

LAMP = Object("lamp", {"red": Kind(square(5), (1, 0, 0)), "green": Kind(square(5), (0, 1, 0))})
POST = Object("post", Kind(square(7)))
BOX = Object("box", Kind(square(4)))


def lamp_decides(shown):
    """Red is 0, green is 1."""
    return Decided(int(shown["lamp"] == "green"), by="lamp") if shown["lamp"] else None


def task(rule=lamp_decides, objects=(LAMP, POST), **more) -> Task:
    return Task("mine", list(objects), {"rule": rule}, **more)


# What follows from a rule


def test_buckets_are_all_that_can_be_shown_the_first_object_changing_fastest():
    names = [called(shown) for shown in shown_in([LAMP, POST]).values()]
    assert names == ["nothing", "red lamp", "green lamp", "post", "red lamp + post", "green lamp + post"]


def test_labels_buckets_and_undefined_ones_follow_from_the_rule():
    assert {number: one.label for number, one in task().reasonings("rule").items()} == {2: 0, 3: 1, 5: 0, 6: 1}


def test_roles_follow_from_who_decides():
    shown = {"lamp": "red", "post": "post", "box": "", "other": "other"}
    said = Decided(0, by="lamp", neither=["other"])
    assert roles(shown, said) == [PRIMARY, SECONDARY, ABSENT, NEITHER]


def test_edits_change_one_object():
    buckets = shown_in([LAMP, POST])
    assert sorted(edits(buckets, 5)) == [("lamp", 4), ("lamp", 6), ("post", 2)]


def test_rare_labels_come_more_often_in_training():
    def both(shown):
        there = [name for name in shown if shown[name]]
        return Decided(1, by=there) if len(there) == 2 else Decided(0, neither=there)

    made = task(both, (POST, BOX))
    assert made.cycle("rule", "test") == (1, 2, 3, 4)
    assert made.cycle("rule", "train") == (1, 2, 3, 4, 4, 4)


def test_a_rule_s_name_is_its_setting():
    assert Task("mine", [LAMP, POST], [lamp_decides]).settings == ("lamp-decides",)
    assert Task("mine", [LAMP, POST], [lamp_decides]).told("lamp-decides") == "Red is 0, green is 1."


# TextBox keeps to the same rules


OBJECTS = [Object("text", {"A": Kind(square(9)), "B": Kind(square(8))})]
OBJECTS += [Object(name, Kind(square(5))) for name in ("box2", "box1")]


def textbox_rule(setting):
    """The rule of a TextBox setting, over the objects' names."""

    def rule(shown):
        number = 1 + ("", "A", "B").index(shown["text"]) + 3 * bool(shown["box2"]) + 6 * bool(shown["box1"])
        said = textbox_module.RULES[setting](textbox_module.BUCKETS[number])
        names = textbox_module.OBJECTS
        return said and Decided(said.label, [names[i] for i in said.primary], [names[i] for i in said.neither])

    return rule


@pytest.mark.parametrize("setting", textbox_module.SETTINGS)
def test_textbox_s_own_rules_pass_the_checks_and_give_its_buckets(setting):
    """With objects in the order text, box2, box1 the numbers are the paper's, and so are training's repeats."""
    made = Task("mine", OBJECTS, {setting: textbox_rule(setting)})
    wanted = textbox_module.reasonings(setting)
    assert {n: one.label for n, one in made.reasonings(setting).items()} == {n: r.label for n, r in wanted.items()}
    for split in ("train", "test"):
        assert made.cycle(setting, split) == textbox_module.cycle(setting, split)
    buckets = made.buckets
    for number in buckets:
        assert sorted(edits(buckets, number)) == sorted(textbox_module.edits(number))


# Rules that are refused, with the bucket's name


def refused(rule, says: str, objects=(LAMP, POST), classes: int = 2) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        Task("mine", list(objects), {"rule": rule}, classes=classes)


def test_a_primary_object_that_is_absent():
    refused(
        lambda shown: Decided(int(bool(shown["lamp"])), by="lamp"),
        "bucket 1 (nothing): 'lamp' is to decide, but it is absent",
    )


def test_a_primary_object_that_is_unknown():
    refused(lambda shown: Decided(0, by="lmap"), "bucket 1 (nothing): 'lmap' is to decide, but objects are lamp, post")


def test_an_object_that_is_both_primary_and_left_out():
    def rule(shown):
        return lamp_decides(shown) and Decided(int(shown["lamp"] == "green"), by="lamp", neither="lamp")

    refused(rule, "bucket 2 (red lamp): 'lamp' is both to decide and to be left out")


@pytest.mark.parametrize("label", [2, -1, 0.5, "1"])
def test_a_label_outside_the_classes(label):
    def rule(shown):
        return Decided(label, by="lamp") if shown["lamp"] == "green" else lamp_decides(shown)

    refused(rule, f"bucket 3 (green lamp): label {label!r}, wanted a whole number from 0 to 1")


def test_a_rule_that_gives_something_else():
    refused(lambda shown: 1, "bucket 1 (nothing): the rule gives int, wanted Decided or None")


def test_a_rule_that_is_not_deterministic():
    turn = itertools.count()

    def rule(shown):
        said = lamp_decides(shown)
        return said and Decided((said.label + next(turn)) % 2, by="lamp")

    refused(rule, "bucket 2 (red lamp): the rule says Decided(label=0")


def test_an_object_declared_primary_that_never_matters():
    def rule(shown):
        said = lamp_decides(shown)
        return Decided(said.label, by=["lamp", "post"]) if said and shown["post"] else said

    refused(rule, "bucket 5 (red lamp + post): 'post' is to decide, but no change of it alters the label in any bucket")


def test_an_object_that_matters_but_is_said_to_play_no_part():
    def rule(shown):
        return Decided(int(bool(shown["lamp"]) ^ bool(shown["post"])), by="lamp" if shown["lamp"] else ())

    refused(rule, "bucket 4 (post): 'post' is said to play no part, but with nothing the label is 0 instead of 1")


def test_a_rule_with_one_label():
    refused(lambda shown: Decided(0), "bucket 1 (nothing) and all others: labels [0]; wanted each of 2 classes")


def test_a_class_that_no_bucket_has():
    refused(lamp_decides, "none has 2", classes=3)


def test_a_rule_without_labels():
    refused(lambda shown: None, "setting 'rule': no bucket has a label")


def test_a_rule_in_which_nothing_decides():
    refused(
        lambda shown: Decided(int(bool(shown["lamp"])), neither=[n for n in shown if shown[n]]),
        "nothing decides in any bucket",
    )


def test_two_rules_of_one_name():
    with pytest.raises(ValueError, match="each with a name of its own"):
        Task("mine", [LAMP, POST], [lamp_decides, lamp_decides])


# Objects that are refused


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (Kind(square(65)), r"shape \(65, 65\), wanted \(h, w\) up to 64"),
        (Kind(torch.zeros(3, 3)), "not all 0"),
        (Kind(2 * square(3)), r"values in \[0, 1\]"),
        (Kind(torch.ones(3)), r"shape \(3,\)"),
        (Kind(square(3), (1, 2, 0)), r"colour \(1, 2, 0\)"),
        (Kind(square(5), place=lambda draws, room: anywhere(draws, (64, 64))), "whole numbers"),
        (Kind(square(5), place=lambda draws, room: draws), "whole numbers"),
    ],
)
def test_an_object_that_cannot_be_drawn(kind, says):
    with pytest.raises(ValueError, match=f"object 'thing'.*{says}"):
        Task("mine", [Object("thing", kind), LAMP], {"rule": lamp_decides})


def test_two_objects_of_one_name():
    with pytest.raises(ValueError, match="each with a name of its own"):
        Task("mine", [LAMP, LAMP], {"rule": lamp_decides})


def test_an_unknown_background_is_told_at_once():
    with pytest.raises(LookupError, match="there is no background 'blck'"):
        task(background="blck")


def test_decided_can_be_asked_by_itself():
    buckets = shown_in([LAMP, POST])
    assert list(decided("mine", lamp_decides, buckets, 2)) == [2, 3, 5, 6]
