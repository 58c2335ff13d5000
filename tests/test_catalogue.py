"""What `list` says: groups of methods, all about one, and what is nearest to a name that is none."""

import json

import pytest
from typer.testing import CliRunner, Result

from saliometer import registry
from saliometer.catalogue import CAM, CONTROL, GRADIENT, PERTURBATION, WALK, groups
from saliometer.cli import app


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
        ("pafl", ["(metric)", "higher"]),
        ("textbox", ["(task)"]),
    ],
)
def test_all_about_one(name, words):
    shown = call(name).stdout
    assert [word for word in words if word not in shown] == []
    assert json.loads(call(name, "--json").stdout)[0]["name"] == name


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
