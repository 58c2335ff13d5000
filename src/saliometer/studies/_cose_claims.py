"""What Daroya, Sun and Maji say of COSE, and what we add (cose.md 7), each claim a small function over rows."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from saliometer.cose.operations import GEOMETRIC, PHOTOMETRIC, SIDE
from saliometer.cose.summary import CHANCE
from saliometer.studies._claims import Claim, Draws, Finding, MissingError, least, margins, most, nth, shown
from saliometer.studies._cose_accuracy import Followed, followed
from saliometer.studies._cose_evidence import CORRELATIONS, MODES, Evidence, Trained
from saliometer.studies._cose_paper import CONV, FAMILIES, METHODS, TRANSFORMER, table

CAMS = ("GradCAM", "GradCAM++")
LOW, HIGH = (1, 10), (21, 30)  # bins of magnitudes that are compared
STEADY = 5.0  # points that count as roughly the same
FRESH = ("fresh_noise", "fresh_smooth_noise", "fresh_cam_7", "fresh_cam_14")


def _best_first(e: Evidence) -> Finding:
    models = e.complete("harmonic", METHODS)
    found = {method: e.mean("harmonic", models, [method]) for method in METHODS}
    order = ("GradCAM", "BlurIG", "IG", "LIME", "SmoothGrad")
    named = {f"{a} over {b}": found[a] - found[b] for a, b in pairwise(order)}
    named["SmoothGrad over GuidedIG and GradCAM++"] = found["SmoothGrad"] - most(
        [found["GuidedIG"], found["GradCAM++"]]
    )
    named["those two within 2"] = 2 - np.abs(found["GuidedIG"] - found["GradCAM++"])
    return _of_some(e, models, margins(named, shown(dict(sorted(found.items(), key=lambda one: -one[1][0])))))


def _of_some(e: Evidence, models: Sequence[Trained], found: Finding) -> Finding:
    """A finding that says so where it does not rest on all models."""
    few, every = len(models), len(e.models())
    said = f"of the {few} of {every} models that have a value for every method" if few < every else ""
    return replace(found, why="; ".join(filter(None, (found.why, said))))


def rows_of(e: Evidence) -> dict[tuple[str, str], list[Trained]]:
    """The rows of the table: models that differ only in their initial weights stand in one."""
    found: dict[tuple[str, str], list[Trained]] = {}
    for model in e.models():
        found.setdefault((model.of, model.arch), []).append(model)
    return found


def _wins_most(e: Evidence) -> Finding:
    values = []  # of every row (methods, draws)
    for models in rows_of(e).values():
        methods = e.methods(models)
        if "GradCAM" not in methods or len(methods) < 2:
            raise MissingError(f"{models[0].label} lacks GradCAM or has nothing beside it")
        held = [e.mean("harmonic", models, [method]) if method in methods else None for method in METHODS]
        nothing = np.full_like(_first(held), np.nan)
        values.append(np.nan_to_num(np.stack([nothing if one is None else one for one in held]), nan=-np.inf))
    if not values:
        raise MissingError("no model was run")
    best = np.stack(values).argmax(1)  # (rows, draws)
    share = (best == METHODS.index("GradCAM")).mean(0)
    counts = {method: int((best[:, 0] == place).sum()) for place, method in enumerate(METHODS)}
    said = ", ".join(f"{method} {count}" for method, count in counts.items() if count)
    return margins({"share of rows over a half": share - 0.5}, f"best in {len(values)} rows: {said}")


def _first(held: Sequence[Draws | None]) -> Draws:
    return next(one for one in held if one is not None)


def gaps(e: Evidence, name: str, how: str = "", among: Sequence[Trained] | None = None) -> dict[tuple[str, str], Draws]:
    """(data set, method) -> Transformers minus ConvNets, each a mean over models, all of them or those `among`."""
    found = {}
    for data in e.data:
        sides = [
            [model for model in e.models(family=one, data=data) if among is None or model in among]
            for one in (TRANSFORMER, CONV)
        ]
        for method in METHODS:
            try:
                found[data, method] = e.mean(name, sides[0], [method], how) - e.mean(name, sides[1], [method], how)
            except MissingError:
                continue
    if not found:
        raise MissingError("there are no ConvNets and Transformers with the same method on the same data set")
    return found


def _listed(found: dict[tuple[str, str], Draws]) -> str:
    several = len({data for data, _ in found}) > 1
    return ", ".join(f"{data + ' ' if several else ''}{method} {d[0]:+.1f}" for (data, method), d in found.items())


def _transformers_score_higher(e: Evidence) -> Finding:
    found = gaps(e, "harmonic")
    ahead = sum(draws[0] > 0 for draws in found.values())
    said = f"{ahead} of {len(found)} combinations, {e.few()}: {_listed(found)}"
    return margins({"the least gap": least(list(found.values()))}, said)


def _transformers_are_more_sensitive(e: Evidence) -> Finding:
    moved, kept = gaps(e, "sensitivity"), gaps(e, "consistency")
    named = {
        "sensitivity: share of combinations over 90 %": np.mean([one > 0 for one in moved.values()], 0) - 0.9,
        f"consistency differs by less than {STEADY:g} on average": STEADY - np.abs(np.mean(list(kept.values()), 0)),
        "consistency: ConvNets ahead for CAMs": -np.mean([one for (_, m), one in kept.items() if m in CAMS], 0),
    }
    if "CUB200" in e.data:
        named["consistency: ConvNets ahead on CUB200"] = -np.mean(
            [one for (d, _), one in kept.items() if d == "CUB200"], 0
        )
    return margins(named, f"sensitivity {_listed(moved)}; consistency {_listed(kept)}; {e.few()}")


def _the_gap_is_resnet(e: Evidence) -> Finding:
    methods = e.methods()
    if missing := [kin for kin in FAMILIES if not e.models(kin=kin)]:
        raise MissingError(f"no model stands for {' and '.join(missing)}")

    def of(kin: str, data: str = "", some: Sequence[str] = ()) -> Draws:
        return e.mean("harmonic", e.models(kin=kin, data=data), some or methods)

    next_, swin, resnet, vit = (of(kin) for kin in ("ConvNext", "Swin-T", "ResNet50", "ViT-B/16"))
    conv, transformers = (e.mean("harmonic", e.models(family=one), methods) for one in (CONV, TRANSFORMER))
    gap = transformers - conv
    named = {
        "a gap, and less than half of it without ResNet": least([gap, gap / 2 - (transformers - next_)]),
        "ConvNeXt within 2 of Swin": 2 - np.abs(next_ - swin),
    }
    for method, others, share in (("GradCAM++", ("Swin-T", "ViT-B/16"), 0.999), ("GuidedIG", ("Swin-T",), 0.5)):
        if method in methods:
            wins = [
                least([of("ConvNext", data, [method]) - of(one, data, [method]) for one in others]) > 0
                for data in e.data
            ]
            words = "on all data sets" if share > 0.9 else "on most"
            named[f"ConvNeXt over {' and '.join(others)} with {method} {words}"] = np.mean(wins, 0) - share
    return margins(named, shown({"ResNet": resnet, "ConvNeXt": next_, "Swin": swin, "ViT": vit}))


def _plus_plus_collapses(e: Evidence) -> Finding:
    low, high = (
        {f"{one.label}, {one.of}": e.of("harmonic", one, "GradCAM++") for one in e.models(kin=kin)}
        for kin in ("ResNet50", "ConvNext")
    )
    if not low or not high:
        raise MissingError("there is no ResNet, or no ConvNeXt")
    half = 100 * CHANCE
    return margins(
        {
            "ResNet below chance": half - most(list(low.values())),
            "ConvNeXt above it": least(list(high.values())) - half,
        },
        shown({**low, **high}),
    )


def _cam_is_most_consistent(e: Evidence) -> Finding:
    models = e.complete("consistency", METHODS)
    found = {method: e.mean("consistency", models, [method]) for method in METHODS}
    next_, rest = ("GradCAM++", "BlurIG"), ("IG", "LIME", "SmoothGrad", "GuidedIG")
    named = {
        "GradCAM over the next": found["GradCAM"] - nth([found[m] for m in METHODS if m != "GradCAM"], 1),
        "GradCAM++ and BlurIG over the rest": least([found[m] for m in next_]) - most([found[m] for m in rest]),
    }
    return _of_some(e, models, margins(named, shown(found)))


def _follows_accuracy(e: Evidence) -> Finding:
    without, with_last = ({one.method: one for one in followed(e, last)} for last in (False, True))
    wanted = {"GradCAM": True, "LIME": True, "GuidedIG": False}
    if missing := [method for method in wanted if method not in without]:
        raise MissingError(f"there are too few checkpoints with an accuracy for {', '.join(missing)}")

    def fits(found: dict[str, Followed]) -> bool:
        return all(
            found[m].significant == rises and (found[m].r > 0) >= rises for m, rises in wanted.items() if m in found
        )

    said = [
        f"{m} {one} (with the last: {with_last[m]})" if m in with_last else f"{m} {one}" for m, one in without.items()
    ]
    why = "" if fits(without) == fits(with_last) else "with the last checkpoint the verdict is another"
    points = next(iter(without.values())).points
    return Finding(f"{points} checkpoints of {len(e.models())} models; " + "; ".join(said), fits(without), why)


def _needs(e: Evidence, *names: str) -> None:
    if missing := [name for name in names if name not in e.data]:
        raise MissingError(
            f"{' and '.join(missing)} {'were' if missing[1:] else 'was'} not run, only {', '.join(e.data)}"
        )


def _cub_is_lowest(e: Evidence) -> Finding:
    _needs(e, "CUB200", "EuroSAT")
    means = {m: {d: e.mean("harmonic", e.models(data=d), [m]) for d in e.data} for m in METHODS}

    def below(method: str, lowest: str) -> Draws:
        return least([v for d, v in means[method].items() if d != lowest]) - means[method][lowest]

    five = [method for method in METHODS if method not in ("IG", "GuidedIG")]
    named = {f"{method} lowest on CUB200": below(method, "CUB200") for method in five}
    named |= {f"{method} lowest on EuroSAT": below(method, "EuroSAT") for method in ("IG", "GuidedIG")}
    guided = means["GuidedIG"]
    named["GuidedIG highest on CUB200"] = guided["CUB200"] - most([v for d, v in guided.items() if d != "CUB200"])
    return margins(named)


def _worst_cell(e: Evidence) -> Finding:
    _needs(e, "CUB200")
    cells = {where: e.mean("harmonic", models, ["GradCAM"]) for where, models in rows_of(e).items()}
    theirs = {where for where, models in rows_of(e).items() if where[0] == "CUB200" and models[0].kin == "ResNet50"}
    if not theirs or len(cells) < 2:
        raise MissingError("there is no ResNet on CUB200, or nothing beside it")
    (worst,) = (cells.pop(where) for where in theirs)
    return margins(
        {"below the next lowest by more than 10": least(list(cells.values())) - worst - 10},
        f"{worst[0]:.1f}, next lowest {least(list(cells.values()))[0]:.1f}",
    )


def _changes(e: Evidence, kind: str) -> tuple[dict[str, Draws], str]:
    """From small to large magnitudes, of all operations of a kind."""
    low, high = e.by_magnitude((kind,), LOW, HIGH)
    words = {"consistency": "consistency", "sensitivity": "sensitivity", "harmonic": "COSE"}
    said = ", ".join(f"{words[name]} {low[name][0]:.1f} to {high[name][0]:.1f}" for name in words)
    return {name: high[name] - low[name] for name in words}, said


def _photometric_magnitude(e: Evidence) -> Finding:
    moved, said = _changes(e, PHOTOMETRIC)
    return margins(
        {
            "consistency falls": -moved["consistency"],
            "sensitivity rises": moved["sensitivity"],
            f"COSE within {STEADY:g}": STEADY - np.abs(moved["harmonic"]),
        },
        f"bins {LOW[0]}-{LOW[1]} to {HIGH[0]}-{HIGH[1]}: {said}",
    )


def _geometric_magnitude(e: Evidence) -> Finding:
    moved, said = _changes(e, GEOMETRIC)
    named = {f"{name} within {STEADY:g}": STEADY - np.abs(moved[name]) for name in ("consistency", "sensitivity")}
    return margins(named, f"bins {LOW[0]}-{LOW[1]} to {HIGH[0]}-{HIGH[1]}: {said}")


def _correlations_agree(e: Evidence) -> Finding:
    methods = e.methods()
    models = e.complete("harmonic", methods, ("default", *CORRELATIONS))
    first = {m: e.mean("harmonic", models, [m], "default") for m in methods}
    gap = np.mean(list(gaps(e, "harmonic", "default", models).values()), 0)
    named, said = {}, []
    for how in CORRELATIONS:
        other = {m: e.mean("harmonic", models, [m], how) for m in methods}
        named[f"{how}: Spearman of the order over 0.5"] = _rank_correlation(first, other) - 0.5
        its = np.mean(list(gaps(e, "harmonic", how, models).values()), 0)
        named[f"{how}: the gap of Transformers keeps its sign"] = np.sign(gap[0]) * its
        said.append(f"{how} {shown(other)}, gap {its[0]:+.1f}")
    return _of_some(e, models, margins(named, f"SSIM {shown(first)}, gap {gap[0]:+.1f}; " + "; ".join(said)))


def _rank_correlation(one: dict[str, Draws], other: dict[str, Draws]) -> Draws:
    from scipy.stats import rankdata

    a, b = (rankdata(np.stack(list(some.values()))[:, :2001], axis=0) for some in (one, other))
    a, b = a - a.mean(0), b - b.mean(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Draws = (a * b).sum(0) / np.sqrt((a * a).sum(0) * (b * b).sum(0))
    return found


def _what_explains_nothing(e: Evidence) -> Finding:
    """The constant map by our own mode, where it is exact; others at R = 2."""
    models = [model for model in e.models() if e.has(model, "constant", "default")]
    if not models:
        raise MissingError("the controls were not run")
    fresh = {name: e.mean("harmonic", models, [name], "published") for name in FRESH}
    constant = e.mean("sensitivity", models, ["constant"], "default")
    parity = e.mean("harmonic", models, ["parity_edge"], "published")
    highest = max(value for (data, *_), value in table().items())
    named = {
        "fresh maps at most 50, give or take 2": 52 - most(list(fresh.values())),
        "the constant map at 0": 0.1 - np.abs(constant),
        f"parity-inverted edge over the table's highest, {highest}": parity - highest,
    }
    other = [side for side in e.sides if side != SIDE]
    if not other:
        named["random 7x7 CAM within 5 of 49"] = 5 - np.abs(fresh["fresh_cam_7"] - 49)
    found = margins(named, f"parity-inverted edge {parity[0]:.1f}, {shown(fresh)}")
    left_out = f"49 of a random 7x7 CAM is for {SIDE} pixels, these images have {', '.join(map(str, other))}"
    return replace(found, why="; ".join(filter(None, (found.why, left_out)))) if other else found


FIGURES = {  # of the report -> claims about what it shows
    "cose_table_1": (1, 2, 10),
    "cose_3": (3, 4, 5, 6),
    "cose_5": (8,),
    "cose_6": (7,),
    "cose_7": (9,),
    "cose_8": (11, 12),
    "cose_similarities": (13,),
    "cose_controls": (14,),
}


def _claim(number: int, text: str, paper: str, test: Callable[[Evidence], Finding]) -> Claim[Evidence]:
    figure = next((name for name, numbers in FIGURES.items() if number in numbers), "")
    return Claim(number, text, paper, test, figure)


CLAIMS = [
    _claim(
        1, "COSE over all models: GradCAM, BlurIG, IG, LIME, SmoothGrad, then GuidedIG and GradCAM++",
        "64.7, 63.2, 61.3, 60.1, 57.9, 54.7, 54.6", _best_first,
    ),
    _claim(2, "GradCAM is best in most settings", "13 of 20 rows; 65 % of 40 settings", _wins_most),
    _claim(
        3, "Transformers have a higher mean COSE than ConvNets for every data set and method", "35 of 35",
        _transformers_score_higher,
    ),
    _claim(
        4, "Transformers are more sensitive almost everywhere; consistency differs little, ConvNets ahead for CAMs",
        "so, no numbers", _transformers_are_more_sensitive,
    ),
    _claim(
        5, "(in the table) The gap is largely ResNet's: ConvNeXt is level with Swin, ahead with GradCAM++ and GuidedIG",
        "54.1, 60.0, 60.6; 5 and 4 of 5 data sets", _the_gap_is_resnet,
    ),
    _claim(
        6, "(in the table) GradCAM++ collapses on ResNet, not on ConvNeXt", "40.3-45.4 and 59.8-66.7",
        _plus_plus_collapses,
    ),
    _claim(
        7, "GradCAM has the highest mean consistency, then GradCAM++ and BlurIG", "so, no numbers",
        _cam_is_most_consistent,
    ),
    _claim(
        8, "Maps of checkpoints come nearer to the final one as accuracy rises: GradCAM, LIME; not GuidedIG",
        "p below 0.05 or not", _follows_accuracy,
    ),
    _claim(
        9, "CUB200 is lowest for five methods, EuroSAT for IG and GuidedIG; GuidedIG is best on CUB200",
        "51.6-58.7; 59.8, 50.4; 59.5", _cub_is_lowest,
    ),
    _claim(10, "GradCAM's worst cell is ResNet on CUB200, far below the next", "44.0, then 60.6", _worst_cell),
    _claim(
        11, "With photometric magnitude consistency falls, sensitivity rises, COSE stays", "so, by eye",
        _photometric_magnitude,
    ),
    _claim(12, "With geometric magnitude consistency and sensitivity stay", "so, by eye", _geometric_magnitude),
    _claim(13, "A correlation in SSIM's place gives the same broad conclusions", "so, no numbers", _correlations_agree),
    _claim(
        14, "(ours) 50 is the ceiling of chance; constant 0, random 7x7 CAM 49, parity-inverted edge above the table",
        "0, 49.2, 75.8 at 224 px", _what_explains_nothing,
    ),
]  # fmt: skip


def judged(evidence: Evidence) -> list[dict[str, object]]:
    """Every claim by the mode that the paper's table was made with, and what our own mode says where that differs."""
    words = {True: "holds", False: "fails", None: "is open"}
    found = []
    for claim in CLAIMS:
        first, other = (claim.judged(evidence.by(mode)) for mode in MODES)
        if first["holds"] is not other["holds"] and first["holds"] is not None:
            said = f"by mode {MODES[1]} it {words[other['holds']]}"
            first["why"] = "; ".join(filter(None, (first["why"], said)))
        found.append(first)
    return found
