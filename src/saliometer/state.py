"""How far a run is, what failed in it, and what a folder holds: read from its files, without a model."""

from pathlib import Path

from saliometer.engine.bench import Outcome
from saliometer.engine.identify import Identified
from saliometer.engine.judged import Judged
from saliometer.engine.run import Run
from saliometer.report.lost import failures


def is_audit(run: Run) -> bool:
    return bool(run.manifest["request"].get("kind") == "audit")


def is_identify(run: Run) -> bool:
    return bool(run.manifest["request"].get("kind") == "identify")


def is_study(folder: Path) -> bool:
    return (folder / "study.json").is_file()


def outcome_of(run: Run) -> Outcome | Judged | Identified:
    """What the run's command gave back when it ended, as far as the folder tells."""
    if run.manifest["request"].get("kind") == "sanity":
        raise ValueError(f"'{run.folder}' is part of a study: name the study's folder, '{run.folder.parent}'")
    failed, left_out = failures(run)
    if is_identify(run):
        return Identified(run, failed, left_out)
    run.manifest.setdefault("models", {})  # one that was stopped before its models were looked at
    return (Judged if is_audit(run) else Outcome)(run, list(run.counted), failed, left_out)
