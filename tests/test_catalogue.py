"""What `list` says: groups of methods and metrics, all about one, and what is nearest to a name that is none."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from saliometer import registry
from saliometer.catalogue import (
    CAM,
    CONTROL,
    DESCRIPTION,
    GRADIENT,
    KNOWN,
    PERTURBATION,
    READS,
    WALK,
    catalogue,
    groups,
    metric_groups,
)
from saliometer.cli import app
from saliometer.maps import STAGES


def call(*words: str) -> Result:
    return CliRunner().invoke(app, ["list", *words], env={"COLUMNS": "80"})


def test_every_method_is_in_one_group():
    assert sorted(name for names in groups().values() for name in names) == list(registry.methods)
    for name, group in {
        "xrai": GRADIENT,
        "guided_grad_cam": WALK,
        "iba": CAM,
        "lime": PERTURBATION,
        "edge": CONTROL,
    }.items():
        assert name in groups()[group]


def test_quick_methods_come_first():
    for names in groups().values():
        costs = [registry.methods[name].facts.passes for name in names]
        assert costs == sorted(costs)


def test_the_list_fits_a_narrow_screen_and_says_what_methods_cost():
    lines = call().stdout.splitlines()
    assert max(map(len, lines)) <= 100
    assert any(line.split()[:2] == ["smooth_grad", "25"] for line in lines)
    costs = {entry["name"]: entry["passes"] for entry in json.loads(call("methods", "--json").stdout)}
    assert costs["smooth_grad"] == 25
    assert costs["random"] == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("grad_cam", ["Selvaraju et al., 2017", "layer='', relu=before", "about 1 an image"]),
        ("deep_shap", ["needs:      references", "set by count"]),
        ("lime", ["follow the seed", "kernel_width=0.25"]),
        ("pafl", ["(metric)", "higher", "saliometer bench", "defined as: clean, clean_positive, authors", "box, ink"]),
        (
            "insertion",
            [
                "group:      fidelity",
                "bounds:     0 to 1",
                "passes:     about 225 an image\n",
                "reads:      order: one value a pixel",
                "in rows:    abs_max(blur=rise,draws=1,space=normalised,steps=224,ties=seed)",
                "constant:   that of a random order",
                "one pixel:  one pixel first",
                "NaN:        invalid",
                "the image's seed",
            ],
        ),
        ("monotonicity", ["-1 to 1", "about 1,793", "defined as: nguyen, arya, arya_share, cumulative_pearson"]),
        (
            "complexity",
            ["better:     lower", "0 to no bound", "constant:   ln n", "all zero:   invalid, it has no shares"],
        ),
        ("max_sensitivity", ["about 50 an image", "which it calls again"]),
        ("average_drop", ["formula:    max(0, p(x) − p(x·m)) ⁄ p(x)\n"]),
        ("road", ["road.morf (lower), road.lerf (higher)"]),
        ("iou", ["needs:      masks or boxes"]),
        ("extent", ["description: what an image or a map is like"]),
        ("textbox", ["(task)"]),
    ],
)
def test_all_about_one(name, words):
    shown = call(name).stdout
    assert [word for word in words if word not in shown] == []
    assert json.loads(call(name, "--json").stdout)[0]["name"] == name


def test_metrics_stand_in_groups_the_battery_first_and_known_objects_last():
    told = json.loads(call("metrics", "--json").stdout)
    assert sorted(entry["name"] for entry in told) == list(registry.metrics)
    order = list(metric_groups())
    places = [order.index(entry["group"]) for entry in told]
    assert places == sorted(places)
    held = {entry["name"]: entry["group"] for entry in told}
    wanted = {
        "insertion": "fidelity", "iou": "location", "avg_sensitivity": "robustness", "complexity": "complexity",
        "completeness": "promise", "probability": DESCRIPTION, "pafl": KNOWN,
    }  # fmt: skip
    assert {name: held[name] for name in wanted} == wanted
    assert set(held.values()) == set(order)


def test_what_is_told_of_a_metric_for_machines_is_plain_json():
    def refused(word: str) -> float:
        raise AssertionError(f"{word} is no JSON")

    told = {entry["name"]: entry for entry in json.loads(call("metrics", "--json").stdout, parse_constant=refused)}
    assert told["local_accuracy"]["formula"] == "|p(x) − p(x·m)|"
    assert told["max_sensitivity"]["bounds"] == [0, None]
    assert told["max_sensitivity"]["reexplains"]
    assert told["road"]["parts"] == {"morf": "lower", "lerf": "higher"}
    assert told["average_drop"]["definition"] == "abs_max_minmax(space=raw)"
    assert told["average_drop"]["degenerate"]["constant"].startswith("invalid")
    assert told["monotonicity"]["definitions"][0] == told["monotonicity"]["parameters"]["definition"]
    assert {name: told[name]["passes"] for name in ("pafl", "sparseness", "deletion")} == {
        "pafl": 0, "sparseness": 0, "deletion": 225
    }  # fmt: skip


def test_the_list_of_metrics_fits_a_narrow_screen_with_direction_and_cost():
    lines = call("metrics").stdout.splitlines()
    assert max(map(len, lines)) <= 100
    assert any(line.split()[:3] == ["deletion", "lower", "225"] for line in lines)
    assert any(line.split()[:3] == ["robustness", "better", "passes"] for line in lines)


def test_every_stage_of_a_map_has_its_words():
    assert tuple(READS) == STAGES


@pytest.mark.parametrize("name", registry.metrics)
def test_all_about_a_metric_names_its_direction_cost_and_definitions(name):
    entry, shown = registry.metrics[name], call(name).stdout
    assert f"formula:    {entry.facts.formula}\nbetter:     {entry.facts.better}\n" in shown
    assert "bounds:" in shown
    assert "passes:" in shown
    assert [part for part in entry.facts.parts if f"{name}.{part} " not in shown] == []
    assert [words for words in entry.facts.degenerate if words not in shown] == []
    if "definition" in entry.parameters:
        assert f"defined as: {entry.parameters['definition']}, " in shown


def test_the_page_of_metrics_gives_every_formula_in_the_order_of_the_list():
    page = (Path(__file__).parents[1] / "docs" / "metrics.md").read_text()
    block = page.partition("\n## Formulas\n")[2].partition("```text\n")[2].partition("```")[0]
    told = dict(line.split(maxsplit=1) for line in block.splitlines())
    wanted = {entry["name"]: entry["formula"] for entry in catalogue("metrics")}
    assert list(told.items()) == list(wanted.items())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("method", "there is no list 'method'. Did you mean 'methods'?"),
        ("gradcam", "Or the method 'grad_cam'?"),
        ("pafll", "Or the metric 'pafl'?"),
    ],
)
def test_a_name_that_is_none_is_told_what_is_near(name, message):
    result = call(name)
    assert result.exit_code == 2
    assert message in result.stderr
