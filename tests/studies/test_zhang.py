"""`saliometer reproduce zhang` from end to end on a small network, its tables and its figures."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from saliometer.cli import app
from saliometer.engine.presets import ZHANG
from saliometer.engine.run import opened
from saliometer.pages import written
from saliometer.report import study as report
from saliometer.studies import zhang
from saliometer.studies._claims import MissingError
from saliometer.studies._zhang_evidence import FAKE, METHODS
from saliometer.studies._zhang_figures import figure_1, figure_2
from saliometer.studies._zhang_tables import markdown, paper
from saliometer.studies.zhang import VARIATIONS, Scale, Study, reproduce
from zhang_toys import block, evidence, printed, rows_of

NET = """
import torch
from torch import nn

def build():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 8, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(8, 3),
    )
"""
LEAST = {"RISE": "masks=8", "LIME": "samples=8,segments=grid", "IG": "steps=4", "IBA": "steps=2,copies=1"}
SIDE = 32
TINY = Scale("", SIDE, 4, 4, 2, 4, 4, 1, 1, LEAST, tuple(VARIATIONS[place] for place in (0, 1, 4, 8, 12)))
SECONDS = [text.replace("mixup", "mixup_second") for text in TINY.variations if text.startswith("mixup")]
SCALED = {"mean": (0.5,), "std": (0.25,)}  # the network's own file does not say how it takes pixels
FOLDERS = ["label", "predicted", "least", "shaken"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A network in a file and four pictures with labels, and scales for them."""
    folder = tmp_path_factory.mktemp("zhang")
    (folder / "net.py").write_text(NET)
    (folder / "photos").mkdir()
    rng = np.random.default_rng(0)
    for name in "abcd":
        picture = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).resize((40, 36))
        picture.save(folder / "photos" / f"{name}.png")
    (folder / "labels.csv").write_text("file,class_index\na.png,0\nb.png,1\nc.png,2\nd.png,1\n")
    tiny = replace(TINY, model=f"{folder / 'net.py'}:build")
    crop = replace(tiny, variations=(VARIATIONS[12],))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zhang, "SCALES", {"tiny": tiny, "crop": crop, "paper": replace(tiny, images=0)})
        yield folder


def rerun(place: Path, out: str = "run", **more: object) -> Study:
    given = {"images": str(place / "photos"), "labels": place / "labels.csv", "device": "cpu"} | SCALED | more
    return reproduce(place / out, "tiny", **given)


@pytest.fixture(scope="module")
def study(place: Path) -> Study:
    found = rerun(place)
    found.write()
    written([found.folder])
    return found


def passes(folder: Path) -> dict[str, int]:
    return {path.name: opened(path).manifest["passes"] for path in sorted(folder.iterdir()) if path.is_dir()}


def values(study: Study) -> list[tuple]:
    names = ("method", "metric", "definition", "target", "condition", "sample", "value")
    rows = [tuple(row[name] for name in names) for row in study.rows.to_pylist()]
    return sorted((*row[:-1], repr(row[-1])) for row in rows if not row[1].startswith("cost."))


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_every_part_of_the_study_is_run_for_all_ten_methods(study):
    assert not study.failed
    rows = [row for row in study.rows.to_pylist() if not row["metric"].startswith("cost.")]
    assert {row["target"] for row in rows} == {"label", "predicted", "least"}
    assert {row["condition"] for row in rows} == {"", *TINY.variations, *SECONDS}
    methods = set(study.evidence.specs.values())
    assert list(study.evidence.specs) == METHODS == list(ZHANG)
    for condition, images in [("", 4), *((variation, 4) for variation in (*TINY.variations, *SECONDS))]:
        drops = [r for r in rows if (r["metric"], r["condition"], r["target"]) == ("insertion", condition, "label")]
        assert {row["method"] for row in drops} >= methods
        assert len({row["sample"] for row in drops}) == images
    assert len({row["sample"] for row in rows if row["metric"] == "max_sensitivity"}) == 2
    assert study.evidence.pixels == SIDE * SIDE


def test_all_claims_are_judged(study):
    claims = study.claims()
    assert [claim["id"] for claim in claims] == list(range(1, 26))
    verdicts = {claim["id"]: claim["holds"] for claim in claims}
    assert verdicts[15] is True  # Fake-CAM never moves
    assert verdicts[20] is True  # AG <= AI <= AD-bar
    assert verdicts[10] is not None  # there are labels
    printed = [{key: value for key, value in claim.items() if key != "figure"} for claim in claims]
    assert json.loads((study.folder / "claims.json").read_text()) == {"claims": printed}


