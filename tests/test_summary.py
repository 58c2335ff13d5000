"""Summaries: means, intervals, ranks and verdicts worked out by hand on rows made by hand."""

import numpy as np
import pyarrow as pa
import pytest

from saliometer.summary import Estimate, Scores, Verdict, oddities, over_models, problems, standings, verdicts
from toys import rows

FR7, FR8, CR4 = ("simple-fr", "7"), ("simple-fr", "8"), ("complex-cr1", "4")
NAN = float("nan")


def scores(values, metric: str = "pafl", resamples: int = 500, **params) -> Scores:
    return Scores(rows(values, metric), metric, "clean", resamples, **params)


def noise(count: int, mean: float, deviation: float, seed: int) -> np.ndarray:
    """Exactly this mean and population standard deviation."""
    values = np.random.default_rng(seed).normal(size=count)
    return mean + deviation * (values - values.mean()) / values.std()


# Means


def test_buckets_weigh_the_same_however_many_images_they_have():
    """0.2 in one bucket of two images, 0.8 in one of six: 0.5, not 0.65."""
    one = scores({"a": {FR7: [0.1, 0.3], CR4: [0.8] * 6}})
    assert one.means[:, 0].tolist() == pytest.approx([0.2, 0.8])
    assert one.estimate("a", one.of("all")).value == pytest.approx(0.5)
    assert one.estimate("a", one.of("simple")).value == pytest.approx(0.2)
    assert one.estimate("a", one.of("complex-cr1")).value == pytest.approx(0.8)


def test_buckets_come_in_the_order_of_their_numbers():
    one = scores({"a": {("simple-fr", n): [0.0, 1.0] for n in ("11", "7", "10", "8")}})
    assert [bucket for _, bucket in one.cells] == ["7", "8", "10", "11"]


def test_a_bucket_that_is_undefined_for_everyone_is_left_out():
    one = scores({"a": {FR7: [0.4, 0.6], FR8: [NAN, NAN]}, "b": {FR7: [0.1, 0.1], FR8: [NAN, NAN]}})
    assert one.cells == [FR7]
    assert one.complete("a")
    assert one.complete("b")


def test_only_the_metric_and_definition_asked_for_are_read():
    table = pa.concat_tables(
        [
            rows({"a": {FR7: [0.1, 0.1]}}),
            rows({"a": {FR7: [0.9, 0.9]}}, "safl"),
            rows({"a": {FR7: [0.5] * 2}}, definition="authors"),
        ]
    )
    assert Scores(table, "pafl", "clean", 10).means.tolist() == [[0.1]]
    assert Scores(table, "safl", "clean", 10).means.tolist() == [[0.9]]
    assert Scores(table, "pafl", "authors", 10).means.tolist() == [[0.5]]


def test_the_spread_is_the_population_deviation_over_bucket_means():
    one = scores({"a": {FR7: [0.1, 0.3], FR8: [0.6, 0.6], CR4: [0.9, 0.9]}})
    assert one.spread("a", "simple") == pytest.approx(0.2)
    assert one.spread("a", "all") == pytest.approx(np.std([0.2, 0.6, 0.9]))


def test_a_group_without_buckets_has_no_estimate():
    one = scores({"a": {FR7: [0.1, 0.3]}})
    found = one.estimate("a", one.of("complex"))
    assert np.isnan([found.value, found.low, found.high]).all()


# Intervals


def test_the_interval_of_a_constant_is_that_constant():
    one = scores({"a": {FR7: [0.25] * 10, FR8: [0.75] * 4}})
    assert one.estimate("a", one.of("all")) == Estimate(0.5, 0.5, 0.5)
    assert one.estimate("a", one.of("all"), np.min) == Estimate(0.25, 0.25, 0.25)


