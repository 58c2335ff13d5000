"""Several runs as one: the same as if one run had held all methods, or a sentence on why not."""

from pathlib import Path

import pytest

from run_toys import toy_audit, toy_bench
from saliometer.engine.bench import bench
from saliometer.engine.run import Unit, opened
from saliometer.report.merged import differences, merged, named
from saliometer.report.page import book_of
from saliometer.summary import Scores, standings

CONTROL = {"random": [0.1, 0.2, 0.1]}
ONE = {"a": [0.8, 0.9, 0.7]}
TWO = {"b": [0.3, 0.2, 0.4]}


def ranked(run):
    controls = [name for name, facts in run.manifest["methods"].items() if facts["control"]]
    return standings(Scores(run.rows(), "pafl", "clean"), controls)


def test_two_runs_rank_as_one_run_of_all_methods(tmp_path: Path) -> None:
    whole = toy_bench(tmp_path / "whole", ONE | TWO | CONTROL)
    both = merged([toy_bench(tmp_path / "one", ONE | CONTROL), toy_bench(tmp_path / "two", TWO | CONTROL)])
    assert ranked(both) == ranked(whole)
    assert set(both.manifest["methods"]) == {"a", "b", "random"}
    assert len(both.rows()) == len(whole.rows())  # random, which both hold, counts once
    assert both.folder == tmp_path / "one"


def test_a_merged_benchmark_has_the_book_of_one(tmp_path: Path) -> None:
    """With pictures and costs, from models."""
    few = {"settings": ["simple-fr"], "per_bucket": 2}
    runs = [bench([m], **few, out=tmp_path / m).run for m in ("gradient", "grad_cam")]
    whole = book_of(bench(["gradient", "grad_cam"], **few, out=tmp_path / "whole").run)
    book = named(book_of(merged(runs)), runs)
    assert book.methods == whole.methods
    assert [head.cells for head in book.heads] == [head.cells for head in whole.heads]
    assert list(book.verdict) == list(whole.verdict)
    assert book.banner == ""
    assert book.pictures is not None
    assert whole.pictures is not None
    assert set(book.pictures.maps) == set(whole.pictures.maps)
    for method, maps in whole.pictures.maps.items():
        assert (book.pictures.maps[method] == maps).all()
    assert book.name == "gradient + grad_cam"
    assert dict(book.provenance)["Folder"] == [str(tmp_path / "gradient"), str(tmp_path / "grad_cam")]


def test_one_run_stays_itself(tmp_path: Path) -> None:
    run = toy_bench(tmp_path / "one", ONE)
    assert merged([run]) is run


def test_a_method_of_both_comes_from_the_first_unless_the_other_got_further(tmp_path: Path) -> None:
    first = toy_bench(tmp_path / "first", {"a": [0.1] * 3, "b": [0.1] * 3}, scored=["a"])
    second = toy_bench(tmp_path / "second", {"a": [0.9] * 3, "b": [0.9] * 3})
    found = {s.method: s.mean.value for s in ranked(merged([first, second]))}
    assert found == pytest.approx({"a": 0.1, "b": 0.9})


def test_failures_come_from_the_run_that_owns_the_method(tmp_path: Path) -> None:
    runs = [toy_bench(tmp_path / name, values) for name, values in (("one", ONE | CONTROL), ("two", TWO | CONTROL))]
    for run, method in zip(runs, "ab", strict=True):
        path = run.failure(Unit("simple-fr", 128, 256), method)
        path.parent.mkdir(parents=True)
        path.write_text(f"ValueError: {method}")
    path = runs[1].failure(Unit("simple-fr", 128, 256), "random")  # the first run's random counts, which did not fail
    path.parent.mkdir(parents=True)
    path.write_text("ValueError: random")
    assert merged(runs).failures() == {"a": ["ValueError: a"], "b": ["ValueError: b"]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 1}, "seed 0 and 1"),
        ({"target": "label"}, 'target "predicted" and "label"'),
        ({"definitions": ["authors"]}, 'definitions ["clean"] and ["authors"]'),
        ({"weights": "1"}, 'weights {"simple-fr": "0"} and {"simple-fr": "1"}'),
        ({"per_bucket": 5}, "per_bucket 3 and 5"),
    ],
)
def test_runs_that_measured_other_things_are_refused_with_what_differs(tmp_path: Path, change, said) -> None:
    one, two = toy_bench(tmp_path / "one", ONE), toy_bench(tmp_path / "two", TWO, **change)
    with pytest.raises(ValueError, match="did not measure the same") as error:
        merged([one, two])
    assert said in str(error.value)
    assert f"`saliometer report {one.folder} --compare {two.folder}`" in str(error.value)


def test_an_audit_and_a_benchmark_do_not_mix(tmp_path: Path) -> None:
    one, two = toy_bench(tmp_path / "one", ONE), toy_audit(tmp_path / "two", {"deletion": TWO})
    with pytest.raises(ValueError, match=r"is of kind bench and '.*two' of kind audit: they share no scoreboard"):
        merged([one, two])


def test_audits_of_the_same_images_are_merged_and_of_others_refused(tmp_path: Path) -> None:
    one = toy_audit(tmp_path / "one", {"deletion": ONE | CONTROL})
    two = toy_audit(tmp_path / "two", {"deletion": TWO | CONTROL}, pictures=9)  # changes no number
    book = book_of(merged([one, two]))
    assert {head.metric: set(head.cells) for head in book.heads} == {"deletion": {"a", "b", "random"}}
    assert book.heads[0].cells["b"].value == pytest.approx(0.3)
    other = toy_audit(tmp_path / "other", {"deletion": TWO}, images="1")
    with pytest.raises(ValueError, match="""images' contents "0" and "1\""""):
        merged([one, other])


def test_retrained_models_are_told_apart_by_their_weights(tmp_path: Path) -> None:
    one, two = (toy_bench(tmp_path / name, ONE, weights="retrained") for name in ("one", "two"))
    assert differences(one, two) == []
    two.manifest["models"]["simple-fr"]["sha256"] = "2"
    assert differences(one, two) == ["the models of simple-fr were trained for the runs, with other weights"]


def test_one_name_cannot_stand_for_two_methods(tmp_path: Path) -> None:
    one, two = toy_bench(tmp_path / "one", ONE), toy_bench(tmp_path / "two", ONE, keys={"a": "1" * 64})
    with pytest.raises(ValueError, match=r"the method 'a' is not the same in .*--compare"):
        merged([one, two])


def test_the_folders_are_left_as_they_were(tmp_path: Path) -> None:
    runs = [toy_bench(tmp_path / "one", ONE), toy_bench(tmp_path / "two", TWO)]
    before = [opened(run.folder).manifest for run in runs]
    merged(runs).rows()
    assert [opened(run.folder).manifest for run in runs] == before
    assert set(runs[0].manifest["methods"]) == {"a"}
