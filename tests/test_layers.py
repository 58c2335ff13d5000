"""Imports point one way: families know the core and nothing of each other; the report knows rows."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import saliometer

SOURCE = Path(saliometer.__file__).parent
FAMILIES = ("tasks", "models", "methods", "metrics")
CORE = {
    *("fused", "graph", "types", "registry", "seeds", "maps", "perturb", "transforms", "cose", "files"),
    *("correlation", "sanity"),
}
ENGINE = {*CORE, *FAMILIES, "images", "photos", "results", "engine"}
KNOWS = {  # a part -> the parts of saliometer that it may import, besides itself
    "fused": set(),
    "seeds": {"fused"},
    "graph": {"fused"},
    "types": {"graph", "registry"},
    "registry": set(),
    "files": set(),
    "results": {"files"},
    "perturb": {"registry", "seeds", "types"},
    "maps": {"registry", "seeds", "types"},
    "transforms": {"registry", "seeds"},
    "cose": {"registry", "seeds", "judgement", "summary"},
    "correlation": set(),
    "sanity": {"registry", "seeds", "maps", "correlation", "cose", "judgement", "summary"},
    "images": {"registry", "seeds", "files"},
    "photos": set(),
    "summary": {"seeds", "results", "registry"},
    "judgement": {"seeds", "registry", "summary"},
    "identifiability": {"registry", "results", "summary"},
    **dict.fromkeys(FAMILIES, CORE),
    "tasks": {*CORE, "images", "photos"},  # photographs lie behind objects
    "engine": ENGINE | {"summary", "judgement", "identifiability", "__version__"},
    "studies": {*ENGINE, "summary", "judgement", "identifiability", "photos"},
    "report": {  # a study's figures draw what the study knows; nothing here knows a model
        *("results", "registry", "summary", "judgement", "engine.run", "engine.judged", "files", "progress", "cose"),
        *("sanity", "studies", "__version__"),
    },
}
FILES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))
HEAVY = ("typer", "rich", "jinja2", "matplotlib", "duckdb", "skimage", "sklearn")


def part_of(file: str) -> str:
    return file.removesuffix(".py").split("/")[0]


def imported(file: str) -> set[str]:
    """The modules of saliometer that a file imports, as dotted names below it; type-checking imports count too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse((SOURCE / file).read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively: say `from saliometer...`"
            parts = [alias.name for alias in node.names]
            module = node.module or ""
            inside = [name for name in parts if (SOURCE / Path(*module.split(".")[1:]) / name).exists()]
            inside += [name for name in parts if (SOURCE / Path(*module.split(".")[1:]) / f"{name}.py").exists()]
            found |= {f"{module}.{name}" for name in inside} if module.startswith("saliometer") and inside else {module}
    return {name.partition(".")[2] or "__version__" for name in found if name.split(".")[0] == "saliometer"}


def test_the_reader_of_imports_sees_what_there_is():
    assert imported("methods/smooth_grad.py") == {"registry", "types", "methods._noise", "methods._path"}
    assert imported("tasks/textbox.py") == {"registry", "seeds", "types", "tasks._scene", "tasks._backgrounds"}
    assert {"registry", "engine.answer", "maps", "types"} <= imported("engine/score.py")


@pytest.mark.parametrize("file", [file for file in FILES if part_of(file) in KNOWS])
def test_a_file_imports_only_what_its_part_may_know(file):
    part = part_of(file)
    strangers = {
        name for name in imported(file) if name.split(".")[0] not in KNOWS[part] | {part} and name not in KNOWS[part]
    }
    assert not strangers, f"{file} imports {strangers}"


@pytest.mark.parametrize("file", [file for file in FILES if part_of(file) in FAMILIES])
def test_a_file_of_a_family_shares_only_underscored_neighbours(file):
    neighbours = {name for name in imported(file) if name.startswith(part_of(file) + ".")}
    assert all(name.split(".")[1].startswith("_") for name in neighbours), f"{file} imports {neighbours}"


def test_importing_saliometer_loads_nothing_heavy():
    code = f"import sys, saliometer; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
