"""`saliometer explain` on the user's own model: the picture, the maps, the words, mistakes."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner, Result

import saliometer
from saliometer.cli import app
from saliometer.engine import forward
from saliometer.engine.class_names import class_names
from saliometer.engine.pictured import pictured
from saliometer.engine.run import opened
from saliometer.engine.source import of_tensors
from saliometer.show_explained import signed_strength

NET = """
import torch
from torch import nn

def build():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3), nn.ReLU(), nn.Flatten(), nn.Linear(5 * 12 * 12, 3)
    )

def normed():
    return nn.Sequential(nn.Flatten(), nn.LayerNorm(3 * 16 * 16), nn.Linear(3 * 16 * 16, 3))

def broken(model, images, targets):
    raise RuntimeError("no such hook")

def nothing(model, images, targets):
    return torch.zeros_like(images)
"""


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explain")
    (folder / "net.py").write_text(NET)
    (folder / "photos").mkdir()
    rng = np.random.default_rng(0)
    for name in ["a", "b", "c"]:
        Image.fromarray(rng.integers(0, 256, (20, 24, 3), dtype=np.uint8)).save(folder / "photos" / f"{name}.png")
    return folder


def given(place: Path, images: str = "photos") -> list[object]:
    model = ["--model", f"{place / 'net.py'}:build", "--images", place / images]
    return [*model, "--size", 16, "--mean", "0.5", "--std", "0.25"]


def test_several_methods_and_images_stand_side_by_side(place: Path, tmp_path: Path) -> None:
    sizes = []
    for methods in (["gradient", "grad_cam"], ["gradient", "grad_cam", "edge"]):
        words = [word for method in methods for word in ("--method", method)]
        result = call("explain", *given(place), *words, "--limit", 2, "--out", tmp_path / "new" / "seen.png")
        assert result.exit_code == 0, result.output
        assert f"seen.png (2 of 2 images): {', '.join(methods)} on build." in result.stdout
        sizes.append(Image.open(tmp_path / "new" / "seen.png").size)
    assert re.search(r"^a\.png, class [0-2]: \d+\.\d %$", result.stdout, re.MULTILINE)
    assert sizes[1][0] > sizes[0][0]
    assert sizes[1][1] == sizes[0][1]


def test_audit_scores_the_maps_it_keeps_like_the_methods_own(place: Path, tmp_path: Path) -> None:
    method = "smooth_grad(draws=2)"
    result = call(
        "explain", *given(place), "--method", method, "--out", tmp_path / "a.png", "--maps", tmp_path / "m.npz"
    )
    assert result.exit_code == 0, result.output
    words = ["--method", method, "--maps", f"mine={tmp_path / 'm.npz'}", "--metric", "deletion(steps=4)"]
    assert call("audit", *given(place), *words, "--out", tmp_path / "run").exit_code == 0
    rows = [row for row in opened(tmp_path / "run").rows().to_pylist() if row["metric"] == "deletion"]
    scores = {name: [row["value"] for row in rows if row["method"] == name] for name in (method, "mine")}
    assert len(scores["mine"]) == 3
    assert scores["mine"] == scores[method]


def test_a_map_is_the_same_alone_and_among_others_and_several_methods_get_a_file_each(
    place: Path, tmp_path: Path
) -> None:
    kept = []
    for images in ("photos", "photos/b.png"):
        words = ["--method", "smooth_grad(draws=2)", "--method", "gradient", "--target", 1]
        out = ["--out", tmp_path / "a.png", "--maps", tmp_path / "m.npz"]
        result = call("explain", *given(place, images), *words, *out)
        assert result.exit_code == 0, result.output
        assert not (tmp_path / "m.npz").exists()
        with np.load(tmp_path / "m-smooth_grad-draws=2.npz") as file:
            kept.append({name: file[name] for name in file.files})
    assert kept[0]["maps"].shape == (3, 3, 16, 16)
    assert kept[0]["ids"].tolist() == ["a.png", "b.png", "c.png"]
    assert kept[0]["targets"].tolist() == [1, 1, 1]
    np.testing.assert_allclose(kept[1]["maps"][0], kept[0]["maps"][1], atol=1e-6)


def test_a_method_that_fails_leaves_the_others_and_exit_code_1(place: Path, tmp_path: Path) -> None:
    words = ["--method", f"{place / 'net.py'}:broken", "--method", f"{place / 'net.py'}:nothing"]
    result = call("explain", *given(place), *words, "--out", tmp_path / "a.png")
    assert result.exit_code == 1
    assert "Failed: method 'broken' failed: RuntimeError: no such hook" in result.stderr
    assert "nothing on build" in result.stdout
    assert (tmp_path / "a.png").exists()


def test_a_method_that_does_not_go_with_the_network_is_named(place: Path, tmp_path: Path) -> None:
    words = given(place, "photos/a.png")
    words[1] = f"{place / 'net.py'}:normed"
    result = call("explain", *words, "--method", "lrp_epsilon", "--method", "gradient", "--out", tmp_path / "a.png")
    assert result.exit_code == 1
    assert "Failed: method 'lrp_epsilon': there is no rule for the operation 'layer_norm'" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target", 3], "--target 3: model 'build' has 3 classes, 0..2"),
        (["--target", -1], "--target -1: model 'build' has 3 classes, 0..2"),
        (["--target", "cat"], "--target cat: wanted predicted, least or the number of a class"),
        (["--setting", "simple-fr"], "--setting goes without --model: leave it out"),
        (["--sample", 0], "--sample goes without --model: leave it out"),
        (["--out", "maps.txt"], "--out maps.txt: wanted the name of a picture, such as explained.png"),
        (["--maps", "maps"], "--maps maps: wanted the name of a file that ends in .npz"),
        (["--method", "gradcam"], "there is no method 'gradcam'. Did you mean 'grad_cam'?"),
        (["--limit", 1, "--method", "deep_shap"], "'deep_shap' compares with other images, and there is only one"),
        (["--method", "oracle"], "method 'oracle' shows the truth itself"),
    ],
)
def test_a_mistake_gets_one_sentence_and_nothing_is_written(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[object], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = call("explain", *given(place), *words)
    assert result.exit_code == 2
    assert f"Error: {message}" in result.stderr or message in result.stderr.replace("Error: method ", "")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--images", "photos"], "--images goes with --model: add --model, or leave it out"),
        (["--model", "resnet18"], "--model without --images: name a picture or a folder"),
    ],
)
def test_model_and_images_go_together(words: list[str], message: str) -> None:
    result = call("explain", *words)
    assert result.exit_code == 2
    assert message in result.stderr


def test_many_images_are_drawn_by_lot_and_all_maps_are_kept_on_request() -> None:
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3)).eval().requires_grad_(False)
    images = torch.rand(10, 3, 2, 2)
    few, every = (pictured(net, of_tensors(images), ["gradient"], every=every) for every in (False, True))
    assert (len(few.ids), few.left, len(few.pixels)) == (8, 2, 8)
    assert (len(every.ids), every.left, len(every.pixels)) == (10, 0, 8)
    assert [few.ids[place] for place in few.pixels] == [every.ids[place] for place in every.pixels]
    for place, pixels in every.pixels.items():
        torch.testing.assert_close(pixels, images[place])
        torch.testing.assert_close(every.maps["gradient"][place].flatten(), net[1].weight[every.targets[place]])
    least = pictured(net, of_tensors(images), ["gradient"], target="least", every=True)
    assert least.targets.tolist() == net(images).argmin(1).tolist()


@pytest.mark.parametrize(("masks", "prepared"), [(20, False), (60, True)])
def test_many_passes_run_lean_and_give_the_same_maps(masks, prepared, monkeypatch) -> None:
    """As many as are worth the preparation: here 50 of 2 images."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 3)
    )
    images, made = torch.rand(2, 3, 8, 8), []
    monkeypatch.setattr(forward, "WORTH", {"cpu": 50 * 2 * 64})

    def noted(model, image):
        made.append(image.shape)
        return forward.forward_of(model, image)

    monkeypatch.setattr("saliometer.engine.pictured.forward_of", noted)
    found = pictured(net.eval().requires_grad_(False), of_tensors(images), [f"rise(masks={masks})"])
    assert bool(made) == prepared
    wanted = saliometer.explain(net, images, f"rise(masks={masks})", found.targets)
    torch.testing.assert_close(found.maps[f"rise(masks={masks})"].sum(1), wanted, rtol=1e-4, atol=1e-6)


