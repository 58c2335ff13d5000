"""The benchmark on several models of a setting, and on models of other conditions."""

import json
from functools import partial

import numpy as np
import pytest
from test_shipped import kept

from saliometer.engine.bench import bench
from saliometer.engine.condition import Condition
from saliometer.engine.request import Request
from saliometer.engine.run import opened
from saliometer.engine.train import train
from saliometer.registry import Spec
from saliometer.report.facts import progress
from saliometer.summary import Scores

FEW = {"settings": ["simple-fr"], "per_bucket": 2}
NOISE = Condition("noise")


@pytest.fixture
def folder(tmp_path):
    for seed in (0, 1, 5):
        kept(tmp_path / "models", NOISE, seed)
    kept(tmp_path / "models", Condition(arch="alexnet(width=0.03)"), 0)
    return tmp_path / "models"


def models(rows) -> set[str]:
    return set(rows["model"].unique().to_pylist())


def test_every_seed_in_a_folder_is_explained_and_named_in_rows(folder, tmp_path):
    outcome = bench("gradient", models=folder, background="noise", out=tmp_path / "run", **FEW)
    rows = outcome.run.rows()
    assert models(rows) == {f"simple_cnn(background=noise,seed={seed})" for seed in (0, 1, 5)}
    for name in models(rows):
        assert str(Spec.parse(name)) == name
    wanted = {"simple-fr.noise", "simple-fr.noise.seed1", "simple-fr.noise.seed5"}
    assert set(outcome.run.manifest["fixed"]["weights"]) == set(outcome.run.manifest["models"]) == wanted
    assert progress(outcome.run).finished
    assert {estimate.count for estimate in outcome.over_models().values()} == {3}


def test_a_run_goes_on_model_by_model(folder, tmp_path):
    asked = partial(bench, "gradient", models=folder, background="noise", out=tmp_path / "run", **FEW)
    outcome = asked()
    before = outcome.run.rows()
    [lost] = (tmp_path / "run" / "rows" / "simple-fr").glob("gradient*/*.seed5.parquet")
    lost.unlink()
    assert not progress(opened(tmp_path / "run")).finished
    again = asked().run
    assert progress(again).finished
    assert str(again.rows().to_pylist()) == str(before.to_pylist())  # NaN and all


def test_one_seed_can_be_named(folder, tmp_path):
    outcome = bench("gradient", models=folder, background="noise", model_seeds=[5], out=tmp_path / "run", **FEW)
    assert models(outcome.run.rows()) == {"simple_cnn(background=noise,seed=5)"}
    assert outcome.over_models() == {}
    with pytest.raises(ValueError, match="no model of simple-fr with seed 4; there are: 0, 1, 5"):
        bench("gradient", models=folder, background="noise", model_seeds=[4], out=tmp_path / "other", **FEW)


def test_the_mean_over_models_is_that_of_runs_of_one_model_each(folder, tmp_path):
    def means(name: str, seeds: list[int]) -> np.ndarray:
        run = bench("gradient", models=folder, background="noise", model_seeds=seeds, out=tmp_path / name, **FEW).run
        scores = Scores(run.rows(), "pafl", "clean")
        return scores.means[:, scores.methods.index("gradient")]

    np.testing.assert_allclose(means("all", []), np.mean([means(str(s), [s]) for s in (0, 1, 5)], 0), rtol=1e-12)


def test_another_architecture_is_explained(folder, tmp_path):
    outcome = bench("grad_cam", models=folder, arch="alexnet(width=0.03)", out=tmp_path / "run", **FEW)
    assert models(outcome.run.rows()) == {"alexnet(seed=0,width=0.03)"}
    assert not outcome.failed


def test_maps_from_elsewhere_need_one_model_a_setting(folder, tmp_path):
    np.savez(tmp_path / "m.npz", **{"simple-fr": np.ones((24, 64, 64))})
    with pytest.raises(ValueError, match="--model-seed"):
        bench(
            "gradient", models=folder, background="noise", maps={"mine": tmp_path / "m.npz"}, out=tmp_path / "r", **FEW
        )


def test_what_is_asked_of_the_shipped_models_is_told_as_ever():
    """Earlier runs go on: nothing new stands in their request."""
    assert set(Request().told()) == {
        "settings", "per_bucket", "limit", "definitions", "region", "target", "seed", "sampler", "labelling",
    }  # fmt: skip
    told = Request(condition=NOISE, model_seeds=(1, 1)).told()
    assert (told["background"], told["model_seeds"]) == ("noise", (1,))


def test_models_can_be_trained_for_a_run_under_a_condition(tmp_path, monkeypatch):
    monkeypatch.setattr("saliometer.engine.train.PER_BUCKET_HELD_OUT", {"simple": 5})
    monkeypatch.setattr("saliometer.engine.train.PAIRS", 2)
    monkeypatch.setattr("saliometer.engine.robust.train", partial(train, limit=24, epochs=1, restarts=1))
    outcome = bench("gradient", retrain=True, background="natural", seed=2, out=tmp_path, **FEW)
    assert models(outcome.run.rows()) == {"simple_cnn(background=natural,seed=2)"}
    card = json.loads((tmp_path / "models" / "simple-fr.natural.seed2.json").read_text())
    assert card["photographs"]["test"] == 2
    assert any("few photographs" in line for line in outcome.problems())
    assert all("few photographs" in note.split("; ") for note in outcome.run.rows()["note"].to_pylist())
