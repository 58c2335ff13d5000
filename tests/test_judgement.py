"""What rows say: means, paired intervals, ranks with ties, the verdict in words, and how definitions differ."""

import json

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import spearmanr

from saliometer import judgement, registry, results
from saliometer.judgement import Column, columns, holdings, moves, places, sentences
from saliometer.show_audit import moves_as_dicts, show_moves

RNG = np.random.default_rng(0)
NAN = float("nan")


def column(values: dict[str, object], metric: str = "insertion", definition: str = "d") -> Column:
    array = np.array([np.asarray(one, float) for one in values.values()]).T
    return Column(metric, definition, tuple(values), tuple(f"i{n}" for n in range(len(array))), array)


def rows(*cells: tuple[str, str, str, list[float]], condition: str = "", target: str = "predicted") -> pa.Table:
    blocks = []
    for metric, definition, method, values in cells:
        constant = dict.fromkeys(results.COLUMNS, "") | {
            "metric": metric, "definition": definition, "method": method, "condition": condition, "target": target,
        }  # fmt: skip
        ids = [f"i{n}" for n in range(len(values))]
        blocks.append(results.block(constant, ids, [""] * len(ids), np.array(values, float), [""] * len(ids)))
    return pa.concat_tables(blocks).unify_dictionaries()


# Facts of metrics


def test_every_metric_of_the_battery_has_a_kind_unless_it_only_describes():
    for name, entry in registry.metrics.items():
        if entry.facts.reads:
            assert (judgement.kind_of(name) == "") == entry.facts.descriptive
            assert judgement.better(name) == entry.facts.better
            for part, way in entry.facts.parts.items():
                assert judgement.better(f"{name}.{part}") == way
    kinds = {"average_drop": "fidelity", "iou": "location", "max_sensitivity": "robustness", "sparseness": "complexity"}
    assert {name: judgement.kind_of(name) for name in kinds} == kinds
    assert judgement.kind_of("residual") == judgement.kind_of("completeness") == "promise"
    assert judgement.kind_of("cost.seconds") == ""


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("average_drop", 0.1234, "12.3"), ("complexity", 3.14159, "3.14"), ("max_sensitivity", 0.25, "0.25"),
        ("effective_complexity", 2345.6, "2346"), ("average_drop", NAN, "-"), ("monotonicity", 0.5, "0.5"),
        ("pointing_game.chance", 0.25, "25.0"),
    ],
)  # fmt: skip
def test_fractions_are_printed_times_100_and_other_numbers_as_they_are(metric, value, text):
    assert judgement.number(metric, value) == text


def test_logits_are_no_fractions():
    """What a setting takes out of a metric's bounds is printed as it is."""
    assert judgement.number("local_accuracy", 3.2, "abs_max_minmax(output=logit,space=raw)") == "3.2"
    assert judgement.number("local_accuracy", 0.32, "abs_max_minmax(output=probability,space=raw)") == "32.0"


# Columns


def test_columns_hold_every_method_and_image_and_no_costs():
    table = rows(
        ("insertion", "d", "a", [1, 2, 3]), ("insertion", "d", "b", [4, 5]), ("insertion", "e", "a", [7, 8, 9]),
        ("cost.seconds", "insertion d", "a", [0.1]),
    )  # fmt: skip
    found = columns(table)
    assert [(c.metric, c.definition, c.methods) for c in found] == [
        ("insertion", "d", ("a", "b")), ("insertion", "e", ("a",)),
    ]  # fmt: skip
    assert found[0].images == ("i0", "i1", "i2")
    np.testing.assert_array_equal(found[0].values, [[1, 4], [2, 5], [3, NAN]])
    assert found[0].undefined("b") == 1
    assert [c.definition for c in columns(table, ["insertion"])] == ["d", "e"]
    assert columns(table, ["deletion"]) == []


def test_conditions_and_targets_are_kept_apart():
    plain, turned = rows(("insertion", "d", "a", [1])), rows(("insertion", "d", "a", [9]), condition="rotation")
    least = rows(("insertion", "d", "a", [5]), target="least")
    table = pa.concat_tables([plain, turned, least]).unify_dictionaries()
    assert columns(table, condition="rotation")[0].means.tolist() == [9]
    assert columns(table, target="predicted")[0].means.tolist() == [1]