def test_the_interval_of_a_mean_is_the_normal_approximations():
    """One bucket of 200 images with deviation 0.2: 1.96 x 0.2 / sqrt(200), to 4 % with 10,000 resamples."""
    one = scores({"a": {FR7: noise(200, 0.5, 0.2, 0)}}, resamples=10_000)
    found = one.estimate("a", [0])
    half = 1.96 * 0.2 / np.sqrt(200)
    assert found.value == pytest.approx(0.5)
    assert found.low == pytest.approx(0.5 - half, abs=0.04 * half)
    assert found.high == pytest.approx(0.5 + half, abs=0.04 * half)


def test_buckets_are_resampled_apart():
    """Two buckets: the variances of their means add, then a quarter; what lies between buckets adds nothing."""
    one = scores({"a": {FR7: noise(100, 0.1, 0.1, 1), CR4: noise(400, 0.9, 0.3, 2)}}, resamples=10_000)
    found = one.estimate("a", one.of("all"))
    half = 1.96 * np.sqrt(0.1**2 / 100 + 0.3**2 / 400) / 2
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.04)


def test_two_buckets_do_not_share_their_resamples():
    """The same 100 values in both: if their draws were the same, the mean of two would spread like one."""
    values = noise(100, 0.5, 0.2, 1)
    one = scores({"a": {FR7: values, FR8: values}}, resamples=4000)
    found = one.estimate("a", one.of("all"))
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * 0.2 / np.sqrt(200), rel=0.06)


def test_the_difference_of_two_methods_is_paired():
    """Both spread by 0.3 over images, one is always 0.05 above: the interval of the difference is a point."""
    values = noise(50, 0.5, 0.3, 3)
    one = scores({"a": {FR7: values}, "b": {FR7: values - 0.05}})
    found = one.difference("a", "b")
    assert [found.value, found.low, found.high] == pytest.approx([0.05] * 3, abs=1e-6)
    wide = one.estimate("a", [0])
    assert wide.high - wide.low > 0.1


def test_the_difference_of_unrelated_methods_has_both_their_variances():
    one = scores({"a": {FR7: noise(200, 0.6, 0.3, 4)}, "b": {FR7: noise(200, 0.5, 0.2, 5)}}, resamples=10_000)
    found = one.difference("a", "b")
    between = np.corrcoef(noise(200, 0, 1, 4), noise(200, 0, 1, 5))[0, 1]
    half = 1.96 * np.sqrt((0.3**2 + 0.2**2 - 2 * between * 0.3 * 0.2) / 200)
    assert found.value == pytest.approx(0.1)
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.04)


def test_resamples_follow_the_seed_and_the_bucket_and_not_the_company():
    values = {"a": {FR7: noise(30, 0.5, 0.2, 6), FR8: noise(30, 0.4, 0.2, 7)}}
    one, same, other = scores(values), scores(values), scores(values, seed=1)
    assert np.array_equal(one.resampled, same.resampled)
    assert not np.array_equal(one.resampled, other.resampled)
    beside = scores(values | {"b": {FR7: noise(30, 0.1, 0.1, 8), FR8: noise(30, 0.2, 0.1, 9)}})
    np.testing.assert_allclose(beside.resampled[:, :, 0], one.resampled[:, :, 0], rtol=1e-6)
    alone = scores({"a": {FR8: values["a"][FR8]}})
    np.testing.assert_allclose(alone.resampled[:, 0, 0], one.resampled[:, 1, 0], rtol=1e-6)


def test_the_order_of_rows_changes_no_number():
    values = {"a": {FR7: noise(30, 0.5, 0.2, 6)}, "b": {FR7: noise(30, 0.4, 0.2, 7)}}
    table = rows(values)
    shuffled = table.take(np.random.default_rng(0).permutation(len(table)))
    one, other = (Scores(each, "pafl", "clean", 200).estimate("a", [0]) for each in (table, shuffled))
    assert [one.value, one.low, one.high] == pytest.approx([other.value, other.low, other.high], abs=1e-6)


def test_one_image_a_bucket_leaves_no_interval():
    one = scores({"a": {FR7: [0.5], FR8: [0.7]}})
    found = one.estimate("a", one.of("all"))
    assert found.value == pytest.approx(0.6)
    assert np.isnan([found.low, found.high]).all()


