"""Maps made elsewhere: read by name, judged as a method's maps are, and never explained again."""

from pathlib import Path

import numpy as np
import pytest
import torch

import saliometer
from audit_toys import network, noise, values
from saliometer.engine.audit_maps import Made
from saliometer.engine.source import of_tensors

ARRAY = np.random.default_rng(0).normal(size=(5, 8, 8)).astype(np.float32)
IDS = [f"image-{i}" for i in range(5)]


def kept(folder: Path, name: str = "maps.npz", **arrays) -> Path:
    np.savez(folder / name, **arrays)
    return folder / name


def as_given(model, images, targets):
    """The same maps, by the images they belong to."""
    known = noise()
    places = [next(i for i in range(5) if torch.equal(known[i], image)) for image in images]
    return torch.from_numpy(ARRAY)[places]


def test_maps_from_a_file_score_as_a_methods_maps_do(tmp_path):
    order = [3, 1, 4, 0, 2]
    file = kept(tmp_path, maps=ARRAY[order][:, None], ids=np.array(IDS)[order])
    found = saliometer.audit(
        network(), noise(), methods=["gradient", as_given], maps={"mine": file}, out=tmp_path / "run",
        metrics=["average_drop", "deletion(steps=4)", "completeness"],
    )  # fmt: skip
    assert not found.failed
    for metric in ("average_drop", "deletion", "completeness"):
        assert values(found, metric, "mine") == values(found, metric, "as_given")
    assert set(found.methods) == {"gradient", "as_given", "mine"}


@pytest.mark.parametrize("made", [torch.from_numpy(ARRAY).requires_grad_(), ARRAY.astype(np.float64)])
def test_maps_may_come_as_a_tensor_or_an_array(tmp_path, made):
    found = saliometer.audit(
        network(), noise(), methods=["gradient", as_given], maps={"mine": made}, metrics=["average_drop"],
        out=tmp_path / "run",
    )  # fmt: skip
    assert values(found, "average_drop", "mine") == values(found, "average_drop", "as_given")


def test_maps_that_say_which_class_they_explain_are_judged_by_no_other(tmp_path):
    predicted = network()(noise()).argmax(1).numpy()
    given = {"methods": ["gradient"], "metrics": ["average_drop"], "out": tmp_path / "run"}
    same = {"mine": kept(tmp_path, maps=ARRAY[::-1], ids=np.array(IDS[::-1]), targets=predicted[::-1])}
    found = saliometer.audit(network(), noise(), maps=same, **given)
    assert not found.failed
    assert len(values(found, "average_drop", "mine")) == 5
    other = {"other": kept(tmp_path, maps=ARRAY, targets=np.array([*predicted[:3], *(predicted[3:] + 1)]))}
    found = saliometer.audit(network(), noise(), maps=other, **given)
    said = f"maps 'other' explain class {predicted[3] + 1} of 'image-3', the audit class {predicted[3]} (2 of 5 images"
    assert said in found.failed["other"]
    assert not values(found, "average_drop", "other")


def test_their_passes_are_in_the_estimate(tmp_path):
    told = []
    found = saliometer.audit(
        network(), noise(), methods=["gradient"], controls=False, maps={"mine": kept(tmp_path, maps=ARRAY)},
        metrics=["deletion(steps=8)", "max_sensitivity(draws=3)"], out=tmp_path / "run",
        tell=lambda expected, *_: told.append(expected),
    )  # fmt: skip
    taken = sum(one["passes"] for one in found.costs().values())
    assert taken <= told[0].passes <= taken + 5  # the image's own score is known from the prediction
    assert told[0].passes_each == {"gradient": 4 + 7, "mine": 7}