def test_means_leave_out_what_is_undefined():
    one = column({"a": [1, 2, NAN], "b": [NAN] * 3})
    assert one.means[0] == 1.5
    assert np.isnan(one.means[1])
    assert one.estimate("a").value == 1.5
    assert np.isnan(one.estimate("b").low)


def test_an_interval_is_that_of_the_mean():
    values = RNG.normal(0.3, 1, 400)
    found = column({"a": values}).estimate("a")
    half = 1.96 * values.std() / 20
    assert found.value == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - half, abs=0.01)
    assert found.high == pytest.approx(values.mean() + half, abs=0.01)


def test_one_image_has_no_interval():
    found = column({"a": [0.4]}).estimate("a")
    assert found.value == 0.4
    assert np.isnan(found.low)
    assert not column({"a": [0.4], "b": [0.1]}).beats("a", "b")


def test_differences_are_paired_and_point_to_the_better():
    """Images differ much, the methods by a constant: only pairs can tell."""
    base = RNG.normal(0, 10, 30)
    shift = RNG.normal(0.5, 0.1, 30)
    for metric, better, worse in (("insertion", "b", "a"), ("deletion", "a", "b")):
        one = column({"a": base, "b": base + shift}, metric)
        gap = one.difference(better, worse)
        assert gap.low > 0.4
        assert gap.high < 0.6
        assert one.beats(better, worse)
        assert not one.beats(worse, better)
        assert one.wins(better, worse).value == 1


def test_pairs_that_are_not_both_defined_count_for_nobody():
    one = column({"a": [1, 2, NAN, 100], "b": [0, 1, 5, NAN]})
    assert one.difference("a", "b").value == 1
    assert one.wins("a", "b").value == 1
    nothing = column({"a": [NAN, NAN], "b": [1, 2]})
    assert np.isnan(nothing.difference("a", "b").value)
    assert not nothing.beats("b", "a")


def test_ranks_are_shared_where_the_paired_interval_holds_0():
    base = RNG.normal(0, 1, 60)
    jitter = RNG.normal(0, 0.1, 60)
    jitter -= jitter.mean()
    one = column({"a": base, "b": base + jitter + 1e-4, "c": base - 2, "d": [NAN] * 60})
    assert one.ranks(["a", "b", "c", "d"]) == {"b": 1, "a": 1, "c": 3}
    same = column({"a": base, "b": base})
    assert same.ranks(["a", "b"]) == {"a": 1, "b": 1}
    assert column({"a": base, "b": base + 1}, "deletion").ranks(["a", "b"]) == {"a": 1, "b": 2}


def test_the_order_of_images_and_methods_changes_nothing_in_an_estimate():
    values = {"a": RNG.normal(0, 1, 20), "b": RNG.normal(0, 1, 20)}
    one, two = column(values), column(dict(reversed(values.items())))
    assert one.estimate("a") == two.estimate("a")
    assert one.difference("a", "b").value == pytest.approx(-two.difference("b", "a").value)


# The verdict


def controls(level: float) -> dict[str, object]:
    return {name: level + RNG.normal(0, 0.01, 40) for name in ("random", "edge", "centre")}


def verdict(methods: dict[str, float], metric: str = "insertion", extra: dict[str, float] | None = None):
    values = {name: level + RNG.normal(0, 0.01, 40) for name, level in methods.items()}
    others = controls(0.5) | {name: level + RNG.normal(0, 0.01, 40) for name, level in (extra or {}).items()}
    return column({**values, **others}, metric), list(methods), list(others)


def test_a_method_that_beats_every_floor_is_named_first():
    one, methods, beside = verdict({"good": 0.9, "bad": 0.1})
    said = sentences([one], methods, beside)
    assert said[0] == (
        "good holds up best: better than every control that never sees the model (random, edge and centre) on 1 of 1 "
        "metric of fidelity."
    )
    assert said[1] == "bad beats them on none."
    held = holdings([one], methods, beside)
    assert [h.method for h in held] == ["good", "bad"]
    assert held[0].beaten == ("insertion",)
    assert held[1].lost == ("insertion",)


