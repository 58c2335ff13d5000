"""The benchmark end to end, on a few images: resuming, repeating, failing, and a user's own methods."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from saliometer import registry, results
from saliometer.engine import bench as bench_module
from saliometer.engine import costs as costs_module
from saliometer.engine import request as request_module
from saliometer.engine.bench import METRICS, bench
from saliometer.engine.request import Request
from saliometer.engine.resolve import resolve
from saliometer.engine.run import opened
from saliometer.tasks.textbox import SETTINGS

FEW = {"settings": ["simple-fr"], "per_bucket": 2, "definitions": ["clean", "authors"]}
QUICK = ["gradient", "integrated_gradients(steps=4)", "smooth_grad(draws=3)", "grad_cam"]
CONTROLS = ["centre", "edge", "fake_cam", "oracle", "random"]


@pytest.fixture
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_module, "UNIT", 8)


def table(folder: Path) -> list[dict]:
    return opened(folder).rows().to_pylist()


def same(one: list[dict], other: list[dict], tolerance: float = 0.0) -> None:
    assert len(one) == len(other) > 0
    for a, b in zip(one, other, strict=True):
        assert {k: v for k, v in a.items() if k != "value"} == {k: v for k, v in b.items() if k != "value"}
    values = [np.array([row["value"] for row in rows]) for rows in (one, other)]
    rest = np.array([row["metric"] == "residual" for row in one])  # the share of a promise that is missed: of its size
    np.testing.assert_allclose(*(some[~rest] for some in values), rtol=tolerance, atol=0)
    np.testing.assert_allclose(*(some[rest] for some in values), rtol=0, atol=tolerance)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    """The rows of an undisturbed run in units of 8."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(request_module, "UNIT", 8)
        folder = tmp_path_factory.mktemp("whole")
        bench(QUICK, out=folder, **FEW)
    return table(folder)


def test_rows_have_the_columns_and_one_value_for_each_sample_method_metric_and_definition(whole: list[dict]) -> None:
    assert tuple(whole[0]) == results.COLUMNS
    whole = [row for row in whole if row["metric"] != "residual"]
    assert len(whole) == 24 * (len(QUICK) + len(CONTROLS)) * len(METRICS) * 2
    assert {row["method"] for row in whole} == {*QUICK, *CONTROLS}
    assert {row["model"] for row in whole} == {"simple_cnn(seed=0)"}
    assert {row["bucket"] for row in whole} == {str(n) for n in range(1, 13)}
    assert {(row["task"], row["target"], row["condition"], row["region"]) for row in whole} == {
        ("textbox", "predicted", "", "box")
    }


def test_undefined_values_are_nan_and_say_why(whole: list[dict]) -> None:
    for row in whole:
        if row["bucket"] == "1" and row["metric"] != "residual":  # nothing to see
            assert np.isnan(row["value"])
            assert "no " in row["note"]
        if row["bucket"] == "2" and row["metric"] == "pafl":
            assert "no primary object" in row["note"]
        if row["bucket"] == "2" and row["metric"] == "siou":  # K is undefined without a primary object
            assert np.isnan(row["value"])
            assert "no primary object" in row["note"]


def test_the_oracle_scores_1_clean_and_the_filled_box_ceiling_under_the_authors_metric(whole: list[dict]) -> None:
    for metric in ("pafl", "piou"):
        values = [
            row["value"]
            for row in whole
            if (row["method"], row["metric"], row["definition"]) == ("oracle", metric, "clean") and row["note"] == ""
        ]
        assert len(values) == 12
        assert set(values) == {1.0}
    authors = [
        row["value"]
        for row in whole
        if (row["method"], row["metric"], row["definition"]) == ("oracle", "pafl", "authors") and row["note"] == ""
    ]
    assert np.mean(authors) == pytest.approx(0.69, abs=0.02)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_another_batch_size_gives_the_same_numbers(
    size: int, whole: list[dict], tmp_path: Path, small_units: None
) -> None:
    bench(QUICK, out=tmp_path, batch_size=size, **FEW)
    same(whole, table(tmp_path), tolerance=1e-5)


def test_the_same_split_gives_the_same_numbers_to_the_bit(whole: list[dict], tmp_path: Path, small_units: None) -> None:
    bench(QUICK, out=tmp_path, **FEW)
    same(whole, table(tmp_path))


