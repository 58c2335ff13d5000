"""Tasks by name or file: what the engine is told of each, and how a file that is no task is refused."""

import pytest

from saliometer.engine.condition import PLAIN, Condition
from saliometer.engine.request import Request
from saliometer.engine.tasks import OURS, known
from saliometer.registry import tasks

OWN = """
from saliometer.tasks import Decided, Kind, Object, Task, square


def dot(shown):
    '''1 if the dot is there.'''
    return Decided({LABEL}, by=["dot"] * bool(shown["dot"]))


TASK = Task("{NAME}", [Object("dot", Kind(square({SIDE}))), Object("box", Kind(square(9)))], [dot])
"""


def written(folder, name="mine", label='int(bool(shown["dot"]))', side=5, file="my_task.py") -> str:
    path = folder / file
    path.write_text(OWN.replace("{NAME}", name).replace("{LABEL}", label).replace("{SIDE}", str(side)))
    return str(path)


def test_every_registered_task_can_be_benched():
    assert set(OURS) == set(tasks)
    for name in OURS:
        assert known(name).settings == tasks[name].facts.settings
        assert known(name).name == name


def test_a_task_of_ones_own_is_read_from_its_file(tmp_path):
    found = known(written(tmp_path))
    assert (found.name, found.settings) == ("mine", ("dot",))
    assert found.words["buckets"] == {"1": "nothing", "2": "dot", "3": "box", "4": "dot + box"}
    assert found.words["settings"] == {"dot": "1 if the dot is there."}
    samples = found.samples("dot", count=8)
    assert samples.labels.tolist() == [0, 1] * 4


def test_its_version_follows_what_it_shows_and_not_how_it_is_written(tmp_path):
    first = known(written(tmp_path)).version
    path = tmp_path / "my_task.py"
    path.write_text(path.read_text() + "\n# a remark\n")
    assert known(str(path)).version == first
    assert known(written(tmp_path, side=6)).version != first
    assert known(written(tmp_path)).version == first


def test_an_unknown_task_is_told_what_there_is():
    with pytest.raises(LookupError, match=r"there is no task 'handmad'. Did you mean 'handmade'\?"):
        known("handmad")


def test_a_file_that_is_not_there():
    with pytest.raises(ValueError, match=r"task 'nowhere.py': cannot read the file"):
        known("nowhere.py")


def test_a_file_that_does_not_import(tmp_path):
    (tmp_path / "broken.py").write_text("import nothing_of_that_name\n")
    with pytest.raises(ValueError, match=r"does not import \(ModuleNotFoundError"):
        known(str(tmp_path / "broken.py"))


def test_a_file_without_a_task(tmp_path):
    (tmp_path / "empty.py").write_text("TASK = 3\n")
    with pytest.raises(ValueError, match=r"wanted a file that says TASK = Task\(...\), its TASK is int"):
        known(str(tmp_path / "empty.py"))


def test_an_inconsistent_rule_is_refused_with_the_bucket_s_name(tmp_path):
    with pytest.raises(
        ValueError, match=r"setting 'dot', bucket 2 \(dot\): label 7, wanted a whole number from 0 to 1"
    ):
        known(written(tmp_path, label='7 * bool(shown["dot"])'))


def test_a_name_of_ours_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is named 'textbox' like one of ours"):
        known(written(tmp_path, name="textbox"))


@pytest.mark.parametrize(
    ("sampler", "labelling", "condition", "says"),
    [
        ("authors", "paper", PLAIN, "no choice of sampler"),
        ("disjoint", "authors", PLAIN, "no choice of labelling"),
        ("disjoint", "paper", Condition("noise"), "no choice of background"),
        ("disjoint", "paper", Condition(robust=True), "no choice of robust"),
        ("disjoint", "paper", Condition(arch="alexnet"), "no choice of arch"),
    ],
)
def test_what_only_textbox_has_is_refused_for_others(sampler, labelling, condition, says):
    with pytest.raises(ValueError, match=f"task 'handmade' has {says}"):
        Request(task="handmade", sampler=sampler, labelling=labelling, condition=condition)


def test_a_request_takes_the_settings_of_its_task():
    assert Request(task="handmade").settings == ("and", "or", "xor")
    with pytest.raises(LookupError, match="there is no setting 'simple-fr'"):
        Request(("simple-fr",), task="handmade")
    assert "task" not in Request().told()  # so that earlier runs go on
    assert Request(task="handmade").told()["task"] == "handmade"
