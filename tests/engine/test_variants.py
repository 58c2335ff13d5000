"""Other conditions: an equal budget of passes, other seeds of a method's own."""

from pathlib import Path

import pytest

from saliometer.engine.bench import bench
from saliometer.engine.presets import PRESETS, preset
from saliometer.engine.resolve import one_method, resolve
from saliometer.engine.variants import variants

FEW = {"settings": ["simple-fr"], "per_bucket": 1}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("smooth_grad", "smooth_grad(draws=100)"),
        ("integrated_gradients(rule=left)", "integrated_gradients(rule=left,steps=100)"),
        ("rise", "rise(masks=100)"),
        ("ig_smooth_grad", "ig_smooth_grad(draws=2)"),
        ("deep_shap", "deep_shap(count=100)"),
    ],
)
def test_a_budget_sets_the_parameter_that_costs_passes(text, wanted):
    (variant,) = variants([one_method(text)], budget=100)
    assert str(variant.spec) == wanted
    assert (variant.row, variant.condition) == (text, "budget(100)")


def test_what_has_no_such_parameter_has_no_variant():
    assert (
        variants([one_method(name) for name in ("gradient", "grad_cam", "lrp_z", "random")], budget=100, seeds=3) == []
    )


def test_other_seeds_are_for_what_draws():
    found = variants([one_method(name) for name in ("smooth_grad", "rise", "integrated_gradients")], seeds=3)
    assert [v.label for v in found] == ["smooth_grad seed(1)", "smooth_grad seed(2)", "rise seed(1)", "rise seed(2)"]
    assert [v.reseed for v in found] == [1, 2, 0, 0]
    assert str(found[3].spec) == "rise(seed=2)"


def test_conditions_stand_in_rows_and_leave_the_scores_alone(tmp_path: Path):
    plain = bench("smooth_grad(draws=3)", out=tmp_path / "plain", **FEW)
    both = bench("smooth_grad(draws=3)", budget=25, seeds=2, out=tmp_path / "both", **FEW)
    assert both.conditions() == ["budget(25)", "seed(1)"]
    assert {s.method: s.mean.value for s in plain.standings()} == {s.method: s.mean.value for s in both.standings()}
    more, other = both.under("budget(25)"), both.under("seed(1)")
    own = {s.method: s.mean.value for s in both.standings()}["smooth_grad(draws=3)"]
    assert set(more) == set(other) == {"smooth_grad(draws=3)"}
    assert len({own, more["smooth_grad(draws=3)"], other["smooth_grad(draws=3)"]}) == 3
    rerun = bench("smooth_grad(draws=25)", out=tmp_path / "rerun", **FEW)
    at_25 = {s.method: s.mean.value for s in rerun.standings()}["smooth_grad(draws=25)"]
    assert more["smooth_grad(draws=3)"] == pytest.approx(at_25)


@pytest.mark.parametrize(("budget", "seeds"), [(-1, 1), (0, 0)])
def test_what_cannot_be_done_is_refused(budget, seeds):
    with pytest.raises(ValueError, match="wanted a budget of 1 or more passes"):
        variants([], budget=budget, seeds=seeds)


def test_memory_is_kept_to_by_smaller_batches(tmp_path: Path):
    outcome = bench("gradient", memory=0.01, out=tmp_path, **FEW)
    assert outcome.run.manifest["batches"]["cpu"] < 16
    assert not outcome.failed


# Presets


@pytest.mark.parametrize("name", PRESETS)
def test_every_spec_of_a_preset_is_known(name):
    assert len(resolve(preset(name))) >= len(PRESETS[name])


def test_presets_have_the_papers_parameters():
    smerf, zhang, cose = (PRESETS[name] for name in ("smerf", "zhang", "cose"))
    assert (len(smerf), len(zhang), len(cose)) == (17, 10, 7)
    assert smerf["SG"] == "smooth_grad(draws=64,noise=0.1,scale=absolute,squared=true)"
    assert smerf["IG"] == "integrated_gradients(rule=left,steps=64)"
    assert one_method("lrp_epsilon").entry.parameters["epsilon"] == 1.0
    assert one_method("blur_ig").entry.parameters["sigma"] == 50.0
    assert one_method("guided_ig").entry.parameters == {
        "steps": 200, "fraction": 0.25, "max_dist": 0.02, "baseline": "zero", "output": "logit",
    }  # fmt: skip
    assert "output=probability" in cose["IG"]
    assert "output" not in zhang["IG"]


def test_an_unknown_preset_is_refused_by_name():
    with pytest.raises(LookupError, match=r"there is no preset 'smurf'\. Did you mean 'smerf'"):
        bench(preset="smurf")