# Ranks


def test_methods_that_could_be_equal_share_a_rank_and_the_next_is_counted_on():
    up, down = [1.0, 0.0] * 10, [0.0, 1.0] * 10
    one = scores({"c": {FR7: [0.1] * 20}, "b": {FR7: up}, "a": {FR7: down}})
    assert [(s.method, s.rank) for s in standings(one)] == [("a", 1), ("b", 1), ("c", 3)]


def test_a_tie_is_with_the_leader_and_not_with_the_neighbour():
    """b could equal a, c could equal b, but c is below a: ranks 1, 1, 3. 100 images, paired deviations of 0.2."""
    base = np.full(100, 0.5)
    p, q = np.tile([1, -1], 50), np.tile([1, 1, -1, -1], 25)
    values = {"a": base, "b": base - 0.03 + 0.2 * p, "c": base - 0.06 + 0.2 * q}
    one = scores({name: {FR7: value} for name, value in values.items()}, resamples=4000)
    assert one.difference("b", "c").low < 0 < one.difference("b", "c").high
    assert one.difference("a", "c").low > 0
    assert [(s.method, s.rank) for s in standings(one)] == [("a", 1), ("b", 1), ("c", 3)]


def test_controls_and_incomplete_methods_stand_in_the_table_without_a_rank():
    one = scores(
        {
            "oracle": {FR7: [1.0] * 4, FR8: [1.0] * 4},
            "good": {FR7: [0.8] * 4, FR8: [0.6] * 4},
            "poor": {FR7: [0.2] * 4, FR8: [0.2] * 4},
            "random": {FR7: [0.1] * 4, FR8: [0.1] * 4},
            "broken": {FR7: [0.9] * 4},
        }
    )
    found = standings(one, ["oracle", "random"])
    assert [(s.method, s.rank, s.control, s.complete) for s in found] == [
        ("oracle", 0, True, True),
        ("good", 1, False, True),
        ("poor", 2, False, True),
        ("random", 0, True, True),
        ("broken", 0, False, False),
    ]


def test_a_method_without_some_of_a_buckets_images_is_incomplete():
    """Its mean is over other images than everyone else's, so it must not be ranked beside them."""
    one = scores({"a": {FR7: [0.5, 0.1, 0.1, 0.1]}, "b": {FR7: [0.4]}})
    assert one.complete("a")
    assert not one.complete("b")
    assert [(s.method, s.rank) for s in standings(one)] == [("a", 1), ("b", 0)]


def test_a_standing_holds_group_means_and_the_worst_bucket():
    one = scores({"a": {FR7: [0.9, 0.7], FR8: [0.4, 0.4], CR4: [0.3, 0.1]}})
    (found,) = standings(one)
    assert found.mean.value == pytest.approx((0.8 + 0.4 + 0.2) / 3)
    assert found.simple.value == pytest.approx(0.6)
    assert found.complex.value == pytest.approx(0.2)
    assert found.worst.value == pytest.approx(0.2)
    assert found.worst_cell == CR4


@pytest.mark.parametrize("metric", ["safl", "siou", "smafl", "failure"])
def test_where_lower_is_better_the_lowest_leads_and_the_highest_bucket_is_the_worst(metric):
    one = scores({"a": {FR7: [0.9] * 3, CR4: [0.5] * 3}, "b": {FR7: [0.1] * 3, CR4: [0.3] * 3}}, metric)
    first, second = standings(one)
    assert (first.method, first.rank, first.worst_cell) == ("b", 1, CR4)
    assert (second.method, second.rank, second.worst_cell) == ("a", 2, FR7)
    assert first.worst.value == pytest.approx(0.3)


def test_a_method_without_any_value_stands_last():
    one = scores({"a": {FR7: [0.5, 0.5]}, "b": {FR7: [NAN, NAN]}})
    found = standings(one)
    assert [(s.method, s.rank, s.worst_cell) for s in found] == [("a", 1, FR7), ("b", 0, ("", ""))]


# Figure 7