def test_a_method_without_any_value_has_no_rank_and_comes_last():
    one, methods, beside = verdict({"void": NAN, "bad": 0.1, "good": 0.9})
    held = holdings([one], methods, beside)
    assert [h.method for h in held] == ["good", "bad", "void"]
    assert places(held) == {"good": "1", "bad": "2"}
    assert sentences([one], methods, beside)[1:] == [
        "bad beats them on none.", "void has no value on any of them and no rank: see the warnings.",
    ]  # fmt: skip


def test_a_metric_without_a_value_counts_as_lost():
    first, methods, beside = verdict({"level": 0.5, "bad": 0.1, "void": 0.5})
    second, *_ = verdict({"level": 0.5, "bad": 0.1, "void": NAN}, "average_gain")
    held = holdings([first, second], methods, beside)
    assert [h.method for h in held] == ["level", "void", "bad"]
    assert held[1].void == ("average_gain",)
    assert places(held) == {"level": "1", "void": "2", "bad": "3"}


def test_methods_that_all_have_no_value_beside_controls_that_have_one():
    one, methods, beside = verdict({"a": NAN, "b": NAN})
    assert sentences([one], methods, beside) == ["a and b have no value on any metric: see the warnings."]
    assert places(holdings([one], methods, beside)) == {}


def test_equal_methods_share_a_rank():
    one, methods, beside = verdict({"a": 0.9, "b": 0.9, "c": 0.1})
    assert places(holdings([one], methods, beside)) == {"a": "1=", "b": "1=", "c": "3"}


def test_every_method_is_named_with_how_often_it_beats_the_controls():
    first, methods, beside = verdict({"good": 0.9, "middle": 0.9, "bad": 0.1})
    second, *_ = verdict({"good": 0.9, "middle": 0.1, "bad": 0.1}, "average_gain")
    said = sentences([first, second], methods, beside)
    assert said[0].startswith("good holds up best")
    assert said[1:] == ["middle beats them on 1.", "bad beats them on none."]


def test_why_a_method_that_beats_them_as_often_is_not_among_the_best():
    first, methods, beside = verdict({"good": 0.9, "close": 0.9, "bad": 0.1})
    second, *_ = verdict({"good": 0.5, "close": 0.1, "bad": 0.1}, "average_gain")
    said = sentences([first, second], methods, beside)
    assert said[0].startswith("good holds up best")
    assert said[1:] == ["close beats them on as many, but loses to one on more.", "bad beats them on none."]


def test_for_a_metric_where_lower_is_better_the_lower_is_better():
    one, methods, beside = verdict({"high": 0.9, "low": 0.1}, "deletion")
    assert [h.method for h in holdings([one], methods, beside)] == ["low", "high"]


def test_controls_that_have_no_scores_yet_are_not_said_to_be_as_good():
    one = column({"a": RNG.normal(0.9, 0.01, 40), "edge": RNG.normal(0.5, 0.01, 40)})
    assert sentences([one], ["a"], ["random", "edge", "centre"])[0].endswith("(edge) on 1 of 1 metric of fidelity.")
    alone = column({"a": RNG.normal(0.9, 0.01, 40)})
    assert sentences([alone], ["a"], ["random", "edge", "centre"]) == [
        "No control has scores, so nothing can be said of which method to trust."
    ]


def test_where_none_beats_the_controls_it_is_said():
    one, methods, beside = verdict({"a": 0.5, "b": 0.1})
    assert sentences([one], methods, beside) == [
        "No method is better than the controls (random, edge and centre) on the one metric of fidelity."
    ]


def test_a_metric_that_the_map_of_everything_wins_is_not_to_be_trusted_alone():
    one, methods, beside = verdict({"good": 0.8}, extra={"fake_cam": 0.99})
    assert sentences([one], methods, beside)[-1].startswith("On insertion the control fake_cam, which marks everything")


def test_complexity_and_robustness_do_not_make_a_verdict():
    one, methods, beside = verdict({"good": 0.9}, "sparseness")
    assert sentences([one], methods, beside) == [
        "No metric of fidelity was asked for, so nothing can be said of which method to trust."
    ]


