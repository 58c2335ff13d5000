"""What Zhang, Torres and Hermanns say of ten methods, each claim a small function over rows (fidelity.md 5)."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import combinations

import numpy as np

from saliometer.studies._claims import Claim, Draws, Finding, MissingError, least, margins, most, nth, shown
from saliometer.studies._zhang_evidence import (
    CAMS,
    FAKE,
    FIDELITY,
    GRADIENTS,
    INFORMED,
    METHODS,
    METRICS,
    REGIONS,
    TARGETS,
    TRANSFORMS,
    Evidence,
    clustered_spearman,
    flat,
    mean_rho,
    over_methods,
    places,
    with_confidence,
)  # fmt: skip

ENOUGH = 13  # images: of one that wins on all of fewer, the exact interval of P(better) still holds 0.75


def _fake_in_the_top_two(z: Evidence) -> Finding:
    ai = z.all("AI")
    return margins({"over the third": ai.pop(FAKE) - nth(list(ai.values()), 2)}, shown(z.all("AI")))


def _fake_is_first_on_drop(z: Evidence) -> Finding:
    bar = z.all("AD_bar")
    fake = bar[FAKE]
    best = most([value for name, value in bar.items() if name != FAKE])
    return margins({"over the next": fake - best, "over 99": fake - 99}, shown(bar))


def _gain_sees_through_fake(z: Evidence) -> Finding:
    gain, fake = z.all("AG", [*CAMS, "RISE", "IBA"]), z.of("AG", FAKE)
    return margins(
        {"least of them over Fake-CAM": least(list(gain.values())) - fake, "under 3": 3 - fake},
        shown({FAKE: fake, **gain}),
    )


def _deletion_puts_fake_last(z: Evidence) -> Finding:
    bar = z.all("D_bar")
    fake = bar.pop(FAKE)
    return margins({"last by more than 10": least(list(bar.values())) - fake - 10}, shown({FAKE: fake, **bar}))


def _insertion_puts_fake_between(z: Evidence) -> Finding:
    fake, high, low = z.of("I", FAKE), z.all("I", REGIONS), z.all("I", GRADIENTS)
    return margins(
        {
            "regions over it": least(list(high.values())) - fake,
            "it over gradients": fake - most(list(low.values())),
        },
        shown({FAKE: fake, **high, **low}),
    )


def _gradients_score_near_zero(z: Evidence) -> Finding:
    limits = {"AI": 5, "AD_bar": 10, "AG": 1}
    found = {key: z.all(key, GRADIENTS) for key in limits}
    said = "; ".join(f"{key} {shown(values)}" for key, values in found.items())
    return margins({f"{key} < {limits[key]}": limits[key] - most(list(found[key].values())) for key in limits}, said)


def _score_cam_gains_most(z: Evidence) -> Finding:
    gain = z.all("AG")
    others = most([value for name, value in gain.items() if name != "Score-CAM"])
    return margins(
        {
            "Score-CAM over the next": gain["Score-CAM"] - others,
            "Grad-CAM over Grad-CAM++": gain["Grad-CAM"] - gain["Grad-CAM++"],
        },
        shown(gain),
    )


def _insertion_does_not_separate(z: Evidence) -> Finding:
    found = z.all("I", REGIONS)
    spread = most(list(found.values())) - least(list(found.values()))
    return margins({"within 3": 3 - spread}, shown(found))


def _metrics_disagree(z: Evidence) -> Finding:
    bar, near = z.all("D_bar"), {"AI": 5, "AD_bar": 10, "AG": 1}
    others = [value for name, value in bar.items() if name != "IG"]
    rho = over_methods(z, "D_bar", "AI", METHODS)
    return margins(
        {
            "IG in the top two of D-bar": bar["IG"] - nth(others, 2),
            **{f"IG's {key} < {limit}": limit - z.of(key, "IG") for key, limit in near.items()},
            "Spearman of D-bar and AI <= 0.3": 0.3 - rho,
        },
        f"Spearman {rho[0]:.2f}; D-bar {shown(bar)}",
    )


def _predicted_for_the_label(z: Evidence) -> Finding:
    if not z.labelled:
        raise MissingError("the images have no labels, so the label is the predicted class")
    signs = {"AI": -1, "AD_bar": -1, "D_bar": -1, "I": 1}
    named = {
        f"{key} {'rises' if sign > 0 else 'falls'}, all": least(
            [sign * (z.of(key, m, target="predicted") - z.of(key, m)) for m in INFORMED]
        )
        for key, sign in signs.items()
    }
    named["AG rises, CAMs"] = least([z.of("AG", m, target="predicted") - z.of("AG", m) for m in CAMS])
    return margins(named)


def _least_probable(z: Evidence) -> Finding:
    bounds = {"I": (-1, 0.5, METHODS), "D_bar": (1, 99.5, METHODS), "AG": (-1, 0.5, METHODS)}
    bounds |= {"AI": (1, 75, INFORMED), "AD_bar": (1, 85, INFORMED)}
    named = {
        f"{key} {'>' if sign > 0 else '<'} {limit}": least(
            [sign * (z.of(key, m, target="least") - limit) for m in methods]
        )
        for key, (sign, limit, methods) in bounds.items()
    }
    fake = z.of("AI", FAKE, target="least")
    named["Fake-CAM's AI within 15 of 50"] = 15 - np.abs(fake - 50)
    return margins(named, f"Fake-CAM's AI {fake[0]:.1f}")


def _scores_follow_confidence(z: Evidence) -> Finding:
    follow = {key: {m: with_confidence(z, key, m) for m in METHODS} for key in ("I", "D_bar", "AG", "AD_bar")}
    deletion = {m: -rho for m, rho in follow["D_bar"].items()}  # D itself, not its complement
    named = {
        "with I, all": least(list(follow["I"].values())),
        "with D, all": least(list(deletion.values())),
        "with I over with D, all": least([follow["I"][m] - deletion[m] for m in METHODS]),
        "with AG, CAMs": least([follow["AG"][m] for m in CAMS]),
        "with AD, CAMs (negative)": least([follow["AD_bar"][m] for m in CAMS]),
    }
    return margins(named, f"Spearman with p: I {shown(follow['I'])}")


def _nearly_everything_is_marked(z: Evidence) -> Finding:
    others = [name for name in METHODS if name != "LIME"]
    entropy, pixels = z.all("Complexity", others), z.all("EC", others)
    ceiling = float(np.log(z.pixels))
    return margins(
        {
            "Complexity within 0.5 of ln n": 0.5 - most([np.abs(value - ceiling) for value in entropy.values()]),
            "EC over 0.98 n": least(list(pixels.values())) - 0.98 * z.pixels,
        },
        f"ln n {ceiling:.2f}; Complexity {shown(entropy)}; EC {shown(pixels)}",
    )


def _normalisation_decides(z: Evidence) -> Finding:
    """Not by more than any two methods differ, as the protocol adds: how far they do is told."""
    first, other = z.of("AD_bar", "IG"), z.of("AD_bar", "IG", signed=True)
    every = []
    for method in METHODS:
        with suppress(MissingError):
            every.append(z.of("AD_bar", method)[0])
    return margins(
        {"moves by more than 40": np.abs(other - first) - 40},
        f"IG {first[0]:.1f} to {other[0]:.1f}; methods lie up to {max(every) - min(every):.1f} apart",
    )


def _fake_never_moves(z: Evidence) -> Finding:
    found = {key: z.column(key) for key in ("MS", "AS")}
    values = np.concatenate([c.values[:, z.place(c, FAKE)] for c in found.values()])
    if np.isnan(values).all():
        raise MissingError("max- and avg-sensitivity of Fake-CAM are undefined for every image")
    worst = float(np.nanmax(values))
    return Finding(f"largest {worst:g}", worst == 0, "whether another explainer explains Table 3 stays open")


def _blurring_raises_increase(z: Evidence) -> Finding:
    named = {}
    for transform in ("mixup", "resize"):
        rise = {m: np.subtract(*z.under("AI", m, transform)) for m in [*GRADIENTS, *CAMS]}
        named[f"{transform}: gradients rise by 20"] = least([rise[m] for m in GRADIENTS]) - 20
        named[f"{transform}: CAMs change less"] = least([rise[m] for m in GRADIENTS]) - most(
            [np.abs(rise[m]) for m in CAMS]
        )
    return margins(named)


def _transforms_lower_insertion(z: Evidence) -> Finding:
    """Crop, Grad-CAM, D-bar is excepted: the paper's cell does not fit its neighbours."""
    named, falls, rises = {}, {}, {}
    for transform in TRANSFORMS:
        fall = {m: -np.subtract(*z.under("I", m, transform)) for m in METHODS}
        rise = {m: np.subtract(*z.under("D_bar", m, transform)) for m in METHODS}
        excepted = rise.pop("Grad-CAM")
        named[f"{transform}: I falls, all"] = least(list(fall.values()))
        named[f"{transform}: D-bar rises, all"] = least([*rise.values(), *([] if transform == "crop" else [excepted])])
        falls[transform], rises[transform] = np.mean(list(fall.values()), 0), np.mean(list(rise.values()), 0)
    for words, sizes in (("I falls least under crop", falls), ("D-bar rises least under crop", rises)):
        named[words] = least([sizes[t] for t in TRANSFORMS if t != "crop"]) - sizes["crop"]
    return margins(named, f"D-bar of Grad-CAM under crop, excepted: {excepted[0]:+.1f}")


