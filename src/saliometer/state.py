"""How far a run is, what failed in it, and what a folder holds: read from its files, without a model."""

from pathlib import Path

from saliometer import registry
from saliometer.engine.bench import Outcome
from saliometer.engine.identify import Identified
from saliometer.engine.judged import Judged
from saliometer.engine.run import Run, opened
from saliometer.report import facts
from saliometer.report.facts import Progress


def is_audit(run: Run) -> bool:
    return bool(run.manifest["request"].get("kind") == "audit")


def is_identify(run: Run) -> bool:
    return bool(run.manifest["request"].get("kind") == "identify")


def is_study(folder: Path) -> bool:
    return (folder / "study.json").is_file()


def run_in(folder: Path) -> Run:
    """The run in a folder; a folder of runs gets their names."""
    inside = [path.parent for path in sorted(folder.glob("*/run.json"))]
    if inside and not (folder / "run.json").is_file():
        some = ", ".join(f"'{path}'" for path in inside[:3])
        raise ValueError(f"'{folder}' is a folder of runs, not a run: name one, such as {some}")
    return opened(folder)


def outcome_of(run: Run) -> Outcome | Judged | Identified:
    """What the run's command gave back when it ended, as far as the folder tells."""
    failed, left_out = _failures(run)
    if is_identify(run):
        return Identified(run, failed, left_out)
    run.manifest.setdefault("models", {})  # one that was stopped before its models were looked at
    return (Judged if is_audit(run) else Outcome)(run, list(run.counted), failed, left_out)


def progress(run: Run) -> Progress:
    if not is_audit(run):
        return facts.progress(run)
    manifest = run.manifest
    units = -(-int(manifest["request"]["count"]) // int(manifest["fixed"]["unit"]))
    lost = [text for texts in run.failures().values() for text in texts if not _metrics(text)]
    return Progress(len(list(run.parts())), len(lost), units * len(run.counted))


def unfinished(run: Run) -> str:
    """What to say of a run that is not at its end; '' of one that is."""
    made = progress(run)
    return "" if made.finished else facts.unfinished(run, made)


def _failures(run: Run) -> tuple[dict[str, str], dict[str, str]]:
    """By method, or method and metric: what failed, and what did not fit the model."""
    failed: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for method, texts in run.failures().items():
        for text in texts:
            for name, message in (_metrics(text) or {"": _message(text)}).items():
                unfit = "UnfitError: " in message
                whose = ", ".join(filter(None, (method, name)))
                (left_out if unfit else failed).setdefault(whose, message)
    return failed, left_out


def _metrics(text: str) -> dict[str, str]:
    """Of an audit's file on metrics that broke, each with its message; nothing where the method itself failed."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        word, _, rest = line.partition(": ")
        if word in registry.metrics and rest:
            name, line = word, rest
        if name:
            found.setdefault(name, []).append(line)
    return {one: _message("\n".join(lines)) for one, lines in found.items()}


def _message(traceback: str) -> str:
    """The error's own words: what follows the last line that stands at the margin and names a kind of error."""
    lines = traceback.strip().splitlines() or ["no reason was kept"]
    for place in range(len(lines) - 1, -1, -1):
        kind = lines[place].partition(":")[0]
        if kind.replace(".", "").isidentifier() and kind.endswith(("Error", "Exception", "Warning", "Interrupt")):
            return " ".join([f"{kind.rpartition('.')[2]}{lines[place][len(kind) :]}", *lines[place + 1 :]])
    return lines[-1]