def test_verdicts_count_buckets_with_both_kinds_of_object():
    """Of 7 (primary only), 8, 9, 10: success needs a mean above one half, failure more on the secondary."""
    cells = {n: ("simple-fr", n) for n in ("2", "7", "8", "9", "10")}
    pafl = {
        "a": {cells["7"]: [0.9, 0.9], cells["8"]: [0.6, 0.8], cells["9"]: [0.5, 0.5], cells["10"]: [0.1, 0.3]},
        "b": {cells["7"]: [0.0, 0.0], cells["8"]: [0.0, 0.0], cells["9"]: [0.2, 0.2], cells["10"]: [0.3, 0.3]},
    }
    safl = {
        "a": {cells["2"]: [1.0, 1.0], cells["8"]: [0.2, 0.2], cells["9"]: [0.5, 0.5], cells["10"]: [0.3, 0.3]},
        "b": {cells["2"]: [1.0, 1.0], cells["8"]: [0.1, 0.0], cells["9"]: [0.1, 0.1], cells["10"]: [0.4, 0.4]},
    }
    found = verdicts(scores(pafl), scores(safl, "safl"))
    assert found == {"a": {"simple-fr": Verdict(1, 1, 3)}, "b": {"simple-fr": Verdict(0, 2, 3)}}


def test_verdicts_are_given_setting_by_setting():
    pafl = {"a": {FR8: [0.9, 0.9], CR4: [0.1, 0.1]}}
    safl = {"a": {FR8: [0.1, 0.1], CR4: [0.8, 0.8]}}
    assert verdicts(scores(pafl), scores(safl, "safl"))["a"] == {
        "simple-fr": Verdict(1, 0, 1),
        "complex-cr1": Verdict(0, 1, 1),
    }


def test_a_bucket_where_a_method_failed_has_no_verdict():
    pafl = {"a": {FR7: [0.9] * 2, FR8: [0.9] * 2}, "b": {FR7: [0.8] * 2, FR8: [NAN] * 2}}
    safl = {"a": {FR7: [0.1] * 2, FR8: [0.1] * 2}, "b": {FR7: [0.1] * 2, FR8: [NAN] * 2}}
    found = verdicts(scores(pafl), scores(safl, "safl"))
    assert found["a"]["simple-fr"] == Verdict(2, 0, 2)
    assert found["b"]["simple-fr"] == Verdict(1, 0, 1)


# Odd maps


def odd_rows() -> pa.Table:
    notes = ["", "zero map", "random; nan map", "random; constant map", "zero map; no primary object"]
    values = [0.5, 0.0, 0.0, 0.1, NAN]
    return pa.concat_tables(
        [
            rows({"a": {FR7: values}}, notes=notes),
            rows({"a": {FR7: values}}, definition="authors", notes=notes),  # the same maps again
            rows({"a": {FR7: values}}, "safl", notes=notes),
            rows({"b": {FR7: [0.5, 0.5]}}),
        ]
    )


def test_odd_maps_are_counted_once_and_not_where_nothing_could_be_wrong():
    assert oddities(odd_rows()) == {"a": {"zero map": 1, "nan map": 1, "constant map": 1, "random": 2}}
    assert oddities(rows({"a": {FR7: [0.5]}}, "safl")) == {}


def test_problems_are_said_in_words():
    said = problems(odd_rows())
    assert len(said) == 4
    assert "a returned NaN or infinity in 1 map; it scores 0. Wanted finite numbers" in said
    assert "a returned a zero map for 1 image; it scores 0" in said
    assert problems(rows({"b": {FR7: [0.5, 0.5]}})) == []


# Several models of a setting


def of_models(*each: dict) -> pa.Table:
    """method -> cell -> values, for each model."""
    return pa.concat_tables(
        [rows(values, model=f"net(seed={seed})") for seed, values in enumerate(each)]
    ).unify_dictionaries()


