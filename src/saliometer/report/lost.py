"""What a run lost: methods that failed, metrics of theirs that broke, and what did not fit the model."""

from saliometer import registry
from saliometer.engine.run import Run


def failures(run: Run) -> tuple[dict[str, str], dict[str, str]]:
    """By method, or method and metric: what failed, and what did not fit the model."""
    failed: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for method, texts in run.failures().items():
        for text in texts:
            for name, said in (metrics(text) or {"": message(text)}).items():
                unfit = "UnfitError: " in said
                whose = ", ".join(filter(None, (method, name)))
                (left_out if unfit else failed).setdefault(whose, said)
    return failed, left_out


def metrics(text: str) -> dict[str, str]:
    """Of an audit's file on metrics that broke, each with its message; nothing where the method itself failed."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        word, _, rest = line.partition(": ")
        if word in registry.metrics and rest:
            name, line = word, rest
        if name:
            found.setdefault(name, []).append(line)
    return {one: message("\n".join(lines)) for one, lines in found.items()}


def message(traceback: str) -> str:
    """The error's own words: what follows the last line that stands at the margin and names a kind of error."""
    lines = traceback.strip().splitlines() or ["no reason was kept"]
    for place in range(len(lines) - 1, -1, -1):
        kind = lines[place].partition(":")[0]
        if kind.replace(".", "").isidentifier() and kind.endswith(("Error", "Exception", "Warning", "Interrupt")):
            return " ".join([f"{kind.rpartition('.')[2]}{lines[place][len(kind) :]}", *lines[place + 1 :]])
    return lines[-1]
