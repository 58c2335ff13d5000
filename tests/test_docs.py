"""The docs name what there is: methods, metrics and flags with their facts, tests by name; examples are Python."""

import ast
import math
import re
from fractions import Fraction
from pathlib import Path

import pytest
from PIL import Image

from architectures import KINDS, explained, methods
from saliometer import registry
from saliometer.catalogue import READS, definitions, metric_group, metric_groups
from saliometer.engine.asked import METHODS, METRICS, methods_asked
from saliometer.engine.audit import audit
from saliometer.maps import NORMALISATIONS, TIES
from saliometer.metrics._randomised import NAMED
from saliometer.photos import photographs
from saliometer.sanity.similarity import SIMILARITIES

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


METRIC_PAGE = (ROOT / "docs" / "metrics.md").read_text()
AUDIT_PAGE = (ROOT / "docs" / "audit.md").read_text()
QUANTUS_PAGE = (ROOT / "docs" / "quantus.md").read_text()
BATTERY = [name for name, entry in registry.metrics.items() if entry.facts.reads]
KNOWN = [name for name, entry in registry.metrics.items() if not (entry.facts.reads or entry.facts.pairs)]


def section(page: str, heading: str) -> str:
    """From one heading to the next of its kind."""
    return page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def cells(text: str) -> dict[str, list[str]]:
    """The rows of tables by their first cell."""
    rows = [[cell.strip() for cell in line.strip("| \n").split(" |")] for line in text.splitlines() if line[:2] == "| "]
    return {row[0]: row[1:] for row in rows}


FACTS = cells(section(METRIC_PAGE, "The battery"))
PARAMETERS = cells(section(METRIC_PAGE, "Parameters and degenerate maps"))
DEFINITIONS = section(METRIC_PAGE, "Definitions")


@pytest.mark.parametrize("name", BATTERY)
def test_a_metrics_direction_bounds_cost_and_reading_are_those_of_the_code(name):
    facts = registry.metrics[name].facts
    better, bounds, passes, reads, _ = FACTS[name]
    assert (better, reads) == (facts.better, facts.reads)
    assert bounds == " to ".join("∞" if math.isinf(edge) else f"{edge:g}" for edge in facts.bounds)
    assert int(passes.replace(",", "").split()[0]) == facts.passes
    assert ("explanations" in passes) == facts.reexplains


@pytest.mark.parametrize("name", BATTERY)
def test_a_metrics_parameters_and_degenerate_maps_are_those_of_the_code(name):
    given, *degenerate = PARAMETERS[name]
    assert tuple(degenerate) == registry.metrics[name].facts.degenerate
    told = dict(re.findall(r"(\w+)=('[^']*'|[^,]+)", given))
    defaults = registry.metrics[name].parameters
    assert set(told) == set(defaults)
    for key, default in defaults.items():
        if isinstance(default, float):
            assert float(Fraction(told[key])) == default, key
        else:
            assert told[key].strip("'") == str(default).lower(), key


def test_the_battery_is_told_in_its_groups_and_nothing_of_metrics_that_are_gone():
    assert set(PARAMETERS) - {"metric"} == set(BATTERY)
    group, held = "", {}
    for name in list(FACTS)[1:]:
        if match := re.fullmatch(r"\*\*(\w+)\*\*", name):
            group = match[1]
            assert FACTS[name][-1] == metric_groups()[group]
        elif name in registry.metrics:
            held[name] = group
    assert held == {name: metric_group(registry.metrics[name]) for name in BATTERY}


@pytest.mark.parametrize("name", BATTERY)
def test_definitions_and_parts_of_a_metric_are_told(name):
    entry = registry.metrics[name]
    assert entry.facts.descriptive or re.search(rf"^- \*\*.*\b{name}\b.*\*\*", DEFINITIONS, re.MULTILINE)
    assert [word for word in definitions(entry) if f"`{word}`" not in DEFINITIONS] == []
    parts = next((line for line in re.findall(r"- Parts are rows(?:.|\n  )*", METRIC_PAGE)), "")
    first, *rest = list(entry.facts.parts) or [""]
    assert not first or re.search(rf"`{name}\.{first}`", parts)
    assert [part for part in rest if f".{part}`" not in parts] == []


@pytest.mark.parametrize("name", KNOWN)
def test_metrics_of_known_objects_are_told_with_their_direction(name):
    table = cells(section(METRIC_PAGE, "Known objects"))
    told = {
        one: way
        for names, (ways, _) in table.items()
        for one, way in zip(names.split(", "), ways.split(", "), strict=True)
    }
    assert told[name] == registry.metrics[name].facts.better
    assert all(f"**{word}**" in METRIC_PAGE for word in definitions(registry.metrics[name]))


