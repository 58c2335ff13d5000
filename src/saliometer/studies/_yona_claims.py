"""What Yona and Greenfeld, and those they answer, say of saliency maps: 15 claims over rows (sanity.md 4)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations

import numpy as np

from saliometer.studies._claims import Claim, Finding, MissingError
from saliometer.studies._yona_evidence import BOTH, VBP, Evidence, Floats, mean_known, over_seeds
from saliometer.summary import Estimate

CLOSE = 0.05  # of a focus: "about 0.5"
NULL = 0.02  # of an energy: nothing, by the rule of sanity.md 3.6
NOISE, EDGE = "fresh_noise", "edge"
ERASED = ("erased", "erasing")  # gates without which no focus can be read
FEWEST = 10  # misclassified images that a mean is read from


def _words(name: str, one: Estimate) -> str:
    return f"{name}: {one.value:+.3g} [{one.low:.3g}, {one.high:.3g}]"


def _found(
    e: Evidence,
    named: Mapping[str, Estimate],
    tasks: Sequence[str],
    ours: str = "",
    *,
    sure: Collection[str] = (),
    focus: bool = False,
) -> Finding:
    """Holds if every margin's estimate is positive, for those in `sure` its whole interval; says which are not.

    A missed gate is named. Where what decides was not shown by erasing it, a focus is void: the claim stays open.
    """
    failing = [name for name, one in named.items() if one.value <= 0 or (name in sure and not one.low > 0)]
    wide = [name for name, one in named.items() if one.low <= 0 < one.high and name not in failing]
    missed, void = e.missed(tasks), e.missed(tasks, ERASED) if focus else []
    said = {"fails: ": failing, "the interval holds 0 for ": wide, "a gate was missed: ": missed}
    why = "; ".join(words + ", ".join(names) for words, names in said.items() if names)
    if void:
        why += "; so the focus is void"
    margins = "; ".join(_words(name, one) for name, one in named.items())
    return Finding("; ".join(filter(None, (ours, f"margins {margins}"))), None if void else not failing, why)


def _less(one: Estimate, bar: float) -> Estimate:
    """How far it lies below a bar."""
    return Estimate(bar - one.value, bar - one.high, bar - one.low)


def _more(one: Estimate, bar: float) -> Estimate:
    return Estimate(one.value - bar, one.low - bar, one.high - bar)


def _within(one: Estimate, about: float, margin: float) -> Estimate:
    """How far it stays inside about +- margin: the distance of the nearer end."""
    inside = [margin - abs(value - about) for value in (one.value, one.low, one.high)]
    return Estimate(inside[0], min(inside), max(inside))


def _guided_is_more_alike(e: Evidence) -> Finding:
    like = {name: e.alike("t", method) for name, method in BOTH.items()}
    ours = ", ".join(f"{name} {values.mean():.3f}" for name, values in like.items())
    gap = over_seeds(like["GBP"] - like["VBP"])
    return _found(e, {"GBP over VBP": gap}, ["t"], f"Spearman (abs) of trained with random: {ours}")


def _moves(e: Evidence, *tasks: str) -> Finding:
    named = {
        f"{task}, {name}: E": e.energy(task, method).effect for task in tasks for name, method in BOTH.items()
    }  # fmt: skip
    shares = ", ".join(
        f"{task} {name} {e.energy(task, method).share:.2f}" for task in tasks for name, method in BOTH.items()
    )  # fmt: skip
    return _found(e, named, tasks, f"E/B {shares}", sure=list(named))


def _half_moves(e: Evidence) -> Finding:
    return _moves(e, "half")


def _half_draws_the_mass(e: Evidence) -> Finding:
    named, said = {}, []
    for name, method in BOTH.items():
        shares = [e.focus("half", group, method).value for group in ("half", "t", "random")]
        said.append(f"{name} {' / '.join(f'{share:.3f}' for share in shares)}")
        for group, word in (("t", "digit model"), ("random", "random")):
            named[f"{name}: over the {word}"] = e.contrast("half", "half", group, method)
    return _found(
        e, named, ["half", "t"], f"share of the deletable half, half / digit / random: {', '.join(said)}", focus=True
    )


def _shapes_move(e: Evidence) -> Finding:
    return _moves(e, "t1", "t2")


def _focus_follows_the_label(e: Evidence) -> Finding:
    named, said = {}, []
    for name, method in BOTH.items():
        on_shape = [
            e.focus("t1", "t1", method).value, e.focus("t1", "random", method).value,
            1 - e.focus("t2", "t2", method).value,
        ]  # fmt: skip
        said.append(f"{name} {' / '.join(f'{share:.3f}' for share in on_shape)}")
        named[f"{name}: t1 over random"] = e.contrast("t1", "t1", "random", method)
        named[f"{name}: random over t2"] = e.contrast("t2", "t2", "random", method)
    return _found(e, named, ["t1", "t2"], f"focus on the shape, t1 / random / t2: {', '.join(said)}", focus=True)


def _both_dissociate(e: Evidence) -> Finding:
    found = {name: e.dissociation("t1", method) for name, method in BOTH.items()}
    named = {f"{name}: DD over 0.10": _more(one, 0.10) for name, one in found.items()}
    gap = abs(found["VBP"].value - found["GBP"].value)
    overlap = min(one.high for one in found.values()) >= max(one.low for one in found.values())
    seen = _found(e, named, ["t1", "t2"], f"DD {_each(found)}; they differ by {gap:.3f}", focus=True)
    if overlap or gap < 0.1 or seen.holds is None:
        return seen
    return Finding(seen.ours, False, "; ".join(filter(None, ("fails: the two differ by 0.1 or more", seen.why))))


def _each(found: Mapping[str, Estimate]) -> str:
    return ", ".join(f"{name} {one.value:.3f} [{one.low:.3f}, {one.high:.3f}]" for name, one in found.items())


def _tile_is_found(e: Evidence) -> Finding:
    named, said = {}, []
    for name, method in BOTH.items():
        tuned, before, random = (e.focus("pairs", group, method) for group in ("pairs", "pretrained", "random"))
        said.append(f"{name} {tuned.value:.3f} / {before.value:.3f} / {random.value:.3f}")
        named[f"{name}: fine-tuned over 0.55"] = _more(tuned, 0.5 + CLOSE)
        named[f"{name}: pretrained within 0.05 of 0.5"] = _within(before, 0.5, CLOSE)
        named[f"{name}: random within 0.05 of 0.5"] = _within(random, 0.5, CLOSE)
    ours = f"focus on the tile that decides, fine-tuned / pretrained / random: {', '.join(said)}"
    return _found(e, named, ["pairs"], ours, focus=True)


def _pretraining_finds_no_tile(e: Evidence) -> Finding:
    named = {
        f"{name}: pretrained within 0.05 of random": _within(
            e.contrast("pairs", "pretrained", "random", method), 0.0, CLOSE
        )
        for name, method in BOTH.items()
    }
    return _found(e, named, ["pairs"], focus=True)


def _tasks_rank_otherwise(e: Evidence) -> Finding:
    """Differs if two methods stand in the other order with both differences clear of 0 over training seeds."""
    like = {task: _alike(e, task) for task in ("t", "t1", "t2")}
    methods = [method for method in like["t"] if all(method in some for some in like.values())]
    if len(methods) < 3:
        raise MissingError("too few methods were compared on t, t1 and t2 to rank them")
    turned, said = [], []
    for task in ("t1", "t2"):
        pairs = [
            f"{a} and {b}"
            for a, b in combinations(methods, 2)
            if _sign(like["t"][a] - like["t"][b]) * _sign(like[task][a] - like[task][b]) < 0
        ]
        turned += pairs
        tau = _kendall([like["t"][m].mean() for m in methods], [like[task][m].mean() for m in methods])
        turned_here = f" ({', '.join(pairs[:4])}{', ...' if len(pairs) > 4 else ''})" if pairs else ""
        said.append(
            f"{task}: Kendall's tau {tau:.2f}, {len(pairs)} pairs of {len(methods)} methods turned{turned_here}"
        )
    missed = e.missed(("t", "t1", "t2"))
    return Finding("; ".join(said), bool(turned), f"a gate was missed: {', '.join(missed)}" if missed else "")


def _alike(e: Evidence, task: str) -> dict[str, Floats]:
    found = {}
    for method in e.methods:
        try:
            found[method] = e.alike(task, method)
        except MissingError:
            continue
    return found


def _sign(differences: Floats) -> int:
    """Of a mean whose interval over seeds does not hold 0; 0 where it does."""
    one = over_seeds(differences)
    return int(one.low > 0) - int(one.high < 0)


def _kendall(one: Sequence[float], other: Sequence[float]) -> float:
    signs = [
        np.sign(one[i] - one[j]) * np.sign(other[i] - other[j]) for i, j in combinations(range(len(one)), 2)
    ]  # fmt: skip
    return float(np.mean(signs))


def _difference_is_weak(e: Evidence) -> Finding:
    """Everything but a constant differs; noise has no energy and no dissociation, some method has both."""
    tasks = [task for task in e.tasks if e.has(task, NOISE) and e.has(task, EDGE)]
    if not tasks:
        raise MissingError("the controls were not run")
    least = {
        method: min(e.energy(task, method).between for task in tasks if e.has(task, method))
        for method in (*e.methods, NOISE)
        if any(e.has(task, method) for task in tasks)
    }
    noise = max((e.energy(task, NOISE).effect for task in tasks), key=lambda one: abs(one.value))
    edge = max(abs(e.energy(task, EDGE).effect.value) for task in tasks)
    dd = {name: e.dissociation("t1", name) for name in (NOISE, EDGE)}
    moved = [m for m in e.methods if e.energy("t1", m).effect.low > 0 and e.dissociation("t1", m).low > 0.10]
    named = {
        "the smallest B of a method, and noise's": Estimate(min(least.values()), *2 * (min(least.values()),)),
        "noise: E within 0.02": _within(noise, 0.0, NULL),
        "edges: E is 0": Estimate(1e-6 - edge, 1e-6 - edge, 1e-6 - edge),
        "noise: DD within 0.05": _within(dd[NOISE], 0.0, CLOSE),
        "edges: DD is 0": _within(dd[EDGE], 0.0, 1e-6),
    }
    few = f"{len(moved)} of {len(e.methods)} methods have E > 0 and DD > 0.10 on t1"
    seen = _found(e, named, ["t1", "t2"], f"{few}; least B: {min(least, key=least.__getitem__)}")
    if moved:
        return seen
    return Finding(seen.ours, False, "; ".join(filter(None, ("fails: no method has both", seen.why))))


def _noise_wins_the_classical_test(e: Evidence) -> Finding:
    named, said = {}, []
    for measure in ("spearman_abs", "ssim"):
        every = {m: abs(_last(e, m, measure)) for m in (*e.methods, NOISE) if _has_curve(e, m, measure)}
        last = {m: value for m, value in every.items() if not np.isnan(value)}
        if NOISE not in last or len(last) < 2:
            raise MissingError(f"the classical curves of noise and of methods were not run by {measure}")
        others = {m: value for m, value in last.items() if m != NOISE}
        best = min(others, key=others.__getitem__)
        margin = others[best] + CLOSE - last[NOISE]
        named[f"{measure}: noise at most 0.05 above the best"] = Estimate(margin, margin, margin)
        beaten = sum(value >= last[NOISE] for value in others.values())
        said.append(
            f"{measure} after full randomisation: noise {last[NOISE]:.3f}, less like itself than {beaten} of "
            f"{len(others)} methods, the best {best} {others[best]:.3f}"
        )
    energies = [e.energy(task, NOISE).effect for task in e.tasks if e.has(task, NOISE)]
    worst = max(energies, key=lambda one: abs(one.value))
    named["E within 0.02"] = _within(worst, 0.0, NULL)
    named["DD within 0.05"] = _within(e.dissociation("t1", NOISE), 0.0, CLOSE)
    return _found(e, named, ["t"], "; ".join(said))


def _last(e: Evidence, method: str, measure: str) -> float:
    return mean_known(list(e.curve("t", method, "top_down", measure).values())[-1])


def _has_curve(e: Evidence, method: str, measure: str) -> bool:
    try:
        e.curve("t", method, "top_down", measure)
    except MissingError:
        return False
    return True


def _multiplier_hides_the_model(e: Evidence) -> Finding:
    """The pixels without a multiplier (x = 0) are left out where it is divided out."""
    plain = e.alike("t", VBP)
    local = e.alike("t", VBP, region="local")
    named, said = {}, []
    for name, method in (("Input x Gradient", "input_x_gradient"), ("IG", "integrated_gradients")):
        gap = over_seeds(e.alike("t", method) - plain)
        rest = over_seeds(e.alike("t", method, region="local") - local)
        said.append(f"{name} over VBP {gap.value:+.3f}, divided out {rest.value:+.3f}")
        named[f"{name} over VBP"] = gap
        named[f"{name}: divided out within 0.05 of VBP"] = _within(rest, 0.0, CLOSE)
    return _found(e, named, ["t"], f"Spearman (abs): {'; '.join(said)}")


def _guided_keeps_the_upper_layers(e: Evidence) -> Finding:
    first = {
        (name, order): next(iter(e.curve("t", method, order).values()))
        for name, method in BOTH.items()
        for order in ("top_down", "bottom_up")
    }
    said = ", ".join(f"{name} {order} {values.mean():.3f}" for (name, order), values in first.items())
    named = {"GBP over VBP, last layer": over_seeds(first["GBP", "top_down"] - first["VBP", "top_down"])}
    for name in BOTH:
        named[f"{name}: below 0.5, first layer"] = _less(over_seeds(first[name, "bottom_up"]), 0.5)
    return _found(e, named, ["t"], f"Spearman (abs) after one layer: {said}")


def _errors_lose_focus(e: Evidence) -> Finding:
    """On tasks whose focus can be read, if there is any."""
    named: dict[str, dict[str, Estimate]] = {}
    for task in ("pairs", "t2", "t1"):
        for name, method in BOTH.items():
            try:
                wrong = e.value(task, task, method, "wrong", region="mask")
                gaps = e.seeds(task, task, method, "right_minus_wrong", region="mask")
            except MissingError:
                continue
            if wrong >= FEWEST:
                words = f"{task}, {name}: right over wrong ({wrong:.0f} wrong)"
                named.setdefault(task, {})[words] = over_seeds(gaps[~np.isnan(gaps)])
    if not named:
        raise MissingError(f"no task has {FEWEST} misclassified images with a known focus")
    read = [task for task in named if not e.missed([task], ERASED)] or list(named)
    margins = {words: one for task in read for words, one in named[task].items()}
    return _found(e, margins, read, focus=True)


def _labels_move_the_gradient(e: Evidence) -> Finding:
    found = {name: e.energy("t", method, against="labels") for name, method in BOTH.items()}
    gap = found["VBP"].effect.value - found["GBP"].effect.value
    ours = ", ".join(f"{name} E {one.effect.value:.3f}, E/B {one.share:.2f}" for name, one in found.items())
    named = {"VBP: E": found["VBP"].effect, "VBP over GBP": Estimate(gap, gap, gap)}
    return _found(e, named, ["t", "labels"], ours, sure=["VBP: E"])


FIGURES = {  # of the report -> claims about what it shows
    "yona_similarity": (1, 9, 12),
    "yona_1": (3,),
    "yona_3": (5,),
    "yona_4": (7, 8),
    "yona_energy": (2, 4, 10, 15),
    "yona_dissociation": (6, 14),
    "yona_curves": (11, 13),
}


def _claim(number: int, text: str, paper: str, test: Callable[[Evidence], Finding]) -> Claim[Evidence]:
    figure = next((name for name, numbers in FIGURES.items() if number in numbers), "")
    return Claim(number, text, paper, test, figure)


CLAIMS = [
    _claim(
        1,
        "Natural digits: trained and random GBP maps are more alike than VBP's (Spearman, abs)",
        "so, for Adebayo",
        _guided_is_more_alike,
    ),
    _claim(2, "Half task, intact digits: E > 0 for GBP and VBP", "by eye", _half_moves),
    _claim(
        3,
        "Half task: more of the mass on the deletable half by the half model than by the digit and random models",
        "by eye",
        _half_draws_the_mass,
    ),
    _claim(4, "Shapes: E > 0 for both on t1 and on t2", "by eye", _shapes_move),
    _claim(
        5, "Shapes: focus on the shape of t1's models > random > t2's, both methods", "by eye", _focus_follows_the_label
    ),
    _claim(6, "Shapes: DD > 0.10 for both, and the two do not differ", "by eye", _both_dissociate),
    _claim(
        7, "Pairs: fine-tuned models focus on the tile that decides; random and pretrained on both", "by eye",
        _tile_is_found,
    ),
    _claim(8, "Pairs: pretrained and random differ by less than 0.05", "both light up", _pretraining_finds_no_tile),
    _claim(
        9, "Methods ranked by trained-random similarity: another order on t1, t2 than on t", "argued",
        _tasks_rank_otherwise,
    ),
    _claim(
        10, "(ours) Every method differs between trained and random; only E and DD tell noise and edges apart", "-",
        _difference_is_weak,
    ),
    _claim(
        11, "(ours) Noise wins the Spearman and SSIM tests, and has E = 0, DD = 0", "-", _noise_wins_the_classical_test
    ),
    _claim(
        12, "Input x Gradient and IG are more alike than VBP by their multiplier; dividing it out closes the gap",
        "Kokhlikyan et al.", _multiplier_hides_the_model,
    ),
    _claim(
        13, "Last layer randomised: GBP stays more alike than VBP; first layer: both are destroyed", "Adebayo et al.",
        _guided_keeps_the_upper_layers,
    ),
    _claim(14, "(ours) Misclassified images have less focus", "-", _errors_lose_focus),
    _claim(
        15, "Trained on shuffled labels: E > 0 for VBP, and less for GBP", "Adebayo et al.", _labels_move_the_gradient
    ),
]  # fmt: skip