def test_metrics_that_explain_again_are_left_out_and_said_on_every_call(tmp_path):
    file = kept(tmp_path, maps=ARRAY)
    given = {"methods": ["gradient"], "metrics": ["sparseness", "max_sensitivity(draws=2)", "avg_sensitivity(draws=2)"]}
    for _ in range(2):
        found = saliometer.audit(network(), noise(), maps={"mine": file}, out=tmp_path / "run", **given)
        why = "it calls the method again, and there are only maps"
        assert found.left_out == {"mine, max_sensitivity": why, "mine, avg_sensitivity": why}
        assert not found.failed
        assert not values(found, "max_sensitivity", "mine")
        assert len(values(found, "max_sensitivity", "gradient")) == 5
        assert not found.run.failures()


def test_other_maps_of_the_same_name_are_judged_anew(tmp_path):
    given = {"methods": ["gradient"], "metrics": ["sparseness"], "out": tmp_path / "run"}
    one = saliometer.audit(network(), noise(), maps={"mine": kept(tmp_path, maps=ARRAY)}, **given)
    two = saliometer.audit(network(), noise(), maps={"mine": kept(tmp_path, maps=ARRAY**3)}, **given)
    assert len(values(two, "sparseness", "mine")) == 5
    assert values(one, "sparseness", "mine") != values(two, "sparseness", "mine")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"map": ARRAY}, "holds map, wanted 'maps'"),
        ({"maps": ARRAY[:4]}, r"array of shape \(4, 8, 8\) and type float32 for 5 images"),
        ({"maps": np.stack([ARRAY] * 2, 1)}, r"one map has shape \(2, 8, 8\), wanted"),
        ({"maps": ARRAY[0]}, r"wanted \(N, H, W\) or \(N, C, H, W\) numbers"),
        ({"maps": ARRAY.astype(str)}, r"wanted \(N, H, W\) or \(N, C, H, W\) numbers"),
        ({"maps": ARRAY, "ids": np.array([*IDS[:4], "other"])}, "no map for 1 images, first 'image-4'"),
        (
            {"maps": np.concatenate((ARRAY, ARRAY[:1])), "ids": np.array([*IDS, IDS[1]])},
            "'image-1' is there more than once in ids",
        ),
        ({"maps": np.array([object()] * 5)}, "cannot read .* as npz"),
        (
            {"maps": ARRAY, "targets": np.zeros(4, int)},
            r"targets of shape \(4,\) and type int64, wanted 5 whole numbers",
        ),
        ({"maps": ARRAY, "targets": np.zeros(5)}, "type float64, wanted 5 whole numbers, the class that each map"),
    ],
)
def test_files_that_do_not_hold_the_images_maps_are_refused_in_words(tmp_path, arrays, message):
    with pytest.raises(ValueError, match=f"maps 'mine': .*{message}"):
        Made.read("mine", kept(tmp_path, **arrays), of_tensors(noise()))


def test_what_is_no_npz_is_refused_and_a_plain_npy_is_taken(tmp_path):
    with pytest.raises(ValueError, match="cannot read"):
        Made.read("mine", tmp_path / "nowhere.npz", of_tensors(noise()))
    (tmp_path / "text.npz").write_text("no maps")
    with pytest.raises(ValueError, match="cannot read"):
        Made.read("mine", tmp_path / "text.npz", of_tensors(noise()))
    np.save(tmp_path / "maps.npy", ARRAY)
    found = Made.read("mine", tmp_path / "maps.npy", of_tensors(noise()))
    assert torch.equal(
        found.maps(of_tensors(noise()).samples(1, 3, 0, torch.device("cpu"))).maps[:, 0], found.array[1:3]
    )


def test_maps_of_another_size_are_refused_before_anything_is_run(tmp_path):
    file = kept(tmp_path, maps=ARRAY[:, :4])
    with pytest.raises(ValueError, match=r"one map has shape \(4, 8\), wanted \(8, 8\) or \(3, 8, 8\): the size of"):
        saliometer.audit(network(), noise(), maps={"mine": file}, methods=["gradient"], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_name_of_ours_is_not_free(tmp_path):
    with pytest.raises(ValueError, match="'gradient' is a method of saliometer: rename yours"):
        saliometer.audit(network(), noise(), maps={"gradient": kept(tmp_path, maps=ARRAY)}, out=tmp_path / "run")
