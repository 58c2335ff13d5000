"""The causal study from end to end, tiny: it goes on after a kill, tells its gates, its page shows what it holds."""

import json
import re
import shutil
from concurrent.futures import Executor, Future
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest
import torch
from scipy import stats
from typer.testing import CliRunner

from saliometer import show_study
from saliometer.cli import app
from saliometer.engine import causal_models
from saliometer.engine.causal_models import Training
from saliometer.models.fit import Recipe
from saliometer.pages import book_for, written
from saliometer.serve.listed import listed
from saliometer.studies import _yona_jobs, yona
from saliometer.studies._yona_ablations import other_init
from saliometer.studies._yona_cast import TRAINED, Casting, Sizes
from saliometer.studies._yona_classical import Extent
from saliometer.studies._yona_evidence import CONTROLS

LABELS = ("gradient", "guided_backprop", "input_x_gradient", "integrated_gradients")


def tiny() -> yona.Scale:
    training = Training("digit_cnn(width=0.05)", 60, Recipe(1, 30, 1e-3))
    by_heart = Training("digit_cnn(width=0.05)", 20, Recipe(1, 20, 1e-3), shuffled=True)
    digits = Sizes(2, 2, 30, 10, 100, {**dict.fromkeys(("t", "half", "t1", "t2"), training), "labels": by_heart})
    pairs = Sizes(2, 2, 20, 10, 100, dict.fromkeys(("pairs", "pairs2"), training))
    few = {"integrated_gradients": "steps=2"}
    return yona.Scale(digits, pairs, pairs, few, few, 50, Extent(2, 6, 1, 2), ("target", "softmax", "init"))


@pytest.fixture(scope="module")
def scales():
    patch = pytest.MonkeyPatch()
    patch.setattr(yona, "METHODS", LABELS)
    patch.setitem(yona.SCALES, "smoke", tiny())
    patch.setattr(causal_models, "TESTED", 100)
    yield
    patch.undo()


@pytest.fixture(scope="module")
def study(scales, tmp_path_factory) -> yona.Study:
    return yona.reproduce(tmp_path_factory.mktemp("yona") / "run", "smoke", device="cpu")


def of_two(rows: pa.Table) -> list[str]:
    """Those of the paper's methods and of the controls, in one order."""
    kept = ("gradient", "guided_backprop", *CONTROLS)
    return sorted(repr(tuple(row.values())) for row in rows.to_pylist() if row["method"] in kept)


def test_what_is_stopped_anywhere_goes_on_to_the_same_rows(study, scales, tmp_path, monkeypatch):
    """With fewer methods, which change no number of the others; models are there already."""
    monkeypatch.setattr(yona, "METHODS", LABELS[:2])
    shutil.copytree(study.folder / "models", tmp_path / "models")
    for stop in ("shapes: guided_backprop", "pairs: edge", "classical curves of t1", "ablation score"):

        def watch(share: float, text: str, stop: str = stop) -> None:
            if stop in text:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            yona.reproduce(tmp_path, "smoke", device="cpu", watch=watch)
    found = yona.reproduce(tmp_path, "smoke", device="cpu")
    assert set(found.runs) == set(study.runs) == {"maps", "pairs", "curves", "ablations"}
    for name, run in found.runs.items():
        assert of_two(run.rows()) == of_two(study.runs[name].rows())
    assert found.told["gates"] == study.told["gates"]


def test_a_finished_study_is_not_run_again(study, scales):
    parts = sorted(study.folder.rglob("*.parquet"))
    before = {path: path.stat().st_mtime_ns for path in parts if path.name != "images.parquet"}
    assert len(before) > 50
    models = {path: path.stat().st_mtime_ns for path in (study.folder / "models").iterdir()}
    yona.reproduce(study.folder, "smoke", device="cpu")
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert {path: path.stat().st_mtime_ns for path in models} == models


def test_every_claim_is_judged_or_open_with_a_reason(study):
    claims = study.claims()
    assert [claim["id"] for claim in claims] == list(range(1, 16))
    for claim in claims:
        assert claim["holds"] in (True, False, None)
        assert claim["ours"] or claim["why"]
    open_ = {claim["id"]: claim["why"] for claim in claims if claim["holds"] is None}
    assert "pretrained" in open_[8] or "focus" in open_[8]  # digits have no published weights
    told = json.loads((study.write()[1]).read_text())
    assert set(told["claims"][0]) == {"id", "text", "paper", "ours", "holds", "why"}


def test_untrained_networks_miss_their_gates_and_every_verdict_is_undecided(study):
    e = study.evidence
    assert set(e.gates) == {"t", "half", "labels", "t1", "t2", "pairs", "pairs2"}
    (by_heart,) = (line for line in study.missed() if line.startswith("labels"))
    assert "training accuracy" in by_heart
    assert "verdict" not in by_heart  # labels in disorder are no task
    assert any(line.startswith("t2: accuracy") for line in study.missed())
    assert {e.verdict("t2", method).word for method in (*e.methods, *e.controls)} == {"undecided"}
    assert e.methods == list(LABELS)