def test_scores_of_other_targets_come_out_of_the_labels_passes(study):
    spent = {
        (row["target"], row["method"].partition("(")[0]): row["value"]
        for row in study.rows.to_pylist()
        if row["metric"] == "cost.passes" and row["definition"] == "maps" and not row["condition"]
        if row["sample"] == "0-4"  # not the few images that are shaken
    }
    for method in ("rise", "lime"):
        assert spent["label", method] >= 4 * 8
        assert spent["predicted", method] == spent["least", method] == 0


def test_a_blends_second_class_is_scored_beside_its_first(study):
    found = study.evidence.column("insertion", condition=SECONDS[0])
    first = study.evidence.column("insertion", condition=TINY.variations[0])
    assert found.images == first.images
    assert not np.allclose(found.values, first.values)
    assert study.evidence.variations("mixup") == sorted(TINY.variations[:2])  # those of Table 4
    maps = [
        row["value"]
        for row in study.rows.to_pylist()
        if (row["metric"], row["definition"], row["condition"]) == ("cost.passes", "maps", SECONDS[0])
        if row["method"].startswith(("rise", "lime"))
    ]
    assert maps == [0, 0]


def test_the_same_call_runs_nothing_again(study, place, monkeypatch):
    before, known = passes(study.folder), values(study)
    assert all(before.values())
    monkeypatch.setattr("saliometer.engine.audit_units.judge", lambda *args: pytest.fail("a method was run again"))
    again = rerun(place)
    assert passes(study.folder) == before
    assert values(again) == known


def test_what_is_missing_is_done_and_the_rest_stays(study, place):
    shutil.copytree(study.folder, place / "stopped")
    shutil.rmtree(place / "stopped" / "least")
    run = opened(place / "stopped" / "shaken")
    (part,) = (path for path in run.folder.rglob("*.parquet") if run.slug(study.evidence.specs["RISE"]) in str(path))
    part.unlink()
    again = rerun(place, "stopped")
    assert values(again) == values(study)
    before, after = passes(study.folder), passes(place / "stopped")
    assert {name for name in before if before[name] != after[name]} <= {"least", "shaken"}


def test_tables_stand_beside_the_papers(study):
    text = (study.folder / "tables.md").read_text()
    for number in (1, 2, 3, 4):
        assert f"**Table {number}**" in text
    assert text.count("| Fake-CAM |") == 1 + 3 + 1 + 4 + 5  # Table 4 by transform, and by variation
    assert text.count("| mean p of the class | 0.") == 5
    assert "each variation of mixup, explained and scored for the second class: AI / AD_bar" in text
    assert "| 0.00 ±0.00 / 0.96 | 0.00 ±0.00 / 0.96 |" in text  # Fake-CAM's MS and AS
    assert f"| {SIDE * SIDE - 1} ±0 / 50175 |" in text


@pytest.mark.parametrize("name", ["figure1.png", "figure2.png"])
def test_figures_show_something(study, name):
    path = study.folder / name
    assert path.stat().st_size > 10_000
    with Image.open(path) as picture:
        colours = np.asarray(picture.convert("RGB").resize((400, 400))).reshape(-1, 3)
    assert len(np.unique(colours @ [65536, 256, 1])) > 50
    assert 0.005 < (colours < 250).any(1).mean() < 0.95


def test_the_report_holds_every_figure_and_claim(study):
    text = (study.folder / "report.html").read_text(encoding="utf-8")
    assert "Ten methods over fidelity, robustness and complexity, rerun" in text
    for name in ("zhang_table_1", "zhang_table_2", "zhang_table_3", "zhang_table_4", "zhang_1", "zhang_2"):
        assert f'id="{name}"' in text
    book = report.book(study.folder)
    assert [claim["id"] for claim in book.claims] == list(range(1, 26))
    assert {claim["figure"] for claim in book.claims} == {"", *(one.figure.name for one in book.figures)}
    assert {name for name, *_ in (line.partition(":") for line in dict(book.provenance)["Parts"])} >= set(FOLDERS)