def _fake_rises_under_rotation(z: Evidence) -> Finding:
    changed, before = z.under("AI", FAKE, "rotation")
    return margins({"AI rises": changed - before}, f"{before[0]:.1f} to {changed[0]:.1f}")


def _deletion_is_steadiest(z: Evidence) -> Finding:
    spread = {}
    for key in FIDELITY:
        values = [
            np.stack([z.under(key, m, "mixup")[1], *(z.under(key, m, t)[0] for t in TRANSFORMS)]) for m in METHODS
        ]
        cv = [v.std(0) / np.maximum(np.abs(v.mean(0)), 1e-9) for v in values]
        spread[key] = np.mean(cv, 0)
    rest = least([value for key, value in spread.items() if key != "D_bar"])
    return margins(
        {
            "D-bar varies least": rest - spread["D_bar"],
            "AG is among the two that vary most": spread["AG"] - nth([v for k, v in spread.items() if k != "AG"], 2),
        },
        f"coefficient of variation {shown(spread)}",
    )


def _identity(z: Evidence) -> Finding:
    worst, cells = 0.0, 0
    for target in TARGETS.values():
        for condition in ("", *z.conditions):
            try:
                three = [z.column(key, target, condition) for key in ("AG", "AI", "AD_bar")]
            except MissingError:
                continue
            for method in [m for m in three[0].methods if all(m in c.methods for c in three)]:
                gain, increase, drop = (c.means[c.methods.index(method)] for c in three)
                if not np.isnan([gain, increase, drop]).any():
                    cells += 1
                    worst = max(worst, gain - increase, increase - (1 - drop))
    if not cells:
        raise MissingError("the run holds no AD, AI and AG")
    return Finding(f"{cells} triples, largest excess {worst:.2g}", worst <= 1e-9)