def test_ablations_are_told_and_those_left_out_have_a_reason(study):
    words = {word for word, *_ in study.evidence.ablations()}
    assert other_init("digit_cnn(init=pytorch,width=0.5)") == "truncated_normal"
    assert words == {"target=label", "target=fixed", "target=own", "score=probability", "init=pytorch"}
    assert dict(study.unrun)["the top half deleted"] == "not part of scale smoke"


def test_models_of_shuffled_labels_start_from_weights_of_their_own(study):
    """Else each would be like the trained model of its seed, and E between the two groups too small."""
    seeds = {group: [card["seed"] for card in cards] for group, cards in study.told["models"].items()}
    assert (seeds["t"], seeds["labels"]) == ([0, 1], [2, 3])


def test_an_oracle_knows_that_models_of_the_natural_task_name_the_digit(study):
    """Of a digit without a shape that weighs 3/5 + 1/5, and what names the shape has noise."""
    effect = study.evidence.value("t1", "", "oracle", "lambda", condition="posterior(t=0.6,t1=0.2,t2=0.2)")
    assert effect > 0.5


def test_tasks_weigh_by_their_posterior(study):
    assert [condition for _, condition in study.evidence.posteriors] == [
        "posterior(half=0.3333,t=0.6667)", "posterior(t1=0.5,t2=0.5)", "posterior(t=0.6,t1=0.2,t2=0.2)",
        "posterior(pairs=0.5,pairs2=0.5)",
    ]  # fmt: skip


def test_seconds_are_kept_by_part(study):
    seconds = json.loads((study.folder / "timings.json").read_text())
    for part in (
        "training t1",
        "gates half",
        "shapes predictions",
        "digits numbers: gradient",
        "ablation t-init-pytorch",
    ):
        assert seconds[part] >= 0


def test_tables_hold_every_number_under_headings(study):
    text = study.write()[0].read_text()
    for heading in (
        "The two checks",
        "Gates",
        "Verdicts",
        "Energy on half",
        "Focus on pairs2",
        "Equation (1)",
        "Ablations",
    ):
        assert f"**{heading}**" in text or f"**{heading}** (" in text
    assert "**top_down randomisation on t: Spearman, abs**" in text
    assert "nan" not in text
    assert re.search(r"\*\*Focus on t1\*\* \(area share 0\.\d{3}; 10 images without a shape are left out\)", text)
    assert re.search(r"\*\*Focus on half\*\* \(area share 0\.500\)", text)
    one = study.evidence.by_seed("t1", "gradient", "DD")
    reach = stats.t.ppf(0.975, len(one) - 1) * stats.sem(one)
    beside = f"| {one.mean():.3f} [{one.mean() - reach:.3f}, {one.mean() + reach:.3f}] |"
    (found,) = (line for line in _under(text, "Focus on t1") if line.startswith("| gradient |"))
    assert beside in found
    (edges,) = (line for line in _under(text, "Energy on t2") if line.startswith("| edge |"))
    assert "| 0.000 [0.000, 0.000] | 0 |" in edges  # sure to be nothing


def _under(text: str, heading: str) -> list[str]:
    return text.partition(f"**{heading}**")[2].partition("\n\n**")[0].splitlines()


