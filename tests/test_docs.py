"""The docs name what there is: every method with its parameters, every flag; examples are Python."""

import ast
import re
from pathlib import Path

import pytest

from architectures import KINDS, explained, methods
from saliometer import registry

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "methods.md").read_text()
TABLES = PAGE[PAGE.index("## Gradients and paths") : PAGE.index("## Presets")]
ROWS = {
    line.split("|")[1].strip(): line for line in TABLES.splitlines() if re.match(r"\| (?!method|control)[a-z]", line)
}
TOLD_ONCE = {"output", "layer"}  # for a whole group of methods


@pytest.mark.parametrize("name", registry.methods)
def test_methods_are_named_with_their_parameters(name):
    assert name in ROWS
    parameters = {key for key in registry.methods[name].parameters if key not in TOLD_ONCE}
    assert {key for key in parameters if not re.search(rf"\b{key}\b", ROWS[name])} == set()


@pytest.mark.parametrize("name", registry.methods)
def test_defaults_are_those_of_the_code(name):
    """A parameter in a row is followed by its default, in the words of the command line."""
    told = dict(re.findall(r"(\w+)=('[^']*'|[\w.-]+)", ROWS.get(name, "")))
    for key, default in registry.methods[name].parameters.items():
        if key not in told or key == "width":  # a fraction, told as one
            continue
        value = ast.literal_eval(told[key]) if re.match(r"['\d.-]", told[key]) else told[key]
        assert value == (str(default).lower() if isinstance(default, bool) else default), key


def test_nothing_is_told_of_methods_that_are_gone():
    assert set(ROWS) == set(registry.methods)


def test_the_readme_counts_right():
    controls = sum(entry.facts.control for entry in registry.methods.values())
    assert f"{len(registry.methods) - controls} methods are built in" in (ROOT / "README.md").read_text()


def test_every_flag_has_its_meaning():
    """Every method is run, and says which flags it knows."""
    subject = KINDS["one logit"]()
    found = {flag for name in methods() for flag in explained(subject, name).flags}
    assert {"loose", "dead_cam", "flat_score"} <= found
    table = PAGE[PAGE.index("| flag |") : PAGE.index("- `facts`")]
    assert {flag for flag in found if not re.search(rf"\b{flag}\b", table)} == set()


@pytest.mark.parametrize("name", ["README.md", "docs/methods.md", "docs/metrics.md"])
def test_examples_are_python(name):
    for code in re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL):
        ast.parse(code)


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))])
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text()
    headings = {re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in text.splitlines()}
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in headings, target
        elif "://" not in target:
            assert (ROOT / page).parent.joinpath(target.partition("#")[0]).exists(), target
