"""docs/tasks.md and docs/results/handmade.md say what the code does."""

import ast
import re
from pathlib import Path

from typer.main import get_command

from saliometer import registry, tasks
from saliometer.cli import app
from saliometer.engine import train, train_own
from saliometer.tasks.handmade import TASK

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "tasks.md").read_text()
RESULTS = (ROOT / "docs" / "results" / "handmade.md").read_text()


def test_examples_are_python():
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        ast.parse(code)


def test_every_task_and_setting_is_told():
    assert all(f"`{name}`" in PAGE for name in registry.tasks)
    assert all(f"`{setting}`" in PAGE for setting in TASK.settings)


def test_what_the_example_imports_is_there():
    names = re.search(r"from saliometer.tasks import (.*)", PAGE)[1].split(", ")
    assert set(names) <= set(tasks.__all__)


def test_the_bars_and_sizes_are_those_of_the_code():
    for number in (train_own.OVERALL, train.BUCKET, train.ALL_PAIRS, train.PAIR_CELL):
        assert f"{number:.2f}" in PAGE
    assert f"`{train_own.ARCH}` by default" in PAGE


def test_methods_in_the_results_are_ours_and_commands_have_these_options():
    for line in re.findall(r"^\| ([a-z_, ]+?)(?: \(.*?\))? \|", RESULTS, re.MULTILINE):
        if line != "method":
            assert [name for name in line.split(", ") if name not in registry.methods] == []
    known = {name: {o for p in command.params for o in p.opts} for name, command in get_command(app).commands.items()}
    for text in re.findall(r"saliometer (bench|train) ([^\n`]*)", PAGE + RESULTS):
        assert set(re.findall(r"--[a-z-]+", text[1])) <= known[text[0]]