# Definitions


def test_moves_show_the_order_under_each_definition():
    first = column({"a": [3, 3], "b": [2, 2], "c": [1, 1]}, "insertion", "one")
    second = column({"a": [1, 1], "b": [2, 2], "c": [3, 3]}, "insertion", "two")
    third = column({"a": [2, 2], "b": [2, 2], "c": [NAN, NAN]}, "insertion", "three")
    alone = column({"a": [2, 2], "b": [2, 2]}, "deletion", "one")
    found = moves([first, second, third, alone])
    assert [(move.metric, move.definition) for move in found] == [("insertion", d) for d in ("one", "two", "three")]
    assert found[0].ranks == {"a": 1, "b": 2, "c": 3}
    assert found[1].ranks == {"a": 3, "b": 2, "c": 1}
    assert found[0].agreement == pytest.approx(1)
    assert found[1].agreement == pytest.approx(-1)
    assert found[2].ranks["a"] == found[2].ranks["b"] == 1.5
    assert np.isnan(found[2].agreement)


def test_what_has_no_better_end_has_no_places_and_the_undefined_is_told_to_machines_as_null():
    one, two = (column({"a": [1, 1], "b": [1, 1]}, "iou.chance", name) for name in ("one", "two"))
    assert moves([one, two]) == []
    first = column({"a": [2, 2], "b": [1, 1], "c": [NAN, NAN]}, "insertion", "one")
    second = column({"a": [NAN, NAN], "b": [1, 1], "c": [NAN, NAN]}, "insertion", "two")
    found = json.loads(json.dumps(moves_as_dicts(moves([first, second])), allow_nan=False))
    assert found[1]["ranks"] == {"a": None, "b": 1, "c": None}
    assert (found[0]["agreement"], found[1]["agreement"]) == (pytest.approx(1), None)


def test_an_undefined_place_is_a_dash_and_comes_last(capsys):
    first = column({"a": [NAN, NAN], "b": [1, 1], "c": [2, 2]}, "insertion", "one")
    second = column({"a": [3, 3], "b": [1, 1], "c": [NAN, NAN]}, "insertion", "two")
    show_moves(moves([first, second]))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if line[:1] in (["a"], ["b"], ["c"])] == [
        ["c", "1", "-"],
        ["b", "2", "2"],
        ["a", "-", "1"],
    ]
    assert "nan" not in str(lines)


def test_agreement_is_spearmans():
    one, two = RNG.normal(size=12), RNG.normal(size=12)
    two[3] = two[5]
    found = judgement.correlation(judgement.average_ranks(one), judgement.average_ranks(two))
    assert found == pytest.approx(spearmanr(one, two).statistic)


def test_the_direction_of_a_metric_can_turn_with_a_parameter():
    """ROAD's own value is better when higher, that of the highest pixels removed first when lower."""
    values = {"a": [0.1] * 5, "b": [0.9] * 5}
    assert column(values, "road", "abs_max(noise=0.01,order=both)").better == "higher"
    turned = column(values, "road", "abs_max(noise=0.01,order=morf)")
    assert turned.better == "lower"
    assert turned.ranks(["a", "b"]) == {"a": 1, "b": 2}
    assert column(values, "road", "abs_max(noise=0.01,order=lerf)").ranks(["a", "b"]) == {"b": 1, "a": 2}


def test_of_several_definitions_the_first_is_judged():
    """Otherwise a metric would be won that is lost under another definition."""
    controls = {name: [0.5, 0.5, 0.5, 0.5] for name in ("random", "edge", "centre")}
    lost = column({"a": [0.1, 0.1, 0.2, 0.1]} | controls, "insertion", "first")
    won = column({"a": [0.9, 0.9, 0.8, 0.9]} | controls, "insertion", "second")
    (held,) = holdings([lost, won], ["a"], list(controls))
    assert (held.beaten, held.lost) == ((), ("insertion",))


def test_one_defined_value_has_no_interval():
    found = column({"a": [0.4] + [NAN] * 9}).estimate("a")
    assert found.value == pytest.approx(0.4)
    assert np.isnan([found.low, found.high]).all()
