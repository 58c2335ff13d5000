"""Labels of pictures held against the classes of a model: by name where names are known, else by place."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from saliometer.engine.ready import check_labels, source_given
from saliometer.engine.source import Source
from saliometer.images import Preprocessing

NAMES = ("tench", "golden retriever", "crane", "owl", "crane")


def pictures(folder: Path, *names: str) -> Source:
    for name in names:
        (folder / name).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(folder / name / "a.png")
    return source_given(folder, None, None, Preprocessing(8, 8, (0.0,), (1.0,)), 0, "")


def checked(source: Source, target: str = "predicted") -> tuple[Source, list[str]]:
    facts = {"name": "net"}
    return check_labels(source, 5, facts, target, NAMES), facts.get("warnings", [])


def test_folders_named_as_the_models_classes_are_these(tmp_path):
    found, warned = checked(pictures(tmp_path, "Owl", "golden_retriever"), "label")
    assert dict(zip(found.ids, found.labels.tolist(), strict=True)) == {"Owl/a.png": 3, "golden_retriever/a.png": 1}
    assert found.pictures.classes == NAMES
    assert not warned
    again, warned = checked(found, "label")  # two of the names are the same, but no label is a name any more
    assert torch.equal(again.labels, found.labels)
    assert not warned


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("owl", "sparrow"), "no class of model 'net' has the name 'sparrow'"),
        (("crane", "owl"), "2 classes of model 'net' have the name 'crane'"),
        (("a", "b"), "labels count the 2 folders or names of pictures (a, b, ...), but model 'net' has 5 classes"),
    ],
)
def test_names_that_are_not_one_class_each_are_no_labels(tmp_path, names, said):
    source = pictures(tmp_path, *names)
    found, (warning,) = checked(source)
    assert found.labels is None
    assert said in warning
    with pytest.raises(ValueError, match="name folders by class number, or give labels") as caught:
        checked(source, "label")
    assert said in str(caught.value)


def test_as_many_folders_as_classes_are_counted_where_no_name_is_known(tmp_path):
    found, warned = checked(pictures(tmp_path, *"abcde"), "label")
    assert found.labels.tolist() == [0, 1, 2, 3, 4]
    assert not warned