def _quantus_monotonicity(_: Evidence) -> Finding:
    from saliometer.studies._quantus import monotonicity

    theirs, ours = monotonicity()
    holds = theirs == (True, True) and ours[0] != ours[1]
    return Finding(f"Quantus {theirs} for a map and its negation, ours {ours}", holds)


def _quantus_completeness(_: Evidence) -> Finding:
    from saliometer.studies._quantus import completeness

    theirs, ours = completeness()
    return Finding(f"Quantus {theirs}, our relative error {ours:.2g}", theirs is False and ours < 1e-5)


def _cams_rank_first(z: Evidence) -> Finding:
    keys = [*FIDELITY, "Monotonicity"]

    def mean_ranks(methods: Sequence[str]) -> dict[str, Draws]:
        ranks = [len(methods) + 1 - places(z.all(key, methods)) for key in keys]
        return dict(zip(methods, np.mean(ranks, 0), strict=True))

    found, without = mean_ranks(METHODS), mean_ranks(INFORMED)
    rest = least([value for name, value in found.items() if name not in CAMS])
    cams = np.mean([found[name] for name in CAMS], 0)
    return margins(
        {"each CAM before the best of the rest": rest - most([found[name] for name in CAMS]),
         "CAMs' mean rank before the best of the rest": rest - cams},
        f"mean ranks {shown(found)}; without Fake-CAM {shown(without)}",
        sure=["CAMs' mean rank before the best of the rest"],
    )  # fmt: skip


def _four_do_not_separate(z: Evidence) -> Finding:
    found = {key: z.column(key) for key in ("MS", "AS", "Sparseness", "Complexity")}
    places = {key: [z.place(column, m) for m in INFORMED] for key, column in found.items()}
    said, holds = [], True
    for key, column in found.items():
        count = int((~np.isnan(column.values[:, places[key]])).all(1).sum())
        if count < ENOUGH:
            raise MissingError(f"{count} images have {column.metric} of every method: wanted {ENOUGH} to compare pairs")
        pairs = list(combinations([column.methods[place] for place in places[key]], 2))
        wins = [column.wins(a, b) for a, b in pairs]
        apart = sum(win.low > 0.75 or win.high < 0.25 for win in wins)
        holds &= apart < len(pairs) / 2
        said.append(f"{key} {apart} of {len(pairs)} pairs")
    return Finding("separated: " + ", ".join(said), holds)


