"""Which methods that fail the original check pass the causal one, and the reverse; whose result is reproduced."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from saliometer.studies._claims import MissingError
from saliometer.studies._yona_evidence import BOTH, CAUSAL, GBP, OTHER, VBP, Evidence, over_seeds

ALIKE = 0.10
RULE = (
    "fails the original check (rule more_alike_than_gradient): on the natural task t its maps of trained and random "
    f"models are more alike than the plain gradient's by over {ALIKE:.2f} of Spearman's correlation (abs). Adebayo et "
    "al. set no threshold and judge from curves; the plain gradient is what they pass"
)
CAUSAL_RULE = (
    "passes the causal check: sensitive on the half task, t1, t2 and the pairs, and accurate on t1, t2 and the pairs "
    "(those that were run); fails it: insensitive on one of them; undecided otherwise"
)
PASSES, FAILS, UNDECIDED = "passes", "fails", "undecided"


@dataclass(frozen=True)
class Checked:
    """What the two checks say of one method."""

    method: str
    alike: float  # Spearman (abs) of trained with random on t
    original: str
    causal: str
    leans: str  # by E's and DD's intervals alone, gates and p aside
    why: str


def checked(e: Evidence) -> list[Checked]:
    """Every method and control that both checks have a number for."""
    found = []
    for method in (*e.methods, *e.controls):
        try:
            gap = over_seeds(e.alike("t", method) - e.alike("t", VBP)).value
            alike = e.similarity("t", method).value
        except MissingError:
            continue
        causal, leans, why = _causal(e, method)
        found.append(Checked(method, alike, FAILS if gap > ALIKE else PASSES, causal, leans, why))
    return found


def _causal(e: Evidence, method: str) -> tuple[str, str, str]:
    tasks = [task for task in CAUSAL if e.has(task, method)]
    verdicts = {task: e.verdict(task, method) for task in tasks}
    leans = PASSES if tasks and all(_leans(e, task, method) for task in tasks) else FAILS
    insensitive = [task for task, one in verdicts.items() if one.word == "insensitive"]
    if insensitive:
        return FAILS, leans, f"insensitive on {', '.join(insensitive)}"
    short = [task for task, one in verdicts.items() if one.word != "sensitive" or (task in OTHER and not one.accurate)]
    if tasks and not short:
        return PASSES, leans, ""
    reasons: dict[str, list[str]] = {}
    for task in short:
        missed = "a gate was missed" if e.missed([task]) else "E is not settled"
        reasons.setdefault("not accurate" if verdicts[task].word == "sensitive" else missed, []).append(task)
    return UNDECIDED, leans, "; ".join(f"{why} on {', '.join(where)}" for why, where in reasons.items())


def _leans(e: Evidence, task: str, method: str) -> bool:
    dissociates = task not in OTHER or e.dissociation(task, method).low > 0.10
    return e.energy(task, method).effect.low > 0 and dissociates


def sentences(e: Evidence) -> list[str]:
    """The headline, most telling first."""
    every = checked(e)
    named = [one for one in every if one.method in e.methods]
    if not named:
        return ["No method was measured on the natural task, so nothing can be said of the original check."]
    said = [
        _listed(
            "Methods that fail the original check and pass the causal one",
            [one for one in named if one.original == FAILS],
            PASSES,
        ),
        _listed(
            "Methods and controls that pass the original check and fail the causal one",
            [one for one in every if one.original == PASSES],
            FAILS,
        ),
    ]
    open_ = [one for one in named if one.causal == UNDECIDED]
    if open_:
        leaning = [one.method for one in open_ if one.original == FAILS and one.leans == PASSES]
        words = f"The causal check decides nothing of {len(open_)} of {len(named)} methods"
        said.append(f"{words}; by E and DD alone, of those that fail the original one, {_names(leaning)} would pass.")
    return [*said, *(f"{name}: {one}." for name, one in reproduced(e).items())]


def _listed(words: str, some: Sequence[Checked], wanted: str) -> str:
    return f"{words}: {_names([one.method for one in some if one.causal == wanted])}."


def _names(some: Sequence[str]) -> str:
    return ", ".join(some) if some else "none"


def reproduced(e: Evidence) -> dict[str, str]:
    """In words, by the rule of sanity.md 3.6."""
    return {"Yona & Greenfeld reproduced": _yona(e), "Adebayo et al. reproduced": _adebayo(e)}


def _yona(e: Evidence) -> str:
    """VBP and GBP sensitive on four tasks, and accurate on those that dissociate."""
    lacking: dict[str, dict[str, list[str]]] = {}  # what is the matter -> task -> methods
    for task in ("half", "t1", "t2", "pairs"):
        for name, method in BOTH.items():
            if not e.has(task, method):
                what = "not run"
            else:
                one = e.verdict(task, method)
                inaccurate = one.word == "sensitive" and task in OTHER and not one.accurate
                what = "sensitive but not accurate" if inaccurate else one.word
            if what != "sensitive":
                lacking.setdefault(what, {}).setdefault(task, []).append(name)
    if not lacking:
        return "yes"
    word = "no" if set(lacking) & {"insensitive", "sensitive but not accurate"} else "undecided"
    return f"{word} ({'; '.join(f'{what}: {_where(tasks)}' for what, tasks in lacking.items())})"


def _where(tasks: Mapping[str, Sequence[str]]) -> str:
    by: dict[str, list[str]] = {}
    for task, names in tasks.items():
        by.setdefault(" and ".join(names), []).append(task)
    return ", ".join(f"{names} on {', '.join(some)}" for names, some in by.items())


def _adebayo(e: Evidence) -> str:
    try:
        guided, plain, one = e.energy("t", GBP), e.energy("t", VBP), e.verdict("t", GBP)
    except MissingError as missing:
        return f"undecided ({missing})"
    shares = f"E/B of GBP {guided.share:.2f}, of VBP {plain.share:.2f}"
    missed = e.missed(["t"])
    if one.word == "insensitive" or guided.share < plain.share / 2:
        return f"yes ({'GBP is insensitive on t' if one.word == 'insensitive' else shares}{_gated(missed)})"
    return f"no (GBP is not insensitive on t; {shares}{_gated(missed)})"


def _gated(missed: Sequence[str]) -> str:
    return f"; a gate was missed, {missed[0]}" if missed else ""
