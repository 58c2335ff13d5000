"""What there is: names with a line on each, for `list`, and all there is to know of one."""

import difflib
import inspect
import sys
from typing import Any

from saliometer import registry
from saliometer.registry import Entry, unknown

CATALOGUES = ("methods", "metrics", "tasks", "models", "settings")
GRADIENT, WALK, CAM, PERTURBATION, CONTROL = (
    "gradients and paths",
    "walks by rules",
    "layers (CAM)",
    "perturbation",
    "controls",
)
GROUPS = {  # of methods
    GRADIENT: "true gradients, at the image or on a way to it; any differentiable network",
    WALK: "a backward walk with a rule for each operation; refused where one has none",
    CAM: "maps of one layer, enlarged; the layer is found, or named with layer=",
    PERTURBATION: "the score of images with parts hidden; any network",
    CONTROL: "explain nothing, for comparison",
}


def groups() -> dict[str, list[str]]:
    """The names of all methods by group, quick ones first."""
    found: dict[str, list[str]] = {group: [] for group in GROUPS}
    for name, entry in sorted(registry.methods.items(), key=lambda item: item[1].facts.passes):
        found[group_of(entry)].append(name)
    return found


def group_of(entry: Entry) -> str:
    facts = entry.facts
    if facts.control:
        return CONTROL
    if facts.rules is not None:
        return WALK
    if "layer" in entry.parameters:
        return CAM
    return PERTURBATION if facts.hides else GRADIENT


def catalogue(what: str) -> list[dict[str, Any]]:
    """Names with a line on each; a single one where `what` is a name."""
    if what not in CATALOGUES:
        return [_described(*_named(what))]
    if what == "settings":
        from saliometer.engine.shipped import card
        from saliometer.tasks.textbox import RULES, SETTINGS

        return [
            {"name": name, "summary": (RULES[name].__doc__ or "").strip(), "accuracy": card(name)["accuracy"]}
            for name in SETTINGS
        ]
    kind = what.removesuffix("s")
    family = registry.families[kind]
    names = [name for some in groups().values() for name in some] if kind == "method" else list(family)
    return [_described(kind, family[name]) for name in names]


def _named(name: str) -> tuple[str, Entry]:
    known = {entry: (kind, family) for kind, family in registry.families.items() for entry in family}
    if name in known:
        kind, family = known[name]
        return kind, family[name]
    near = difflib.get_close_matches(name, known, n=1) if not difflib.get_close_matches(name, CATALOGUES) else []
    hint = f" Or the {known[near[0]][0]} '{near[0]}'?" if near else " Or the name of one thing in them."
    raise LookupError(unknown("list", name, CATALOGUES) + hint)


def _described(kind: str, entry: Entry) -> dict[str, Any]:
    told: dict[str, Any] = {"name": entry.name, "summary": entry.summary}
    facts = entry.facts
    if kind == "method":
        told |= {"group": group_of(entry), "passes": 0 if facts.control else facts.passes}
        told |= {"parameters": entry.parameters, "control": facts.control, "random": facts.random}
        told |= {"needs_references": facts.needs_references}
    if kind == "metric":
        told |= {
            "better": facts.better,
            "bounds": facts.bounds,
            "definitions": facts.definitions,
            "regions": facts.regions,
        }
    if kind == "task":
        told |= {"settings": facts.settings, "classes": facts.classes}
    return told


def print_catalogue(what: str, entries: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    if what not in CATALOGUES:
        console.print(_all_about(*_named(what)), highlight=False, soft_wrap=True)
        return
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    group = ""
    for entry in entries:
        cells = [f"[bold]{entry['name']}[/bold]", escape(entry["summary"])]
        if "better" in entry:
            cells[1] += f"[dim] {entry['better'].capitalize()} is better.[/dim]"
        if what == "methods":
            cells.insert(1, str(entry["passes"]))
            if entry["group"] != group:
                group = entry["group"]
                table.add_row(
                    f"\n[underline]{group}[/underline]", "\n[dim]passes[/dim]", f"\n[dim]{GROUPS[group]}[/dim]"
                )
        table.add_row(*cells)
    if what == "methods":
        table.columns[1].justify = "right"
    console.print(table)
    if what == "methods":
        print("\nPasses: for one image, with default parameters. `saliometer list NAME` says more of one.")


def _all_about(kind: str, entry: Entry) -> str:
    """One entry in full, with rich's markup."""
    from rich.markup import escape

    facts, lines = entry.facts, [f"[bold]{entry.name}[/bold] ({kind})"]
    source = (sys.modules[entry.function.__module__].__doc__ or "").strip()
    lines += [escape(inspect.getdoc(entry.function) or ""), "", escape(source), ""]
    said = {"group": f"{group_of(entry)}: {GROUPS[group_of(entry)]}" if kind == "method" else ""}
    said["parameters"] = ", ".join(f"{key}={_shown(value)}" for key, value in entry.parameters.items()) or "none"
    if kind == "method" and not facts.control:
        said["passes"] = f"about {facts.passes} an image" + f", set by {facts.budget}" * bool(facts.budget)
    said["needs"] = "references, other images of the data" if facts.needs_references else ""
    said["random"] = "its maps follow the seed" if facts.random else ""
    said["better"] = facts.better
    return "\n".join([*lines, *(f"{word + ':':<12}{escape(text)}" for word, text in said.items() if text)])


def _shown(value: object) -> str:
    return repr(value) if value == "" else str(value).lower() if isinstance(value, bool) else str(value)