def _regions_are_favoured(z: Evidence) -> Finding:
    named, said = {}, []
    for key in ("AD_bar", "AI", "AG", "I"):
        column = z.column(key)
        every = (column, z.column("extent"), z.column("extent.largest"))
        whole = [flat(z, c, [FAKE, *INFORMED], column.images) for c in every]
        whole[0] = whole[0] * np.sign(METRICS[key][1])
        scores, areas, largest = (table[:, 1:] for table in whole)
        named[f"{key} with area"] = clustered_spearman(areas, scores)
        inside = mean_rho(areas, scores), mean_rho(areas.T, scores.T)
        piece, fake = clustered_spearman(largest, scores), clustered_spearman(whole[1], whole[0])
        said.append(
            f"{key}: within images {inside[0]:.2f}, within methods {inside[1]:.2f}, largest piece {piece[0]:.2f}, "
            f"with Fake-CAM {fake[0]:.2f}"
        )
    return margins(named, "; ".join(said), sure=list(named))


FIGURES = {  # of the report -> claims about what it shows
    "zhang_table_1": (1, 2, 3, 4, 5, 6, 7, 8, 9, 23),
    "zhang_table_2": (10, 11, 20),
    "zhang_table_3": (13, 15, 24),
    "zhang_table_4": (16, 17, 18, 19),
    "zhang_1": (25,),
    "zhang_2": (12,),
}


def _claim(number: int, text: str, paper: str, test: Callable[[Evidence], Finding]) -> Claim[Evidence]:
    figure = next((name for name, numbers in FIGURES.items() if number in numbers), "")
    return Claim(number, text, paper, test, figure)


CLAIMS = [
    _claim(1, "Fake-CAM is in the top two of ten on AI", "47.3, second", _fake_in_the_top_two),
    _claim(2, "Fake-CAM is first on AD-bar, above 99", "99.2", _fake_is_first_on_drop),
    _claim(3, "Fake-CAM is below every CAM, RISE and IBA on AG, under 3", "1.6", _gain_sees_through_fake),
    _claim(4, "Fake-CAM is last on D-bar, by more than 10", "last by 18.8", _deletion_puts_fake_last),
    _claim(5, "Insertion ranks Fake-CAM below regions, above gradients", "60.1, 7th", _insertion_puts_fake_between),
    _claim(
        6, "Gradient, IG, GuidedBP: AI < 5, AD-bar < 10, AG < 1", "at most 2.6, 5.1, 0.1", _gradients_score_near_zero
    ),
    _claim(7, "Score-CAM has the largest AG; then Grad-CAM, Grad-CAM++", "in this order", _score_cam_gains_most),
    _claim(8, "CAMs, RISE, LIME and IBA lie within 3 points on I", "within 3", _insertion_does_not_separate),
    _claim(
        9, "IG is in the top two of D-bar, near zero on AI, AD, AG", "88.4, first; Spearman <= 0.3", _metrics_disagree
    ),
    _claim(
        10,
        "Label to predicted: AI, AD-bar, D-bar fall, I rises; AG rises for CAMs",
        "I by 4.3-9.0",
        _predicted_for_the_label,
    ),
    _claim(11, "Least probable target: I < 0.5, D-bar > 99.5, AG < 0.5; AI > 75, AD-bar > 85", "so", _least_probable),
    _claim(
        12, "I rises with p, D less; for CAMs AG rises and AD falls with p", "so, by eye", _scores_follow_confidence
    ),
    _claim(
        13,
        "Complexity within 0.5 of ln n and EC >= 0.98 n but for LIME",
        "10.4-10.8; 49540-50175",
        _nearly_everything_is_marked,
    ),
    _claim(14, "(ours) Signed min-max moves IG's AD-bar by more than 40", "not printed", _normalisation_decides),
    _claim(15, "(ours) Fake-CAM's MS and AS are exactly 0", "0.96, impossible", _fake_never_moves),
    _claim(16, "MixUp and Resize raise gradients' AI by 20; CAMs change less", "so", _blurring_raises_increase),
    _claim(
        17,
        "Every transformation lowers I and raises D-bar; Crop least",
        "one cell excepted",
        _transforms_lower_insertion,
    ),
    _claim(18, "Fake-CAM's AI rises under Rotation", "so", _fake_rises_under_rotation),
    _claim(
        19, "(ours) D-bar varies least over transformations, AG among the most", "0.05 and 0.63", _deletion_is_steadiest
    ),
    _claim(20, "(ours) AG <= AI <= AD-bar, always", "one cell is swapped", _identity),
    _claim(21, "(ours) Quantus' Monotonicity is True for a map and its negation", "-", _quantus_monotonicity),
    _claim(22, "(ours) Exact IG on a linear model: Quantus' Completeness False", "-", _quantus_completeness),
    _claim(
        23,
        "The CAM family has the best mean rank over six fidelity metrics",
        "2.5, 2.8, 3.3, then 4.7",
        _cams_rank_first,
    ),
    _claim(24, "MS, AS, Sparseness and Complexity do not separate methods", "so", _four_do_not_separate),
    _claim(25, "Fidelity metrics favour large connected regions", "so, by eye", _regions_are_favoured),
]