def test_the_command_prints_claims_as_json(study, place, monkeypatch):
    monkeypatch.setattr(zhang, "figure_1", lambda z, path: path)  # slow, and there already
    monkeypatch.setattr(zhang, "figure_2", lambda z, path: path)
    ready = ["--images", place / "photos", "--labels", place / "labels.csv", "--device", "cpu", "--out", study.folder]
    ready += ["--mean", "0.5", "--std", "0.25"]
    found = call("reproduce", "zhang", "--scale", "tiny", *ready, "--json")
    assert found.exit_code == 0, found.output
    claims = json.loads(found.stdout)["claims"]
    assert len(claims) == 25
    for claim in claims:
        assert list(claim) == ["id", "text", "paper", "ours", "holds", "why"]
        assert claim["holds"] in (True, False, None)
        assert claim["holds"] is not None or claim["why"]
    told = call("reproduce", "zhang", "--scale", "tiny", *ready)
    assert told.exit_code == 0
    assert "figure1.png" in told.stdout
    assert " hold, " in told.stdout


def test_folders_named_as_the_models_classes_are_its_labels(place, tmp_path, monkeypatch):
    """As an audit reads them, and what cannot be read so is told before anything is written."""

    class BegunError(Exception):
        pass

    seen: list[dict[str, int]] = []

    def begun(loaded, source, **given: object) -> None:
        assert loaded.names == ("tench", "golden retriever", "owl")  # for the report
        seen.append(dict(zip(source.ids, source.labels.tolist(), strict=True)))
        raise BegunError

    monkeypatch.setattr(zhang, "audit", begun)
    monkeypatch.setattr(zhang, "class_names", lambda asked, loaded: ("tench", "golden retriever", "owl"))
    for name in ("owl", "golden_retriever"):
        (tmp_path / "named" / name).mkdir(parents=True)
        shutil.copy(place / "photos" / "a.png", tmp_path / "named" / name / "a.png")
    given = {"images": str(tmp_path / "named"), "labels": None}
    with pytest.raises(BegunError):
        rerun(place, "named", **given)
    assert seen == [{"golden_retriever/a.png": 1, "owl/a.png": 2}]
    (tmp_path / "named" / "owl").rename(tmp_path / "named" / "sparrow")
    with pytest.raises(ValueError, match="no class of model 'build' has the name 'sparrow'"):
        rerun(place, "unnamed", **given)
    assert not (place / "unnamed").exists()


