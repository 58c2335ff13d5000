"""What there is: names with a line on each, for `list`, and all there is to know of one."""

import difflib
import inspect
import math
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
DESCRIPTION, KNOWN = "description", "known objects"
METRIC_GROUPS = {  # beside the kinds of the battery
    DESCRIPTION: "what an image or a map is like, not how good",
    KNOWN: "for `saliometer bench`, where it is known which objects decide",
}
READS = {  # maps.STAGES in words
    "scaled": "one value a pixel in [0, 1], by the map's normalisation",
    "order": "one value a pixel before scaling, the highest of its channels",
    "signed": "the sum over channels, sign kept",
    "attribution": "every channel as the method gave it",
}
MAPS = ("constant", "all zero", "one pixel")  # what facts.degenerate tells of


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


def metric_groups() -> dict[str, str]:
    """The groups of metrics with a line on each: the battery's kinds, then what is beside it."""
    from saliometer.judgement import KINDS

    return KINDS | METRIC_GROUPS


def metric_group(entry: Entry) -> str:
    from saliometer.judgement import kind_of

    if not (entry.facts.reads or entry.facts.pairs):
        return KNOWN
    return DESCRIPTION if entry.facts.descriptive else kind_of(entry.name)


def definitions(entry: Entry) -> tuple[str, ...]:
    """The named definitions of a metric, the default first."""
    if entry.facts.randomises:
        from saliometer.sanity.similarity import SIMILARITIES

        return SIMILARITIES if "similarity" in entry.parameters else ("entropy",)
    if entry.facts.pairs:
        return tuple(sys.modules[entry.function.__module__].MODES)
    if not entry.facts.reads:
        return entry.facts.definitions
    held: tuple[str, ...] = getattr(sys.modules[entry.function.__module__], "DEFINITIONS", ())
    return held if "definition" in entry.parameters else ()


def definition_in_rows(entry: Entry) -> str:
    """What stands in the rows of a battery metric asked for by its bare name."""
    from saliometer.engine.battery import Measure

    return Measure.parse(entry.name).definition