def test_classes_are_called_by_name_where_the_weights_say_so() -> None:
    assert class_names("efficientnet_lite0", "efficientnet_lite0")[281] == "tabby"
    assert class_names("resnet18", "resnet18(weights=IMAGENET1K_V1)")[207] == "golden retriever"
    assert class_names("resnet18", "resnet18(weights='resnet18-f37072fd.pth')")[207] == "golden retriever"
    assert class_names("timm:resnet18", "timm:resnet18.a1_in1k")[281] == "tabby, tabby cat"
    for own in ("resnet18(weights='my.pth')", "efficientnet_lite0(weights='my.pth')", "build", "textbox:simple-fr"):
        assert class_names(own, own) == ()


def test_colours_are_signed_rooted_and_full_for_the_strongest() -> None:
    maps = torch.zeros(2, 20, 20)
    maps[:, 0, 0], maps[:, 0, 1], maps[0, 0, 2], maps[0, 1] = 1.0, -0.25, 100.0, 2.0
    shown = signed_strength(maps)
    assert shown[0, :4].tolist() == [1.0, -0.5, 1.0, 0.0]  # 100 stands alone: beyond the strongest 0.5 %
    assert not signed_strength(torch.zeros(1, 4, 4)).any()
    raised = torch.full((1, 10, 10), 5.0)
    raised[0, 0, 0] = 9.0
    assert signed_strength(raised)[0, :2].tolist() == [1.0, 0.0]  # no value is negative: the lowest is nothing
