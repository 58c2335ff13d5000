"""SMERF's claims on made-up rows: each verdict follows the numbers it is about."""

from functools import cache

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from saliometer import results  # noqa: F401
from saliometer.engine.presets import SMERF
from saliometer.report.figures import figures
from saliometer.studies import _smerf_claims
from saliometer.studies._smerf_claims import CLAIMS, claims, judged
from saliometer.studies._smerf_conditions import WHOLE
from saliometer.studies._smerf_paper import stored
from saliometer.studies._smerf_table import STRONG, Table, scored
from saliometer.studies._smerf_tables import beside
from saliometer.tasks.textbox import BUCKETS
from smerf_claims_toys import PRIMARY, SECONDARY
from smerf_claims_toys import table as made_up
from toys import rows


@cache
def papers() -> tuple[pa.Table, list[tuple[str, str, str, int]]]:
    """The paper's means in every bucket, and each row's metric, method, setting and bucket."""
    cells: list[tuple[str, str, str, int]] = []

    def value(metric: str, name: str, setting: str, bucket: int) -> float:
        cells.append((metric, name, setting, bucket))
        mean = stored(metric, setting.split("-")[0], "mean", SMERF[name])
        return 0.3 if mean != mean else mean

    return made_up(value, ("authors", "clean"), metrics=("pafl", "safl", "piou")), cells


def table(change=lambda metric, method, setting, bucket, value: value) -> Table:
    """The paper's means, changed where asked."""
    made, cells = papers()
    values = made["value"].to_pylist()
    changed = [change(*cell, value) for cell, value in zip(cells, values, strict=True)]
    place = made.column_names.index("value")
    made = made.set_column(place, made.schema.field(place), pa.array(changed, made["value"].type))
    found = Table(made, "authors")
    found.rows = made  # type: ignore[attr-defined]
    return found


def verdict(number: int, made: Table) -> bool | None:
    return next(claim for claim in CLAIMS if claim.number == number).test(made).holds


@pytest.mark.parametrize("number", [2, 5, 6, 7, 14, 20, 25, 26])
def test_claims_that_the_papers_means_bear_out(number):
    assert verdict(number, table())


def test_claim_3_fails_on_the_papers_own_numbers():
    assert not verdict(3, table())  # G and GBP rise
    falling = table(
        lambda metric, name, setting, bucket, v: v / 2 if name in ("G", "GBP") and "complex" in setting else v
    )
    assert verdict(3, falling)


@pytest.mark.parametrize(
    ("number", "metric", "name", "setting", "value"),
    [
        (2, "piou", "DT", "complex", 0.9), (5, "piou", "LRP-z", "complex", 0.6), (6, "pafl", "DL-R", "simple", 0.4),
        (6, "pafl", "GBP", "simple", 0.3), (7, "pafl", "D-SHAP", "complex", 0.8), (14, "pafl", "SG", "simple-nr", 0.6),
        (20, "pafl", "SG", "complex", 0.12), (25, "pafl", "Edge", "simple", 0.3), (26, "pafl", "LRP-z", "complex", 0.6),
    ],
)  # fmt: skip
def test_one_number_turns_a_claim(number, metric, name, setting, value):
    def changed(*cell):
        return value if cell[:2] == (metric, name) and cell[2].startswith(setting) else cell[4]

    assert not verdict(number, table(changed))


def telling(metric, name, setting, bucket):
    """Rows that bear out the claims on drops, spreads and second objects."""
    complex_, shown = setting.startswith("complex"), sum(BUCKETS[bucket].present)
    if metric == "safl":
        return 0.1 + 0.02 * shown + 0.1 * complex_
    if metric == "piou":
        return 0.4 - 0.01 * shown
    if complex_:
        return 0.05 if setting != "complex-cr2" else 0.6 if bucket in (5, 6) else 0.4
    return 0.79 - 0.1 * shown + 0.03 * (name == "DL-R") if name in STRONG else 0.4 - 0.1 * shown