def passes(entry: Entry) -> int:
    """For one image by default; metrics of known objects look at the map alone, controls at no model."""
    free = entry.facts.control or (entry.facts.better and not (entry.facts.reads or entry.facts.pairs))
    return 0 if free else entry.facts.passes


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
    names = list(family)
    if kind == "method":
        names = [name for some in groups().values() for name in some]
    if kind == "metric":
        order = list(metric_groups())
        names.sort(key=lambda name: order.index(metric_group(family[name])))
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
        told |= {"group": group_of(entry), "passes": passes(entry)}
        told |= {"parameters": entry.parameters, "control": facts.control, "random": facts.random}
        told |= {"needs_references": facts.needs_references}
    if kind == "metric":
        told |= {
            "group": metric_group(entry),
            "formula": facts.formula,
            "better": facts.better,
            "bounds": [None if math.isinf(edge) else edge for edge in facts.bounds],
            "passes": passes(entry),
            "reads": facts.reads,
            "parameters": entry.parameters,
            "definitions": definitions(entry),
            "definition": definition_in_rows(entry) if facts.reads or facts.pairs else definitions(entry)[0],
            "regions": facts.regions,
            "parts": dict(facts.parts),
            "random": facts.random,
            "reexplains": facts.reexplains,
            "needs_truth": facts.needs_truth,
            "degenerate": dict(zip(MAPS, facts.degenerate, strict=True)) if facts.reads else {},
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
    grouped, group = what in ("methods", "metrics"), ""
    lines = GROUPS if what == "methods" else metric_groups()
    for entry in entries:
        if grouped and entry["group"] != group:
            group = entry["group"]
            heads = ["better"] * (what == "metrics") + ["passes"]
            table.add_row(
                f"\n[underline]{group}[/underline]",
                *(f"\n[dim]{head}[/dim]" for head in heads),
                f"\n[dim]{escape(lines[group])}[/dim]",
            )
        cells = [entry["better"]] if what == "metrics" else []
        cells += [f"{entry['passes']:,}"] if grouped else []
        table.add_row(f"[bold]{entry['name']}[/bold]", *cells, escape(entry["summary"]))
    if grouped:
        table.columns[-2].justify = "right"
    console.print(table)
    if grouped:
        print("\nPasses: for one image, with default parameters. `saliometer list NAME` says more of one.")
    if what == "metrics":
        print("Metrics of robustness call the method again: they count as if it took one pass.")


def _all_about(kind: str, entry: Entry) -> str:
    """One entry in full, with rich's markup."""
    from rich.markup import escape

    facts, lines = entry.facts, [f"[bold]{entry.name}[/bold] ({kind})"]
    source = (sys.modules[entry.function.__module__].__doc__ or "").strip()
    lines += [escape(inspect.getdoc(entry.function) or ""), "", escape(source), ""]
    group = group_of(entry) if kind == "method" else metric_group(entry) if kind == "metric" else ""
    said = {"group": f"{group}: {(GROUPS | metric_groups())[group]}" if group else ""}
    said["parameters"] = ", ".join(f"{key}={_shown(value)}" for key, value in entry.parameters.items()) or "none"
    if kind == "method" and not facts.control:
        said["passes"] = f"about {facts.passes} an image" + f", set by {facts.budget}" * bool(facts.budget)
    said["needs"] = "references, other images of the data" if facts.needs_references else ""
    if kind == "metric":
        said |= _about_metric(entry)
    elif facts.random:
        said["random"] = "its maps follow the seed"
    return "\n".join([*lines, *(f"{word + ':':<12}{escape(text)}" for word, text in said.items() if text)])


def _about_metric(entry: Entry) -> dict[str, str]:
    facts = entry.facts
    low, high = ("no bound" if math.isinf(edge) else f"{edge:g}" for edge in facts.bounds)
    beyond = f", beyond with {', '.join(facts.beyond)}" if facts.beyond else ""
    said = {"formula": facts.formula, "better": facts.better, "bounds": f"{low} to {high}{beyond}"}
    said["passes"] = f"about {passes(entry):,} an image"
    if facts.reexplains:
        said["passes"] += ", as many times those of the method, which it calls again"
    if facts.randomises:
        said["passes"] += " times those of the method, which explains every randomised model; 18 blocks, 5 draws"
    elif facts.pairs:
        said["passes"] += (
            " times those of the method, which explains 59 changed images and models; 49 without checkpoints"
        )
    elif not facts.reads:
        said["needs"] = "objects and their roles, as the tasks of `saliometer bench` have them"
    elif facts.needs_truth:
        said["needs"] = "masks or boxes"
    said["defined as"] = ", ".join(definitions(entry))
    said["regions"] = ", ".join(facts.regions)
    said["parts"] = ", ".join(f"{entry.name}.{part} ({better or 'beside it'})" for part, better in facts.parts.items())
    whose = "run's" if facts.randomises else "image's"
    said["random"] = f"its draws follow the {whose} seed, the same for every method" if facts.random else ""
    if facts.pairs:
        said["in rows"] = definition_in_rows(entry)
        said |= dict(zip(MAPS, facts.degenerate, strict=True))
        said["NaN"] = (
            "invalid: no value, and the row's note says why"
            if facts.randomises
            else "no pair of a kind, or consistency at or below 0: no value, and the audit says why"
        )
    elif facts.reads:
        said["reads"] = f"{facts.reads}: {READS[facts.reads]}"
        said["in rows"] = definition_in_rows(entry)
        said |= {kind: what for kind, what in zip(MAPS, facts.degenerate, strict=True) if what}
        said["NaN"] = "invalid: no value, and the row's note says why"
    else:
        said["NaN, empty"] = f"{facts.dead:g}, and the row's note says why"
    return said


def _shown(value: object) -> str:
    return repr(value) if value == "" else str(value).lower() if isinstance(value, bool) else str(value)