def test_randomisation_tests_are_told_with_their_parameters_and_what_they_can_be():
    table = cells(section(METRIC_PAGE, "Randomisation: mprt"))
    for name in ("mprt", "efficient_mprt"):
        better, given, _ = table[name]
        told = dict(re.findall(r"(\w+)=([\w.]+)", given))
        assert better == registry.metrics[name].facts.better
        assert told == {key: str(value) for key, value in registry.metrics[name].parameters.items()}
    others = {
        key: set(re.findall(r"`(\w+)`", words)) for key, words in re.findall(r"(\w+)=\w+ \((.*?)\)", table["mprt"][1])
    }
    defaults = registry.metrics["mprt"].parameters
    words = {**NAMED, "similarity": SIMILARITIES}
    assert others == {key: set(words[key]) - {defaults[key]} for key in words}
    smooth = dict(re.findall(r"(\w+)=([\w.]+)", table["smooth_mprt"][1]))
    changed = {k: v for k, v in registry.metrics["smooth_mprt"].parameters.items() if defaults.get(k) != v}
    assert smooth == {key: str(value) for key, value in changed.items()}


def test_the_stages_of_a_map_are_told():
    table = cells(section(METRIC_PAGE, "From an attribution to a map"))
    assert set(READS) <= set(table)
    assert {name.removesuffix(" (default)") for name in table if "minmax" in name} == set(NORMALISATIONS)
    assert f"{NORMALISATIONS[0]} (default)" in table
    assert all(f"`{word}`" in METRIC_PAGE for word in TIES)


def test_what_an_audit_takes_unasked_is_told():
    unasked = re.search(
        r"Unasked: the methods (.*?), the controls, and the metrics\s(.*?); with masks", AUDIT_PAGE, re.DOTALL
    )
    assert unasked is not None
    methods, metrics = (re.split(r",\s+", words) for words in unasked.groups())
    assert (tuple(methods), tuple(metrics)) == (METHODS, METRICS)


def test_the_readme_counts_metrics_right():
    judging = sum(not registry.metrics[name].facts.descriptive for name in BATTERY)
    controls = sum(method.control for method in methods_asked([], "", False))
    words = " ".join((ROOT / "README.md").read_text().split())
    assert f"{judging} metrics judge maps" in words
    assert (len(METHODS), controls, len(METRICS)) == (7, 5, 9)
    assert "takes seven usual methods, five controls and nine metrics" in words


@pytest.mark.slow
def test_the_audit_that_is_shown_says_so(tmp_path):
    """Of EfficientNet-Lite0 on the photographs of installed packages, at 64 px."""
    for name, pixels in photographs().items():
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
    found = audit("efficientnet_lite0", tmp_path, size=64, out=tmp_path / "run", device="cpu")
    for page in (AUDIT_PAGE, (ROOT / "README.md").read_text()):
        for sentence in found.verdict()[:2]:
            assert f"    {sentence}" in page
    passes, shared = (sum(one[word] for one in found.costs().values()) for word in ("passes", "passes_shared"))
    assert re.search(rf'"{passes:,.0f} passes in \d+ s; {shared:,.0f} more were shared"', AUDIT_PAGE)


def test_every_flag_of_an_audit_in_the_docs_is_one():
    from typer.main import get_command

    from saliometer.cli import app

    command = get_command(app).commands["audit"]
    known = {option for parameter in command.params for option in parameter.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", AUDIT_PAGE)) <= known


def names_of_tests(*files: str) -> set[str]:
    text = "".join((ROOT / "tests" / "metrics" / file).read_text() for file in files)
    return set(re.findall(r"^def (test_\w+)", text, re.MULTILINE))


def test_every_difference_to_quantus_has_its_test_and_every_test_its_line():
    files = sorted(path.name for path in (ROOT / "tests" / "metrics").glob("test_*.py"))
    beside = names_of_tests(*(file for file in files if file.startswith("test_quantus_")))
    beside |= {name for name in names_of_tests(*files) if "quantus" in name}
    named = set(re.findall(r"\btest_\w+(?!\.py|\w)", QUANTUS_PAGE)) - {Path(file).stem for file in files}
    assert beside - named == set()
    assert named - names_of_tests(*files) == set()
    lines = [line for line in QUANTUS_PAGE.splitlines() if line.startswith("| `")]
    assert [line for line in lines if not line.strip("| ").split(" | ")[-1].startswith("test_")] == []


@pytest.mark.parametrize(
    "name", ["README.md", *(f"docs/{name}.md" for name in ("methods", "metrics", "audit", "training"))]
)
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


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))])
def test_every_command_in_the_docs_is_one_with_options_that_it_has(page):
    from typer.main import get_command

    from saliometer.cli import app

    known = get_command(app).commands
    text = (ROOT / page).read_text()
    lines = re.findall(r"^    saliometer (.*)$", text, re.MULTILINE) + re.findall(r"`saliometer ([a-z-]+ .*?)`", text)
    for line in lines:
        words = re.split("[#;]", line)[0].split()
        taken = known[words[0]].params
        options = {option for parameter in taken for option in (*parameter.opts, *parameter.secondary_opts)}
        strange = {word.strip("[],.") for word in words if word.lstrip("[").startswith("--")} - options
        assert not strange, f"saliometer {line}"