def test_without_images_photographs_are_taken_and_claims_about_labels_stay_open(place):
    said: list[str] = []
    found = reproduce(place / "photographs", "crop", device="cpu", say=said.append, **SCALED)
    assert not found.failed
    assert "no labels" in " ".join(said)
    assert not (place / "photographs" / "predicted").exists()
    claims = {claim["id"]: claim for claim in found.claims()}
    assert claims[10]["holds"] is None
    assert "labels" in claims[10]["why"]
    assert claims[16]["holds"] is None
    assert "mixup" in claims[16]["why"]
    assert claims[11]["holds"] is not None
    text = markdown(found.evidence)
    assert "crop" in text
    assert "rotation" not in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["smurf"], "there is no study 'smurf'"),
        (["zhang", "--scale", "huge"], "there is no scale 'huge'"),
        (["zhang", "--scale", "paper"], "scale 'paper' wants images"),
        (["zhang", "--scale", "tiny", "--mean", "0.5", "--std", "0.25", "--images", "nowhere"], "nowhere"),
        (["zhang", "--scale", "tiny"], "pass --mean, --std (--mean 0 --std 1 for pixels from 0 to 1)"),
        (["yona", "--mean", "0"], "the study yona has no --mean"),
        (["zhang", "--scale", "tiny", "--device", "tpu"], "tpu"),
    ],
)
def test_mistakes_are_told_in_one_sentence(place, words, said, tmp_path):
    found = call("reproduce", *words, "--out", tmp_path / "run")
    assert found.exit_code == 2
    assert said in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_a_study_that_was_stopped_is_shown_as_one(place, monkeypatch):
    def stop(*_: object, **given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(zhang, "audit", stop)
    with pytest.raises(KeyboardInterrupt):
        rerun(place, "not_begun")
    found = call("show", place / "not_begun")
    assert found.exit_code == 0, found.output
    assert "No part of it is finished" in found.stdout


def test_a_folder_of_something_else_stays_as_it_is(study, tmp_path):
    shutil.copytree(study.folder / "label", tmp_path / "run")
    kept = {path.name for path in (tmp_path / "run").iterdir()}
    found = call("reproduce", "zhang", "--out", tmp_path / "run")
    assert found.exit_code == 2
    assert "holds a run, and a study would write over its report" in found.stderr
    assert {path.name for path in (tmp_path / "run").iterdir()} == kept


@pytest.mark.parametrize(
    ("told", "said"),
    [({"study": "smerf"}, "study 'smerf', you asked for 'zhang'"), ({"scale": "crop"}, "scale 'crop'")],
)
def test_another_study_is_not_written_over(place, tmp_path, told, said):
    text = json.dumps({"study": "zhang", "scale": "tiny"} | told)
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(ValueError, match=said):
        reproduce(tmp_path, "tiny", images=str(place / "photos"), device="cpu", **SCALED)
    assert (tmp_path / "study.json").read_text() == text


# Tables from rows


def test_tables_of_the_papers_own_rows_are_the_papers():
    text = markdown(evidence(rows_of()))
    assert "| Fake-CAM | 47.3 ±0.0 / 47.3 | 99.2 ±0.0 / 99.2 | 1.6 ±0.0 / 1.6 | 60.1 ±0.0 / 60.1 |" in text
    assert (
        "| LIME | 0.93 ±0.00 / 0.93 | 0.93 ±0.00 / 0.93 | 72.3 ±0.0 / 72.3 | 9.70 ±0.00 / 9.7 | 26506 ±0 / 26506.4 |"
        in text
    )
    assert "| Fake-CAM | 47.4 ±0.0 / 47.4 | 90.5 ±0.0 / 2 | 2.0 ±0.0 / 90.5 |" in text  # the swapped cells
    assert len(paper()) == 60 + 150 + 50 + 200


def test_a_transform_is_averaged_over_its_variations():
    crops = {
        "crop(area=0.8)": [0.2, 0.4],
        "crop(area=0.6)": [0.4, 0.6],
        "crop(area=0.4)": [0.6, 0.8],
        "crop(area=0.25)": [0.0, 0.2],
    }
    blocks = [block("insertion", m, [0.5, 0.7]) for m in METHODS]
    blocks += [block("insertion", m, some, condition=crop) for crop, some in crops.items() for m in METHODS]
    z = evidence(blocks)
    changed, before = z.under("I", FAKE, "crop")
    assert changed[0] == pytest.approx(40.0)
    assert before[0] == pytest.approx(60.0)
    np.testing.assert_allclose((before - changed), 20.0)  # paired: every resample draws the same images
    text = markdown(z)
    assert "| RISE | - / 27.8 | - / 69.4 | - / 7.5 | 40.0 ±10.0 / 51.9 | - / 84.2 |" in text
    assert "Table 3" not in text


def test_every_variation_stands_by_itself_beside_the_confidence_it_follows():
    shares = {"resize(side=128)": (0.4, 0.6), "resize(side=32)": (0.1, 0.2)}
    blocks = [block("insertion", m, [0.5, 0.7]) for m in METHODS]
    for change, (score, p) in shares.items():
        blocks += [block("insertion", m, [score, score + 0.2], condition=change) for m in METHODS[:9]]
        blocks += [block("probability", m, [p, p + 0.1], condition=change) for m in METHODS]
    table = markdown(evidence(blocks)).partition("**Table 4**, each variation of resize: ")[2].splitlines()
    assert table[0] == "AI / AD_bar / AG / I / D_bar (ours)"
    assert table[2] == "| method | resize(side=32) | resize(side=128) |"
    assert table[4] == "| mean p of the class | 0.25 | 0.65 |"
    assert "| RISE | - / - / - / 20.0 / - | - / - / - / 50.0 / - |" in table
    assert table[-1] == "| IBA | - / - / - / - / - | - / - / - / - / - |"  # which was not run
    assert "mixup" not in markdown(evidence(blocks))
    assert "| mean p of the class | - |" in markdown(
        evidence([b for b in blocks if b["metric"][0].as_py() != "probability"])
    )


def test_intervals_are_those_of_the_mean():
    rng = np.random.default_rng(0)
    values = rng.random(50)
    z = evidence([block("insertion", m, values) for m in METHODS])
    half = 1.96 * 100 * values.std() / np.sqrt(50)
    (cell,) = {line.split("|")[5] for line in markdown(z).splitlines() if line.startswith("| RISE") and "65" in line}
    ours, _, theirs = cell.strip().partition(" / ")
    mean, _, shown = ours.partition(" ±")
    assert float(mean) == pytest.approx(100 * values.mean(), abs=0.06)
    assert float(shown) == pytest.approx(half, rel=0.1)
    assert theirs == "65"


def test_figures_of_incomplete_runs(tmp_path, study):
    z = evidence([printed().slice(0, 40)])
    assert figure_2(z, tmp_path / "two.png").stat().st_size > 1000  # empty axes: nothing is known of confidence
    with pytest.raises(MissingError, match="no pictures"):
        figure_1(z, study.folder / "one.png")  # other images than those kept
    without = evidence([block("insertion", "IG", [0.1, 0.9])])
    assert "(ours" in markdown(without)