def test_an_image_counts_once_with_its_mean_over_models():
    """Images 0.2 and 0.4 by one model, 0.4 and 0.8 by the other: 0.3 and 0.6."""
    one = Scores(of_models({"a": {FR7: [0.2, 0.4]}}, {"a": {FR7: [0.4, 0.8]}}), "pafl", "clean", 100)
    assert one.values[FR7][:, 0].tolist() == pytest.approx([0.3, 0.6])
    assert one.means[0, 0] == pytest.approx(0.45)


def test_a_model_without_a_value_does_not_count_and_without_any_there_is_none():
    table = of_models({"a": {FR7: [0.2, NAN, 0.5]}}, {"a": {FR7: [NAN, NAN, 0.7]}})
    assert Scores(table, "pafl", "clean", 10).values[FR7][:, 0].tolist() == pytest.approx([0.2, NAN, 0.6], nan_ok=True)


def test_models_of_different_settings_are_not_mixed():
    """As in a run of the shipped models: one network for simple settings, another for complex ones."""
    table = pa.concat_tables(
        [rows({"a": {FR7: [0.1, 0.3]}}, model="simple"), rows({"a": {CR4: [0.5, 0.7]}}, model="complex")]
    ).unify_dictionaries()
    assert over_models(table, "pafl", "clean") == {}
    assert Scores(table, "pafl", "clean", 10).means[:, 0].tolist() == pytest.approx([0.2, 0.6])


def test_the_interval_over_models_is_students_and_apart_from_that_over_images():
    """Means 0.4, 0.5, 0.6: standard error 0.1 / sqrt 3, t(2) = 4.303, so 0.5 +- 0.2484; images all alike."""
    found = over_models(of_models(*({"a": {FR7: [mean] * 5}} for mean in (0.4, 0.5, 0.6))), "pafl", "clean")["a"]
    assert found.images == Estimate(pytest.approx(0.5), pytest.approx(0.5), pytest.approx(0.5))
    assert (found.models.value, found.count) == (pytest.approx(0.5), 3)
    assert found.models.high - 0.5 == pytest.approx(0.2484, abs=1e-4)
    assert 0.5 - found.models.low == pytest.approx(0.2484, abs=1e-4)
    assert found.spread == pytest.approx(0.1)


def test_models_that_agree_leave_the_interval_to_the_images():
    values = noise(40, 0.5, 0.1, 0)
    found = over_models(of_models(*({"a": {FR7: values}} for _ in range(3))), "pafl", "clean")["a"]
    assert found.models.high - found.models.low == pytest.approx(0, abs=1e-12)
    half = (found.images.high - found.images.low) / 2
    assert half == pytest.approx(1.96 * 0.1 / np.sqrt(40), rel=0.1)


def test_settings_are_weighed_by_their_buckets_and_their_variances_add():
    """Two buckets of one setting, one of another: 2/3 and 1/3; (4/9 x 0.02 + 1/9 x 0.08) / 2, each with 1 degree."""
    low = {"a": {FR7: [0.4] * 2, FR8: [0.4] * 2, CR4: [0.3] * 2}}
    high = {"a": {FR7: [0.6] * 2, FR8: [0.6] * 2, CR4: [0.7] * 2}}
    found = over_models(of_models(low, high), "pafl", "clean")["a"]
    parts = [4 / 9 * 0.02 / 2, 1 / 9 * 0.08 / 2]
    variance, freedom = sum(parts), sum(parts) ** 2 / sum(part**2 for part in parts)
    assert freedom == pytest.approx(2)  # the two parts are equal
    assert found.models.high - found.models.value == pytest.approx(4.3027 * variance**0.5, rel=1e-3)


def test_with_one_model_in_some_setting_the_interval_over_models_is_unknown():
    table = of_models({"a": {FR7: [0.4] * 2, CR4: [0.3] * 2}}, {"a": {FR7: [0.6] * 2}})
    found = over_models(table, "pafl", "clean")["a"]
    assert np.isnan(found.models.low)
    assert found.images.value == pytest.approx((0.5 + 0.3) / 2)
    assert over_models(table, "pafl", "clean", "simple")["a"].models.high > 0.5