def test_the_page_shows_the_papers_figures_with_numbers_below(study):
    book = book_for([study.folder])
    names = [one.figure.name for one in book.figures]
    assert {f"yona_{number}" for number in range(1, 8)} <= set(names)
    assert names.index("yona_1") < names.index("yona_3") < names.index("yona_energy")  # pictures before tables
    by_name = {one.figure.name: one.drawing for one in book.figures}
    shapes = by_name["yona_3"]
    kinds = study.pictures("shapes").labels["t1"].tolist()
    assert kinds == [1, 2] * (len(kinds) // 2)  # rectangles and circles in turn
    assert shapes.html.count("<figure>") == len(LABELS) + 6  # and the controls
    assert [row["method"] for row in shapes.rows[:4]] == list(LABELS)
    one = study.evidence.dissociation("t1", "gradient")
    assert shapes.rows[0]["DD"] == f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"
    assert shapes.rows[0]["DD"] in shapes.html
    assert [head.name for head in book.heads][:2] == ["E: t", "E: half"]
    assert book.heads[0].cells["edge"].value == 0.0
    assert "digits numbers" in {cost.what for cost in book.costs}
    assert len({cost.what for cost in book.costs}) == len(book.costs) < 40  # methods are not told one by one
    page = written([study.folder]).read_text()
    assert "<th>passes</th>" not in page  # none were counted
    assert page.index('id="yona_1"') < page.index('id="scoreboard"')
    assert {claim["figure"] for claim in book.claims} <= set(names)


def test_show_and_serve_know_the_study(study):
    told = show_study.as_dict(study.folder)
    assert (told["study"], told["scale"], len(told["claims"])) == ("yona", "smoke", 15)
    assert {part["name"]: part["finished"] for part in told["parts"]} == dict.fromkeys(
        ("ablations", "curves", "maps", "pairs"), True
    )
    lines = {one.name: one for one in listed(study.folder.parent)}
    assert lines["run"].kind == "study yona"
    assert lines["run"].state == "finished"
    assert not any(one.error for one in lines.values())
    said = CliRunner().invoke(app, ["show", str(study.folder / "maps")])
    assert said.exit_code == 2
    assert "is part of a study" in said.output


def test_another_request_wants_another_folder(study, scales):
    with pytest.raises(ValueError, match=r"holds a study with seed '0', you asked for '1'"):
        yona.reproduce(study.folder, "smoke", device="cpu", seed=1)


def test_more_than_a_smoke_wants_real_digits(tmp_path):
    with pytest.raises(ValueError, match="scale 'quick' wants more digits"):
        yona.reproduce(tmp_path, "quick", device="cpu")
    with pytest.raises(LookupError, match="smoke"):
        yona.reproduce(tmp_path, "smok", device="cpu")


def test_a_folder_without_maps_has_no_page_yet(tmp_path):
    (tmp_path / "study.json").write_text(json.dumps({"study": "yona", "scale": "smoke"}))
    with pytest.raises(ValueError, match="has no maps yet"):
        book_for([tmp_path])


def test_the_command_takes_the_studys_own_options(monkeypatch, tmp_path):
    seen = {}

    def rerun(folder: Path, scale: str, **given: object):
        seen.update(given)
        raise ValueError("enough")

    monkeypatch.setattr(yona, "reproduce", rerun)
    said = CliRunner().invoke(app, ["reproduce", "yona", "--digits", "a", "--photos", "b", "--out", str(tmp_path)])
    assert "enough" in said.output
    assert (seen["digits"], seen["photos"]) == ("a", "b")
    said = CliRunner().invoke(app, ["reproduce", "yona", "--resize", "3"])
    assert "the study yona has no --resize" in said.output


class Now(Executor):
    """Does what it is given at once, in this process."""

    def submit(self, work, /, *given, **named):
        done = Future()
        done.set_result(work(*given, **named))
        return done


def test_networks_trained_side_by_side_are_those_trained_in_turn(study, scales, tmp_path, monkeypatch):
    monkeypatch.setattr(_yona_jobs, "_pool", lambda processes: Now())
    threads, pictures, told = torch.get_num_threads(), ("sklearn", tiny().digits, 0), []
    casting = Casting(tmp_path, "cpu", 0, lambda share, text: None, lambda part: nullcontext())
    asked = dict.fromkeys(TRAINED[:5], pictures) | dict.fromkeys(TRAINED[5:], ("sklearn", tiny().pairs, 0))
    _yona_jobs.train(_yona_jobs.jobs_of(casting, asked), 2, lambda share, text: told.append(share))
    torch.set_num_threads(threads)
    wanted = {one.name: one.read_bytes() for one in (study.folder / "models").glob("*.safetensors")}
    assert {one.name: one.read_bytes() for one in tmp_path.glob("*.safetensors")} == wanted
    assert len(wanted) == 14
    assert told[-1] == 1.0
    assert _yona_jobs.jobs_of(casting, asked) == []  # what is there is not trained again


def test_small_networks_are_one_job_on_a_gpu_and_large_ones_each_their_own(tmp_path):
    casting = Casting(tmp_path, "cuda", 0, lambda share, text: None, lambda part: nullcontext())
    scale = yona.SCALES["quick"]
    asked = dict.fromkeys(TRAINED[:5], ("sklearn", scale.digits, 0))
    asked |= dict.fromkeys(TRAINED[5:], ("sklearn", scale.photos, 112))
    jobs = _yona_jobs.jobs_of(casting, asked)
    assert [job.group for job in jobs[:5]] == ["t2", "t1", "t", "labels", "half"]
    assert [len(job.seeds) for job in jobs] == [10] * 5 + [1] * 10
    assert next(job for job in jobs if job.group == "labels").seeds == tuple(range(10, 20))


def test_fewer_than_no_processes_are_refused(tmp_path):
    with pytest.raises(ValueError, match="--jobs -1: wanted 1 or more"):
        yona.reproduce(tmp_path, jobs=-1)


def test_pictures_that_are_none_are_refused_before_anything_is_trained(tmp_path, monkeypatch):
    monkeypatch.setattr(yona, "digits_scene", lambda *given: pytest.fail("networks were trained"))
    (tmp_path / "train" / "cat").mkdir(parents=True)
    for given in ({"photos": str(tmp_path)}, {"digits": str(tmp_path)}, {"photos": str(tmp_path / "nowhere")}):
        with pytest.raises(ValueError, match="no pictures"):
            yona.reproduce(tmp_path / "run", device="cpu", **given)
    assert not (tmp_path / "run").exists()
