"""What a review of the report found wrong: ties in a verdict, several models, runs with other numbers of pictures."""

import numpy as np
import pytest

from run_toys import keep_pictures, toy_audit, toy_bench
from saliometer import results
from saliometer.engine.run import Unit
from saliometer.report.merged import merged
from saliometer.report.page import book_of
from saliometer.report.pictures import NONE

FLOORS = {"random": [0.9] * 12, "edge": [0.8] * 12, "centre": [0.85] * 12}


def test_a_verdict_counts_the_ties_that_it_does_not_name(tmp_path):
    same = {f"m{i}": [0.1] * 12 for i in range(6)}
    book = book_of(toy_audit(tmp_path / "run", {"average_drop": same | FLOORS}))
    assert str(book.verdict[0]).startswith("m0, m1, m2 and 3 more hold up best")
    assert {method.rank for method in book.methods if method.name in same} == {"1="}


def test_single_images_are_means_over_models_as_the_board_is(tmp_path):
    run = toy_bench(tmp_path / "run", {"good": [0.9, 0.7], "random": [0.1, 0.1]})
    constant = {"task": "textbox", "setting": "simple-fr", "model": "other", "method": "good", "region": "box"}
    constant |= {"metric": "pafl", "definition": "clean", "target": "predicted", "condition": ""}
    block = results.block(constant, ["test-0", "test-1"], ["8", "8"], np.array([0.1, 0.3]), ["", ""])
    results.write(run.part(Unit("simple-fr", 0, 128, "seed1"), "good"), [block])
    book = book_of(run)
    head = next(head for head in book.heads if head.metric == "pafl")
    place = [method.name for method in book.methods].index("good")
    assert head.values[place] == pytest.approx([0.5, 0.5])
    assert head.cells["good"].value == pytest.approx(0.5)


def test_merged_runs_may_have_kept_other_numbers_of_pictures(tmp_path):
    few = toy_audit(tmp_path / "few", {"average_drop": {"one": [0.1] * 12, **FLOORS}})
    many = toy_audit(tmp_path / "many", {"average_drop": {"two": [0.2] * 12, **FLOORS}})
    keep_pictures(few, ["one"], 2)
    keep_pictures(many, ["two"], 6)
    pictures = book_of(merged([few, many])).pictures
    assert len(pictures.photos) == 6
    missing = [(maps[:, 0, 0] == NONE).sum() for maps in (pictures.maps["one"], pictures.maps["two"])]
    assert missing == [4, 0]