TURNED = [  # claim; metric, method, setting and buckets whose value is another; what is said then
    (4, ("pafl", "GBP", "complex", range(13), 0.3), "14 of 15; not GBP 0.10 to 0.30"),
    (8, ("safl", "", "complex", range(13), 0.1), "0 of 15"),
    (9, ("pafl", "IG", "complex", range(13), 0.3), "6 of 7; not IG"),
    (10, ("pafl", "DT", "simple-fr", (8, 9, 11, 12), 0.5), "29 of 30; not DT simple-fr 0.50 to 0.25"),
    (10, ("safl", "SG", "simple-nr", (8, 9, 11, 12), 0.005), "lowest SAFL SG simple-nr 0.005"),
    (10, ("safl", "LRP-z", "simple-fr", (8, 9, 11, 12), 0.0), "lowest SAFL LRP-z simple-fr 0.000"),
    (11, ("pafl", "G", "simple-nr", (11, 12), 0.35), "29 of 30; not G simple-nr 0.30/0.20/0.35"),
    (11, ("safl", "G", "simple-nr", (11, 12), 0.05), "29 of 30; not G simple-nr 0.30/0.20/0.10"),
    (12, ("piou", "IG", "simple-fr", (11, 12), 0.2), "6 of 7; not IG 0.20 to 0.19"),
    (13, ("pafl", "DT", "simple", range(13), 0.55), "DT 0.55, DL-R 0.52"),
    (13, ("pafl", "DL-R", "simple-nr", (12,), 0.5), "DL-R 0.50, I*G 0.49"),
    (16, ("pafl", "", "complex-cr2", (5, 6), 0.5), "5,6: 0 of 7 above 0.5"),
    (16, ("pafl", "DL-RC", "complex-cr2", (11, 12), 0.6), "not DL-RC (11, 12) 0.60"),
]


@pytest.mark.parametrize("number", sorted({number for number, *_ in TURNED}))
def test_made_up_rows_bear_out_the_claims_on_drops_and_second_objects(number):
    assert verdict(number, Table(made_up(telling), "clean")) is True


@pytest.mark.parametrize(("number", "change", "said"), TURNED)
def test_one_change_turns_the_claims_on_drops_and_second_objects(number, change, said):
    metric, name, setting, buckets, value = change

    def changed(*cell):
        hit = cell[0] == metric and name in ("", cell[1]) and cell[2].startswith(setting) and cell[3] in buckets
        return value if hit else telling(*cell)

    found = next(claim for claim in CLAIMS if claim.number == number).test(Table(made_up(changed), "clean"))
    assert found.holds is False
    assert said in found.ours


def test_full_success_is_found_setting_by_setting():
    low = lambda metric, name, setting, bucket, v: min(v, 0.45) if metric == "pafl" and "complex" in setting else v  # noqa: E731
    assert not verdict(15, table(low))

    def lucky(metric, name, setting, bucket, v):
        return (
            0.7
            if (metric, name, setting) == ("pafl", "LRP-eps", "complex-fr")
            else low(metric, name, setting, bucket, v)
        )

    assert verdict(15, table(lucky))


def test_all_claims_are_printed_with_both_definitions():
    lines = claims(table().rows).splitlines()  # type: ignore[attr-defined]
    assert [int(line.split("|")[1]) for line in lines[2:]] == [claim.number for claim in CLAIMS]
    assert all(line.count("**") == 4 for line in lines[2:])


def test_the_numbers_beside_the_papers_name_every_method():
    text = beside(table().rows)  # type: ignore[attr-defined]
    assert all(f"| {name} | paper |" in text for name in SMERF)
    assert text.endswith("- none") or "Differences" in text
    assert "| I*G | paper | 0.63 | 0.39 | 0.50 | 0.50 | 0.43 | - | - | - | - |" in text