def test_a_method_scores_the_same_alone_and_beside_others(whole: list[dict], tmp_path: Path, small_units: None) -> None:
    bench("smooth_grad(draws=3)", out=tmp_path, **FEW)
    alone = [row for row in table(tmp_path) if row["method"] == "smooth_grad(draws=3)"]
    same([row for row in whole if row["method"] == "smooth_grad(draws=3)"], alone)


def test_fewer_images_a_bucket_are_the_first_of_more(whole: list[dict], tmp_path: Path, small_units: None) -> None:
    bench("gradient", out=tmp_path, **(FEW | {"per_bucket": 1}))
    few = {
        (r["metric"], r["definition"], r["sample"]): r["value"] for r in table(tmp_path) if r["method"] == "gradient"
    }
    more = {(r["metric"], r["definition"], r["sample"]): r["value"] for r in whole if r["method"] == "gradient"}
    assert {key[2] for key in few} == {f"test-{i}" for i in range(12)}
    np.testing.assert_allclose([few[key] for key in few], [more[key] for key in few], rtol=1e-5)


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


def interrupt(function: Callable, after: int, when: str) -> Callable:
    calls = 0

    def wrapped(*args: object, **kwargs: object) -> object:
        nonlocal calls
        calls += 1
        if calls == after and when == "before":
            raise Killed
        result = function(*args, **kwargs)
        if calls == after and when == "after":
            raise Killed
        return result

    return wrapped


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("module", "name", "after"),
    [
        ("results", "write", 1),
        ("results", "write", 5),
        ("results", "write", 17),
        ("engine.bench", "attributions", 2),
        ("engine.bench", "keep_thumbnails", 3),
        ("engine.bench", "keep_scene", 1),
    ],
)
def test_a_killed_run_goes_on_and_ends_like_one_that_was_not(
    module: str, name: str, after: int, when: str, whole: list[dict], tmp_path: Path, small_units: None
) -> None:
    import importlib

    place = importlib.import_module(f"saliometer.{module}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place, name, interrupt(getattr(place, name), after, when))
        with pytest.raises(Killed):
            bench(QUICK, out=tmp_path, **FEW)
    finished = {path: path.stat().st_mtime_ns for path in tmp_path.glob("rows/**/*.parquet")}
    bench(QUICK, out=tmp_path, **FEW)
    same(whole, table(tmp_path))
    assert {path: path.stat().st_mtime_ns for path in finished} == finished  # nothing finished was computed again


def test_a_part_that_was_cut_short_is_never_read(whole: list[dict], tmp_path: Path, small_units: None) -> None:
    bench(QUICK, out=tmp_path, **FEW)
    part = next(tmp_path.glob("rows/**/*.parquet"))
    part.rename(part.with_name(part.name + ".partial"))
    part.with_name(part.name + ".partial").write_bytes(b"PAR1 half")
    bench(QUICK, out=tmp_path, **FEW)
    same(whole, table(tmp_path))


def test_a_second_call_computes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench("gradient", out=tmp_path, **FEW)
    monkeypatch.setattr(bench_module, "attributions", lambda *args: pytest.fail("computed again"))
    bench("gradient", out=tmp_path, **FEW)


def test_a_new_method_joins_a_run_without_computing_the_others_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench("gradient", out=tmp_path, **FEW)
    started: list[str] = []
    original = bench_module.attributions

    def spied(methods: list, *rest: object) -> object:
        started.extend(method.label for method in methods)
        return original(methods, *rest)

    monkeypatch.setattr(bench_module, "attributions", spied)
    bench(["gradient", "grad_cam"], out=tmp_path, **FEW)
    assert set(started) == {"grad_cam"}
    assert {"gradient", "grad_cam"} < {row["method"] for row in table(tmp_path)}


# What each method took.


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock by which every stretch of work takes one second."""
    monkeypatch.setattr(costs_module, "time", SimpleNamespace(perf_counter=itertools.count().__next__))


def costs(folder: Path, word: str) -> dict[str, float]:
    return {method: cost[word] for method, cost in opened(folder).manifest["costs"].items()}


def test_passes_of_the_methods_and_of_the_prediction_are_all_there_are(tmp_path: Path, small_units: None) -> None:
    bench(QUICK, out=tmp_path, **FEW)
    images = 24
    assert costs(tmp_path, "passes") == {
        "gradient": images,
        "integrated_gradients(steps=4)": (4 + 2) * images,  # both ends of the path, for what it promises
        "smooth_grad(draws=3)": 3 * images,
        "grad_cam": 0,  # its layer was heard in the pass of gradient, which asked first
        **dict.fromkeys(CONTROLS, 0),
    }
    assert sum(costs(tmp_path, "passes").values()) + images == opened(tmp_path).manifest["passes"]
    bench("grad_cam", target="label", out=tmp_path / "alone", **FEW)
    assert costs(tmp_path / "alone", "passes")["grad_cam"] == images == opened(tmp_path / "alone").manifest["passes"]


def test_seconds_are_those_of_a_methods_own_work_and_of_its_answers(
    tmp_path: Path, small_units: None, ticking: None
) -> None:
    bench(["gradient", edges_left], out=tmp_path, **FEW)
    units = 3
    assert costs(tmp_path, "seconds")["gradient"] == 4 * units  # called, asks, is answered, gives its maps
    assert costs(tmp_path, "seconds")["edges_left"] == units  # called; the check whether it repeats is not its own


def test_a_resumed_run_adds_what_it_did_and_a_finished_one_nothing(
    tmp_path: Path, small_units: None, ticking: None
) -> None:
    bench(QUICK, out=tmp_path / "whole", **FEW)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench_module, "attributions", interrupt(bench_module.attributions, 2, "before"))
        with pytest.raises(Killed):
            bench(QUICK, out=tmp_path / "run", **FEW)
    for word in ("seconds", "passes"):
        third = {method: cost / 3 for method, cost in costs(tmp_path / "whole", word).items()}
        assert costs(tmp_path / "run", word) == third
    for _ in range(2):
        bench(QUICK, out=tmp_path / "run", **FEW)
        assert opened(tmp_path / "run").manifest["costs"] == opened(tmp_path / "whole").manifest["costs"]


def test_only_parts_that_are_there_have_cost_something(tmp_path: Path, small_units: None) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "write", interrupt(results.write, 3, "before"))
        with pytest.raises(Killed):
            bench([raising, *QUICK], out=tmp_path, **FEW)
    assert costs(tmp_path, "passes") == {"gradient": 8, "integrated_gradients(steps=4)": 48}


def test_a_method_that_has_changed_starts_from_zero(tmp_path: Path, ticking: None) -> None:
    file = tmp_path / "mine.py"
    for power in (1, 1, 2):
        file.write_text(f"def mine(model, images, targets):\n    return images ** {power}\n")
        bench([f"{file}:mine", "gradient"], out=tmp_path / "run", **FEW)
        assert costs(tmp_path / "run", "seconds") == {"mine": 1, "gradient": 4, **dict.fromkeys(CONTROLS, 1)}


# The user's own methods.


def edges_left(model: torch.nn.Module, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Each pixel less its left neighbour."""
    return images - images.roll(1, 3)


def test_a_callable_runs_beside_every_known_method_and_the_controls(tmp_path: Path) -> None:
    chosen = [method.label for method in resolve([edges_left])]
    assert chosen[0] == "edges_left"
    quick = {name for name, e in registry.methods.items() if not e.facts.control and e.facts.passes <= 60} - {
        "cam",
        "var_grad",
        "lrp_z",
        "lrp_gamma",
        "lrp_epsilon_plus",
    }
    assert set(chosen) == {"edges_left", *quick, *CONTROLS}
    assert {"gradient", "lrp_epsilon", "grad_cam", "integrated_gradients"} < quick
    everything = {method.label for method in resolve([edges_left, "all"])}
    assert everything == {"edges_left", *registry.methods} - {"all_ones", "input"}


def test_registered_names_run_alone_with_the_controls() -> None:
    assert {method.label for method in resolve(["gradient"])} == {"gradient", *CONTROLS}
    assert {method.label for method in resolve(["gradient", edges_left])} == {"gradient", "edges_left", *CONTROLS}


def test_a_callable_that_equals_ours_gets_our_numbers(tmp_path: Path) -> None:
    def slope_times_input(
        model: torch.nn.Module, images: torch.Tensor, targets: torch.Tensor, scale: float = 1.0
    ) -> torch.Tensor:
        images.requires_grad_()
        (slope,) = torch.autograd.grad(model(images).gather(1, targets[:, None]).sum(), images)
        return scale * slope * images

    outcome = bench([slope_times_input, "input_x_gradient"], out=tmp_path, **FEW)
    assert not outcome.failed
    rows = table(tmp_path)
    rows = [r for r in rows if r["metric"] != "residual"]
    theirs = [r["value"] for r in rows if r["method"] == "slope_times_input"]
    ours = [r["value"] for r in rows if r["method"] == "input_x_gradient"]
    np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("form", ["(N, H, W)", "(N, 1, H, W)", "(N, C, H, W)"])
def test_all_three_shapes_are_taken_and_channels_are_summed(form: str, tmp_path: Path) -> None:
    def ones(model: torch.nn.Module, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        maps = images.new_tensor([2.0, -1.0, 1.0]).view(1, 3, 1, 1) * images
        return {"(N, H, W)": maps.sum(1), "(N, 1, H, W)": maps.sum(1, keepdim=True), "(N, C, H, W)": maps}[form]

    bench([ones, "gradient"], out=tmp_path, **FEW)
    values = [
        row["value"]
        for row in table(tmp_path)
        if row["method"] == "ones" and row["metric"] == "pafl" and row["bucket"] == "7" and row["definition"] == "clean"
    ]
    assert values == pytest.approx([1.0, 1.0])  # all ink of bucket 7 is Box1


def rolled(model: torch.nn.Module, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return torch.rand_like(images)


def test_a_method_that_differs_when_called_again_is_marked_random(tmp_path: Path) -> None:
    outcome = bench([rolled, edges_left, "gradient"], out=tmp_path, **FEW)
    notes = {name: {r["note"] for r in table(tmp_path) if r["method"] == name} for name in ("rolled", "edges_left")}
    assert all("random" in note.split("; ") for note in notes["rolled"])
    assert not any("random" in note for note in notes["edges_left"])
    assert any("rolled" in line and "called again" in line for line in outcome.problems())


def test_a_method_may_take_a_seed_that_is_one_int_and_the_same_when_called_again(tmp_path: Path) -> None:
    seen: list[int] = []

    def seeded(model: torch.nn.Module, images: torch.Tensor, targets: torch.Tensor, seed: int) -> torch.Tensor:
        seen.append(seed)
        return torch.rand(images.shape, generator=torch.Generator().manual_seed(seed))

    bench([seeded, "gradient"], out=tmp_path, **FEW)
    assert all(type(seed) is int and 0 <= seed < 2**31 for seed in seen)
    assert len(seen) == 2  # the second call is the check
    assert seen[0] == seen[1]
    assert not any("random" in row["note"] for row in table(tmp_path) if row["method"] == "seeded")


def test_a_changed_file_is_computed_anew_and_an_unchanged_one_is_not(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"

    def write(factor: str) -> None:
        file.write_text(f"def mine(model, images, targets):\n    return {factor} * images.flip(3)\n")

    def values() -> list[float]:
        return [row["value"] for row in table(tmp_path / "run") if row["method"] == "mine"]

    write("1")
    bench([f"{file}:mine", "gradient"], out=tmp_path / "run", **FEW)
    first = values()
    parts = {p: p.stat().st_mtime_ns for p in (tmp_path / "run").glob("rows/**/mine-*/*.parquet")}
    bench([f"{file}:mine", "gradient"], out=tmp_path / "run", **FEW)
    assert {p: p.stat().st_mtime_ns for p in parts} == parts
    file.write_text("def mine(model, images, targets):\n    return images\n")
    bench([f"{file}:mine", "gradient"], out=tmp_path / "run", **FEW)
    assert values() != first
    assert len(values()) == len(first)


# Bad methods: written down, the rest goes on.


def raising(model: torch.nn.Module, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    raise KeyError("layer9")


def flat(model: torch.nn.Module, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return torch.zeros(len(images), 64)


def constant(model: torch.nn.Module, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return torch.full_like(images, 3.0)


def broken(model: torch.nn.Module, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    maps = images.clone()
    maps[::2] = float("nan")
    return maps


def not_a_tensor(model: torch.nn.Module, images: torch.Tensor, targets: torch.Tensor) -> object:
    return [1, 2, 3]


def quitting(model: torch.nn.Module, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (raising, "KeyError: 'layer9'"),
        (
            flat,
            "method 'flat' returned shape (24, 64), wanted (24, 3, 64, 64), (24, 1, 64, 64) or (24, 64, 64): one value",
        ),
        (not_a_tensor, "method 'not_a_tensor' returned list, wanted a tensor or array of shape (24, 3, 64, 64)"),
        (quitting, "SystemExit: 3"),
    ],
)
def test_a_failing_method_is_written_down_and_the_rest_goes_on(method: Callable, message: str, tmp_path: Path) -> None:
    outcome = bench([method, "gradient"], out=tmp_path, **FEW)
    name = method.__name__
    assert message in outcome.failed[name]
    assert "Traceback" in outcome.run.failures()[name][0]
    assert {row["method"] for row in table(tmp_path)} == {"gradient", *CONTROLS}


def test_nan_maps_score_0_are_noted_and_said(tmp_path: Path) -> None:
    outcome = bench([broken, "gradient"], out=tmp_path, **FEW)
    rows = [r for r in table(tmp_path) if r["method"] == "broken" and r["metric"] == "pafl" and r["bucket"] == "7"]
    assert {(row["sample"], row["value"], row["note"]) for row in rows if row["definition"] == "clean"} == {
        ("test-6", 0.0, "nan map"),
        ("test-18", 0.0, "nan map"),
    }
    assert outcome.broken()
    assert any("broken returned NaN or infinity in" in line for line in outcome.problems())


def test_a_constant_map_scores_the_area_clean_0_for_the_authors_and_is_noted(tmp_path: Path) -> None:
    outcome = bench([constant, "gradient"], out=tmp_path, **FEW)
    rows = [r for r in table(tmp_path) if r["method"] == "constant" and r["metric"] == "pafl" and r["bucket"] == "7"]
    found = {row["definition"]: (row["value"], row["note"]) for row in rows}
    assert found == {"clean": (pytest.approx(100 / 4096), "constant map"), "authors": (0.0, "constant map")}
    assert any("constant returned a constant map for" in line for line in outcome.problems())
    assert not outcome.broken()


# Requests that cannot be met.


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        ({"methods": "gradiant"}, LookupError, "no method 'gradiant'. Did you mean 'gradient'?"),
        ({"methods": "smooth_grad(draw=3)"}, LookupError, "no parameter 'draw'. Did you mean 'draws'?"),
        ({"methods": "smooth_grad(draws=many)"}, ValueError, "draws=many is str, wanted int"),
        ({"methods": "smooth_grad(3)"}, ValueError, "wanted a name, or a name with parameters"),
        ({"settings": ["complex-cr5"]}, LookupError, "no setting 'complex-cr5'. Did you mean 'complex-cr"),
        ({"definitions": ["claen"]}, LookupError, "no definition 'claen'. Did you mean 'clean'?"),
        ({"region": "mask"}, LookupError, "no region 'mask'"),
        ({"definitions": ["authors"], "region": "ink"}, ValueError, "the authors scored bounding boxes"),
        ({"per_bucket": 0}, ValueError, "per-bucket is 0"),
        ({"device": "cuda:9"}, ValueError, "no such device: 'cuda:9'"),
        ({"device": "gpu"}, LookupError, "no device 'gpu'"),
        ({"batch_size": -3}, ValueError, "batch size is -3: wanted 1 or more"),
        ({"maps": {"gradient": "x.npz"}}, ValueError, "'gradient' is a method of saliometer: rename yours"),
        ({"methods": ":plain"}, ValueError, "wanted file.py:name or package.module:name"),
        ({"device": "mps"}, ValueError, "device 'mps' is not supported: scores need float64"),
        ({"methods": [edges_left, edges_left]}, ValueError, "two methods are called edges_left"),
        ({"methods": "nowhere.py:f"}, ValueError, "'nowhere.py' does not import (FileNotFoundError: no file"),
        ({"methods": "no_such_module:f"}, ValueError, "does not import (ModuleNotFoundError"),
        ({"methods": "math:pi"}, ValueError, "method 'math:pi' is float, wanted a callable"),
        ({"methods": "math:sinn"}, LookupError, "no callable 'sinn'. Did you mean 'sin'"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused_in_words(
    wanted: dict, error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error) as caught:
        bench(**(FEW | wanted), out=tmp_path / "run")
    assert message in str(caught.value)
    assert not (tmp_path / "run").exists()  # refused before anything was made


def test_a_file_that_does_not_import_is_named_with_its_reason(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text("import torch\nx = 1 / 0\n")
    with pytest.raises(ValueError, match=r"bad\.py' does not import \(ZeroDivisionError: division by zero\)"):
        bench(f"{file}:method", out=tmp_path / "run", **FEW)


def test_a_method_cannot_take_the_name_of_one_of_ours(tmp_path: Path) -> None:
    def gradient(model: torch.nn.Module, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return images

    with pytest.raises(ValueError, match="rename yours"):
        bench(gradient, out=tmp_path, **FEW)


def test_units_are_fixed_ranges_that_cover_all_samples() -> None:
    request = Request(per_bucket=20, limit=150)
    for setting in SETTINGS:
        units = request.units(setting)
        assert [unit.start for unit in units] == [0, 128]
        assert units[-1].stop == 150


def test_the_true_label_can_be_explained_instead_of_the_prediction(tmp_path: Path) -> None:
    bench("gradient", target="label", out=tmp_path, settings=["simple-fr"], per_bucket=1)
    assert {row["target"] for row in table(tmp_path)} == {"label"}


def test_retrained_models_are_kept_hashed_and_said_when_not_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from functools import partial

    from saliometer.engine.train import train

    monkeypatch.setattr("saliometer.engine.robust.train", partial(train, limit=240, epochs=1, restarts=1))
    outcome = bench("gradient", settings=["simple-fr"], per_bucket=1, out=tmp_path, retrain=True)
    facts = outcome.run.manifest["models"]["simple-fr"]
    assert facts["sha256"] == json.loads((tmp_path / "models" / "simple-fr.json").read_text())["sha256"]
    assert any("the model of simple-fr was not accepted" in line for line in outcome.problems())
    weights = tmp_path / "models" / "simple-fr.safetensors"
    before = weights.stat().st_mtime_ns
    bench("gradient", settings=["simple-fr"], per_bucket=1, out=tmp_path, retrain=True)
    assert weights.stat().st_mtime_ns == before  # trained once


def test_the_authors_sampler_draws_other_images(tmp_path: Path) -> None:
    for sampler in ("disjoint", "authors"):
        bench("gradient", settings=["simple-fr"], per_bucket=1, sampler=sampler, out=tmp_path / sampler)
    ours, theirs = ([row["value"] for row in table(tmp_path / name)] for name in ("disjoint", "authors"))
    assert len(ours) == len(theirs)
    assert ours != theirs


def test_a_default_folder_depends_on_what_is_measured_and_not_on_the_methods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    few = {"settings": ["simple-fr"], "per_bucket": 1}
    first = bench("gradient", **few).run.folder
    assert bench("grad_cam", **few).run.folder == first
    assert bench("gradient", **few, seed=1).run.folder != first


def test_ranks_go_by_clean_whatever_the_order_of_definitions(tmp_path: Path) -> None:
    outcome = bench("gradient", settings=["simple-fr"], per_bucket=2, definitions=["authors", "clean"], out=tmp_path)
    assert outcome.standings()[0].mean.value == 1.0  # the oracle's, which is 0.69 under the authors' metric


def hooking(model: torch.nn.Module, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    for layer in model.modules():
        if isinstance(layer, torch.nn.ReLU):
            layer.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0].clamp(min=0),))
    return images


def overwriting(model: torch.nn.Module, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    for value in model.parameters():
        value.data.mul_(0.5)
    return images


def replacing(model: torch.nn.Module, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    model.relu1 = torch.nn.Tanh()
    model.train()
    return images


@pytest.mark.parametrize("method", [hooking, overwriting, replacing])
def test_what_a_users_method_does_to_the_network_no_other_method_sees(
    method: Callable, whole: list[dict], tmp_path: Path, small_units: None
) -> None:
    bench([method, *QUICK], out=tmp_path, **FEW)
    same(whole, [row for row in table(tmp_path) if row["method"] != method.__name__])
    assert not any("random" in row["note"] for row in table(tmp_path) if row["method"] == method.__name__)


def score_of(name: str, folder: Path) -> float:
    return float(np.nanmean([r["value"] for r in table(folder) if r["method"] == name and r["metric"] == "pafl"]))


POWER = 1


def powered(model: torch.nn.Module, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return images if POWER == 1 else 1 - images


def test_a_callable_whose_values_changed_is_computed_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(inverted: bool) -> Callable:
        def m(model: object, images: torch.Tensor, targets: torch.Tensor, *, k: bool = inverted) -> torch.Tensor:
            return 1 - images if k else images

        return m

    found = []
    for inverted in (False, True):
        bench([make(inverted), powered, "gradient"], out=tmp_path, **FEW)
        found.append((score_of("m", tmp_path), score_of("powered", tmp_path)))
        monkeypatch.setitem(globals(), "POWER", 2)
    assert found[0][0] == found[0][1]
    assert found[1][0] == found[1][1] != found[0][0]


def test_any_callable_in_a_file_is_known_by_the_files_content(tmp_path: Path) -> None:
    folder = tmp_path / "my (own) files"
    folder.mkdir()
    (folder / "mine.py").write_text(
        "import functools, torch\n"
        "@torch.no_grad()\ndef bare(model, images, targets):\n"
        "    import helper\n    return helper.twice(images).numpy()\n"
        "def base(model, images, targets, k=1):\n    return k * images\n"
        "part = functools.partial(base, k=3)\n"
        "class Mine:\n    def __call__(self, model, images, targets):\n        return images\n"
        "mine = Mine()\n"
    )
    (folder / "helper.py").write_text("def twice(images):\n    return 2 * images\n")
    asked = [f"{folder / 'mine.py'}:{name}" for name in ("bare", "part", "mine", "base(k=2)")]
    assert not bench([*asked, "gradient"], out=tmp_path / "run", **FEW).failed
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "run").glob("rows/**/*.parquet")}
    bench([*asked, "gradient"], out=tmp_path / "run", **FEW)
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "run").glob("rows/**/*.parquet")} == before
    assert {"bare", "part", "mine", "base(k=2)"} < {row["method"] for row in table(tmp_path / "run")}


def test_a_mapping_names_callables(tmp_path: Path) -> None:
    outcome = bench({"left": edges_left, "right": lambda model, images, targets: images}, out=tmp_path, **FEW)
    assert {"left", "right"} < {standing.method for standing in outcome.standings()}
    assert "left" in repr(outcome)


def test_a_broken_method_of_an_earlier_call_is_not_held_against_this_one(tmp_path: Path) -> None:
    assert bench([broken, "gradient"], out=tmp_path, **FEW).broken()
    assert not bench("gradient", out=tmp_path, **FEW).broken()


def test_nan_maps_are_counted_in_images_without_a_primary_object_too(tmp_path: Path) -> None:
    def nothing_there(model: object, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        maps = images.clone()
        maps[:6] = float("nan")  # buckets 1 to 6 of simple-fr: nothing decides
        return maps

    outcome = bench([nothing_there, "gradient"], out=tmp_path, settings=["simple-fr"], per_bucket=1)
    assert any("nothing_there returned NaN or infinity in 6 maps" in line for line in outcome.problems())
    assert outcome.broken()


def test_asked_for_twice_is_asked_for_once(tmp_path: Path) -> None:
    bench("gradient", settings=["simple-fr"] * 2, definitions=["clean"] * 2, per_bucket=1, out=tmp_path)
    assert len([r for r in table(tmp_path) if r["method"] == "gradient" and r["metric"] == "pafl"]) == 12


def test_a_kill_never_leaves_a_finished_part_without_its_thumbnail(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "write", interrupt(results.write, 1, "after"))
        with pytest.raises(Killed):
            bench("gradient", out=tmp_path, **FEW)
    assert len(list(tmp_path.glob("thumbs/simple-fr/gradient-*.npz"))) == 1