def test_scored_buckets_are_those_of_the_protocol():
    for setting, buckets in PRIMARY.items():
        assert scored("pafl", setting) == scored("piou", setting) == scored("pmafl", setting) == list(buckets)
        assert scored("safl", setting) == scored("smafl", setting) == list(SECONDARY[setting])
        assert scored("siou", setting) == [bucket for bucket in buckets if bucket in SECONDARY[setting]]


def found(made: pa.Table, number: int) -> dict[str, object]:
    return next(claim for claim in judged(made) if claim["id"] == number)


def test_a_claim_is_judged_under_both_definitions_and_clean_decides():
    made = table().rows  # type: ignore[attr-defined]
    told = found(made, 20)
    assert told["holds"] is True
    assert told["ours"] == (
        "clean: holds, simple 0.11 to 0.15, complex 0.12 to 0.04\n"
        "authors: holds, simple 0.11 to 0.15, complex 0.12 to 0.04"
    )
    assert told["figure"] == "smerf_8a"
    assert told["paper"] == "simple 0.11 to 0.155, complex 0.125 to 0.045; their numbers: holds"
    assert found(made, 3)["paper"] == "IG 0.63 to 0.50; their numbers: 13 of 15; not G, GBP"
    assert found(made, 14)["paper"] == "their numbers: holds"
    assert told["why"] == ""
    clean = pc.field("definition") == "clean"
    lower = pc.if_else(pc.equal(made["definition"], "clean"), 0.5, made["value"])
    changed = made.set_column(made.column_names.index("value"), "value", lower)
    told = found(changed, 20)
    assert told["holds"] is False
    assert told["ours"].startswith("clean: fails, simple 0.50 to 0.50, complex 0.50 to 0.50\nauthors: holds")
    only = found(changed.filter(~clean), 20)
    assert only["holds"] is True
    assert only["ours"] == "authors: holds, simple 0.11 to 0.15, complex 0.12 to 0.04"


def test_a_run_without_a_method_leaves_its_claims_open():
    made = table().rows.filter(pc.field("method") != SMERF["DCN"])  # type: ignore[attr-defined]
    told = found(made, 3)
    assert (told["holds"], told["ours"], told["why"]) == (None, "", "the run lacks deconvnet")
    assert found(made, 9)["holds"] is not None  # the strong methods are there
    assert _smerf_claims.testable(judged(made))


def test_a_run_without_a_setting_leaves_its_claims_open():
    made = table().rows.filter(pc.field("setting") != "complex-cr3")  # type: ignore[attr-defined]
    assert found(made, 20)["why"] == "the run lacks complex-cr3"
    assert found(made, 6)["holds"] is True  # of simple reasoning alone


def test_a_run_without_a_metric_or_a_bucket_leaves_its_claims_open():
    made = table().rows  # type: ignore[attr-defined]
    told = found(made.filter(pc.field("metric") != "piou"), 2)
    assert (told["holds"], told["why"]) == (None, "the run has no PIOU of gradient")
    told = found(made.filter(~((pc.field("setting") == "simple-fr") & (pc.field("bucket") == "9"))), 14)
    assert (told["holds"], told["why"]) == (None, "gradient has no PAFL in simple-fr, bucket 9")


def test_a_run_of_something_else_tests_nothing():
    told = judged(rows({"mine": {("simple-fr", "7"): [0.5]}}))
    assert [claim["holds"] for claim in told] == [None] * len(CLAIMS)
    assert not _smerf_claims.testable(told)
    told = judged(rows({"gradient": {("simple-fr", "7"): [0.5]}}, definition="other"))
    assert told[0]["why"] == "the run has no clean or authors"


def test_what_is_missing_is_printed():
    lines = claims(rows({"gradient": {("simple-fr", "7"): [0.5]}})).splitlines()
    assert all(line.count("**open**: the run lacks") == 2 for line in lines[2:])


def test_every_claim_names_a_figure_of_the_report():
    there = {one.name for one in figures("bench") + figures("smerf")}
    assert {claim.figure for claim in [*CLAIMS, *WHOLE] if claim.figure} <= there
