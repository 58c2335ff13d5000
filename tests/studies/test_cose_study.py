"""`saliometer reproduce cose` from end to end on small networks that nobody has to train, its tables and its page."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from typer.testing import CliRunner, Result

from cose_study_toys import block, pairs_for, trained
from saliometer.cli import app
from saliometer.engine.data import Data
from saliometer.engine.run import opened as open_run
from saliometer.engine.weights import fit, read
from saliometer.pages import written
from saliometer.report import study as report
from saliometer.report.figures import figures
from saliometer.studies import _cose_run, cose
from saliometer.studies._cose_ablations import frozen_against_full, frozen_and_full, gates
from saliometer.studies._cose_evidence import ABLATION, FIXED, MODES, Evidence
from saliometer.studies._cose_figures import under
from saliometer.studies._cose_paper import METHODS
from saliometer.studies._cose_run import _chosen, jobs_of
from saliometer.studies._cose_scales import SCALES, Scale, Training
from saliometer.studies.cose import Study, reproduce

SIDE = 16
LEAST = {
    "IG": "steps=2", "SmoothGrad": "draws=2", "BlurIG": "steps=2,sigma=3", "GuidedIG": "steps=2",
    "LIME": "cells=3,samples=8,segments=grid",
}  # fmt: skip
TINY = Scale(
    ("toys",), ("resnet20", "vit_tiny"), Training(), 4, 3, ("GradCAM", "GradCAM++"), LEAST, ablated=("resnet20",),
    ablation=("GradCAM",), ablation_images=3, magnitudes=2, grains=(0.0, 1.0, 3.0),
)  # fmt: skip
trainings: list[str] = []


def network(seed: int) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 6, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3),
        )  # fmt: skip


def toys(text: str, side: int = 0, *, resize: int = 0, seed: int = 0) -> Data:
    if text != "toys":
        raise ValueError(f"there is no data at '{text}'")
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.integers(0, 256, (24, 3, SIDE, SIDE), dtype=np.uint8))
    labels = torch.arange(24) % 3
    return Data("toys", images[:12], labels[:12], images[12:], labels[12:], ("a", "b", "c"))


def train(data: Data, arch: str, out: Path, *, init="random", frozen=None, seed=0, watch=None, **_) -> dict:
    """Leaves three checkpoints of a network that only its name decides, as a training would."""
    if (out / "card.json").is_file():
        return json.loads((out / "card.json").read_text())
    trainings.append(out.name)
    checkpoints, start = out / "checkpoints", 10 * len(arch) + 100 * bool(frozen)
    checkpoints.mkdir(parents=True)
    for epoch in (1, 2, 3):
        save_file(network(start + epoch).state_dict(), checkpoints / f"epoch_{epoch:02d}.safetensors")
    shutil.copy(checkpoints / "epoch_03.safetensors", out / "final.safetensors")
    card = {
        "arch": arch, "init": "random" if init == "random" else "file", "side": SIDE, "classes": data.classes,
        "preprocessing": {"resize": SIDE, "crop": SIDE, "mean": [0.5], "std": [0.25]}, "sha256": arch,
        "data": {"name": data.name, "train": len(data.train), "test": len(data.test)},
        "recipe": {"frozen": bool(frozen), "epochs": 3},
        "checkpoints": [
            {"file": f"checkpoints/epoch_{epoch:02d}.safetensors", "test_accuracy": 0.3 * epoch} for epoch in (1, 2, 3)
        ],
        "test_accuracy": 0.9 if arch == "vit_tiny" else 0.5,
    }  # fmt: skip
    (out / "card.json").write_text(json.dumps(card))
    return card


def load(folder: Path) -> tuple[nn.Module, dict]:
    net = network(0)
    fit(net, read(folder / "final.safetensors"), "toy")
    return net.eval().requires_grad_(False), json.loads((folder / "card.json").read_text())


@pytest.fixture(scope="module", autouse=True)
def stubs() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cose, "SCALES", {"tiny": TINY, "quick": replace(TINY, data=()), "smoke": SCALES["smoke"]})
        _cose_run.data_of.cache_clear()
        patch.setattr(_cose_run, "data_given", toys)
        patch.setattr(_cose_run, "train_images", train)
        patch.setattr(_cose_run, "load_trained", load)
        yield


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    found = reproduce(tmp_path_factory.mktemp("cose") / "run", "tiny", device="cpu")
    found.write()
    written([found.folder])
    return found


def rows_of(study: Study) -> list[tuple]:
    found = []
    for model in study.models:
        for part, run in study.runs(model).items():
            for row in run.rows().to_pylist():
                if not row["metric"].startswith("cost."):
                    key = (model["label"], part, row["method"], row["metric"], row["definition"], row["condition"])
                    found.append((*key, row["sample"], repr(round(row["value"], 6))))
    return sorted(found)


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


# What is run


def test_models_are_trained_and_explained_in_parts(study):
    assert not study.failed
    assert [(one["label"], one["role"]) for one in study.models] == [
        ("resnet20(init=random)", "table"), ("vit_tiny(init=random)", "table"),
        ("resnet20(frozen=true,init=half)", "ablation"), ("resnet20(frozen=false,init=half)", "ablation"),
    ]  # fmt: skip
    assert sorted(trainings) == sorted(
        f"toys.{stem}"
        for stem in (
            "resnet20.random",
            "vit_tiny.random",
            "resnet20.half",
            "resnet20.half.frozen",
            "resnet20.half.full",
        )
    )
    parts = {one["label"]: list(study.runs(one)) for one in study.models}
    assert parts["vit_tiny(init=random)"] == ["many", "few", "controls"]
    assert parts["resnet20(frozen=true,init=half)"] == ["many"]


def test_every_method_has_its_images_and_every_reading(study):
    e = study.evidence
    for model in e.models():
        for method in METHODS:
            for how in (*MODES, "pearson", "spearman", FIXED):
                images = e.cose(model, method, how).images
                assert len(images) == (4 if method in TINY.often else 3)
        assert {"constant", "parity_edge", "smooth_noise(sigma=1)"} <= set(e.controls(model))


def test_models_and_methods_meet_the_same_images_and_pairs(study):
    pairs = {}
    for model in study.models[:2]:
        for part, run in study.runs(model).items():
            for row in run.rows().to_pylist():
                if row["metric"] in ("cose.changed", "cose.unchanged") and "model" not in row["condition"]:
                    where = (part, model["label"], row["method"], row["definition"])
                    if not row["condition"].startswith("checkpoint"):
                        pairs.setdefault(where, set()).add((row["sample"], row["condition"]))
    many = {frozenset(some) for where, some in pairs.items() if where[0] in ("many", "controls")}
    few = {frozenset(some) for where, some in pairs.items() if where[0] == "few"}
    assert len(many) == len(few) == 1
    assert next(iter(few)) < next(iter(many))


def test_fewer_images_are_the_first_of_more():
    data, card = toys("toys"), {"preprocessing": {"resize": SIDE, "crop": SIDE, "mean": [0.5], "std": [0.25]}}
    job = jobs_of(Path(), TINY, {"toys": "toys"}, [], 0, "cpu")[0]
    images, labels, places = _chosen(data, card, 5, job)
    fewer = _chosen(data, card, 3, job)
    assert fewer[2] == places[:3]
    assert torch.equal(fewer[0], images[:3])
    assert labels.tolist() == [data.test_labels[place] for place in places]
    torch.testing.assert_close(images[0] * 0.25 + 0.5, data.test[places[0]] / 255)


def test_pictures_are_resized_as_each_network_wants_it_and_once(monkeypatch):
    """cose.md 3.3: ResNet keeps the short side whole, ViT comes from 256, Swin and ConvNeXt from 232."""
    asked = {}
    monkeypatch.setattr(_cose_run, "data_of", lambda place, side, resize, seed: asked.setdefault(place, (side, resize)))
    for arch in SCALES["paper"].archs:
        _cose_run.data_for(SCALES["paper"], arch, arch, 0)
    _cose_run.data_for(SCALES["quick"], "small", "vit_tiny", 0)
    wanted = {"resnet50": (224, 224), "convnext_small": (224, 232), "vit_b_16": (224, 256), "swin_t": (224, 232)}
    assert asked == wanted | {"small": (0, 0)}
    data, card = toys("toys"), {"preprocessing": {"resize": 2 * SIDE, "crop": SIDE, "mean": [0.5], "std": [0.25]}}
    images, _, places = _chosen(data, card, 2, jobs_of(Path(), TINY, {"toys": "toys"}, [], 0, "cpu")[0])
    torch.testing.assert_close(images * 0.25 + 0.5, data.test[places] / 255)


def test_halves_are_disjoint_and_all_there(study, tmp_path, monkeypatch):
    seen = {}
    monkeypatch.setattr(_cose_run, "train_images", lambda data, arch, out, **_: seen.setdefault(out.name, data))
    job = next(one for one in jobs_of(tmp_path, TINY, {"toys": "toys"}, [], 0, "cpu") if one.role == ABLATION)
    for _, _, begin in _cose_run._trainings(job, toys("toys")):
        begin(lambda share, text: None)
    first, second = seen["toys.resnet20.half"], seen["toys.resnet20.half.frozen"]
    images = torch.cat((first.train, second.train)).flatten(1)
    assert len(images) == 12
    assert len(images.unique(dim=0)) == 12
    assert seen["toys.resnet20.half.full"].train.equal(second.train)


def test_a_file_of_first_weights_is_another_model_and_the_ablations_start():
    inits = [("resnet20", "weights/dino.pth")]
    found = jobs_of(Path(), TINY, {"toys": "toys"}, inits, 0, "cpu")
    assert [(job.arch, job.init, job.role) for job in found] == [
        ("vit_tiny", "random", "table"), ("resnet20", "random", "table"), ("resnet20", "weights/dino.pth", "table"),
        ("resnet20", "weights/dino.pth", "ablation"),
    ]  # fmt: skip
    ((frozen, folder, _),) = _cose_run._trainings(found[-1], toys("toys"))  # the full one is in the table already
    assert frozen is True
    assert folder.name == "toys.resnet20.dino.frozen"


# It goes on


def test_the_same_call_does_nothing_again(study, monkeypatch):
    before = rows_of(study)
    monkeypatch.setattr("saliometer.engine.audit_units.judge", lambda *args: pytest.fail("a method was run again"))
    trainings.clear()
    again = reproduce(study.folder, "tiny", device="cpu")
    assert trainings == []
    assert rows_of(again) == before


def test_after_a_stop_what_is_missing_is_done(study, tmp_path):
    shutil.copytree(study.folder, tmp_path / "stopped")
    shutil.rmtree(tmp_path / "stopped" / "models" / "toys.vit_tiny.random")
    shutil.rmtree(tmp_path / "stopped" / "toys.vit_tiny.random.many")
    run = open_run(tmp_path / "stopped" / "toys.resnet20.random.few")
    next(run.parts()).unlink()
    (tmp_path / "stopped" / "study.json").unlink()
    again = reproduce(tmp_path / "stopped", "tiny", device="cpu")
    assert rows_of(again) == rows_of(study)


def test_timings_say_where_the_time_went(study):
    told = json.loads((study.folder / "timings.json").read_text())
    assert told["seconds"] > 0
    jobs = told["jobs"]
    assert set(jobs["toys, vit_tiny from random"]) == {
        f"{what} toys.vit_tiny.random" for what in ("train", "untrained", "many", "few", "controls")
    }
    assert len(jobs) == 3
    assert set(told["methods"]["toys, vit_tiny(init=random)"]) >= set(METHODS)


def test_a_job_that_fails_is_written_down_and_the_others_go_on(tmp_path, monkeypatch):
    def breaking(data, arch, out, **more):
        if arch == "vit_tiny":
            raise ValueError("no such luck")
        return train(data, arch, out, **more)

    monkeypatch.setattr(_cose_run, "train_images", breaking)
    monkeypatch.setattr(cose, "SCALES", {"tiny": replace(TINY, ablated=(), often=METHODS, many=2, methods=LEAST)})
    said = []
    found = reproduce(tmp_path / "run", "tiny", device="cpu", say=said.append)
    assert [one["arch"] for one in found.models] == ["resnet20"]
    assert "no such luck" in found.failed["toys, vit_tiny from random"]
    assert "no such luck" in said[0]
    assert any("no such luck" in text for text in report.book(found.folder).warnings)
    third = found.claims()[2]
    assert third["holds"] is None


# What is written


def test_claims_are_judged_and_written(study):
    claims = json.loads((study.folder / "claims.json").read_text())["claims"]
    assert [claim["id"] for claim in claims] == list(range(1, 15))
    for claim in claims:
        assert list(claim) == ["id", "text", "paper", "ours", "holds", "why"]
        assert claim["holds"] is not None or claim["why"]
    assert claims[8]["holds"] is None  # no CUB200
    assert claims[2]["holds"] is not None


def test_tables_hold_everything(study):
    text = (study.folder / "tables.md").read_text()
    for heading in (
        "Models and the 75 % gate", "Table 1: COSE in percent, mode published", "Table 1 with the geometric mean",
        "Table 1 in our own mode", "Parts, mode default", "Figure 3", "Figure 5", "Figure 6", "Figure 7", "Figure 8",
        "Other similarities", "Controls, which explain nothing", "Better COSE, or smoother maps? Mode default",
        "Ablation: frozen backbone", "Ablation: every map explains the first prediction", "First weights", "Claims",
    ):  # fmt: skip
        assert f"## {heading}" in text
    assert "resnet20(init=random) †" in text
    assert "| vit_tiny(init=random) | Transformers | table | full | passes 75 % | 90.0 |" in text
    assert "misses 75 %" in text
    assert "No weight files were given" in text
    assert "| smooth_noise(sigma=3) |" in text
    assert "(64.66" in text  # the paper's


def test_the_gate_is_told_per_model_and_over_data_sets(study):
    found = {(gate.label, gate.data): gate.words for gate in gates(study.trained)}
    assert found["vit_tiny(init=random)", "toys"] == "passes 75 %"
    assert found["resnet20(init=random)", "toys"] == "misses 75 %"
    several = [replace(study.trained[0], data=data, accuracy=accuracy) for data, accuracy in (("a", 0.9), ("b", 0.7))]
    assert (gates(several)[-1].data, gates(several)[-1].accuracy) == ("mean of 2 data sets", pytest.approx(80))


def test_frozen_and_full_differ_in_nothing_else(study):
    ((frozen, full),) = frozen_and_full(study.evidence)
    assert (frozen.frozen, full.frozen) == (True, False)
    assert (frozen.data, frozen.arch, frozen.init) == (full.data, full.arch, full.init)


def test_frozen_and_full_are_compared_on_images_that_both_have():
    """The model of the table was shown four images more, on which it is far less consistent."""
    full = trained("cifar10", "resnet50")
    frozen = replace(full, label="resnet50(frozen=true,init=random)", frozen=True, role=ABLATION)
    both, more = block("GradCAM", pairs_for(80, 60)), block("GradCAM", pairs_for(20, 60), images=8)
    more = more.filter(pc.is_in(more["sample"].cast(pa.string()), pa.array([f"test-{place}" for place in range(4, 8)])))
    known = pa.concat_tables([both, more]).unify_dictionaries()
    e = Evidence([full, frozen], {(full.data, full.label): [known], (full.data, frozen.label): [both]})
    assert e.of("consistency", full, "GradCAM")[0] == pytest.approx(50)
    found = {one.statistic: one for one in frozen_against_full(e)}
    assert found["consistency"].other.value == pytest.approx(80)
    assert found["consistency"].difference.value == pytest.approx(0, abs=1e-6)


def test_the_report_has_every_figure_and_claim(study):
    text = (study.folder / "report.html").read_text(encoding="utf-8")
    drawn = {one.name for one in figures("cose")}
    wanted = {"cose_table_1", *(f"cose_{number}" for number in range(1, 9))}
    wanted |= {"cose_grain", "cose_controls", "cose_similarities", "cose_frozen", "cose_fixed", "cose_gate"}
    assert wanted | {"cose_weights"} == drawn
    there = {name for name in drawn if f'id="{name}"' in text}
    assert wanted - there <= {"cose_2"}  # random networks may have no image with a pair of either kind
    book = report.book(study.folder)
    assert [claim["id"] for claim in book.claims] == list(range(1, 15))
    assert {claim["figure"] for claim in book.claims} <= {"", *there}
    assert "Transformers' COSE less ConvNets'" in " ".join(map(str, book.verdict))
    assert any("misses 75 %" in text for text in book.warnings)


def test_the_command_prints_claims_as_json(study):
    found = call("reproduce", "cose", "--scale", "tiny", "--device", "cpu", "--out", study.folder, "--json")
    assert found.exit_code == 0, found.output
    assert len(json.loads(found.stdout)["claims"]) == 14
    shown = call("show", study.folder)
    assert shown.exit_code == 0, shown.output
    assert "The study cose at scale tiny" in shown.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--scale", "huge"], "there is no scale 'huge'"),
        (["--scale", "quick"], "scale 'quick' wants data: give --data"),
        (["--scale", "tiny", "--data", "nowhere"], "there is no data at 'nowhere'"),
        (["--scale", "tiny", "--data", "toys", "--data", "toys"], "two data sets are called 'toys'"),
        (["--scale", "tiny", "--init", "dino.pth"], "wanted ARCH=FILE"),
        (["--scale", "tiny", "--init", "vgg16=a.pth"], "there is no network 'vgg16'"),
        (["--scale", "tiny", "--jobs", "-1"], "--jobs -1"),
        (["--scale", "tiny", "--model", "resnet50"], "the study cose has no --model"),
        (["--scale", "tiny", "--device", "tpu"], "tpu"),
    ],
)
def test_mistakes_are_told_in_one_sentence(words, said, tmp_path):
    found = call("reproduce", "cose", *words, "--out", tmp_path / "run")
    assert found.exit_code == 2
    assert said in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_other_studies_do_not_take_data():
    found = call("reproduce", "zhang", "--data", "toys")
    assert "the study zhang has no --data" in found.stderr


def test_a_folder_of_another_scale_is_refused(study):
    with pytest.raises(ValueError, match=r"holds the study cose at scale tiny, you asked for cose at smoke"):
        cose._begin(study.folder, "smoke")


def test_a_study_without_a_model_says_so(tmp_path):
    (tmp_path / "study.json").write_text(json.dumps({"study": "cose", "scale": "smoke"}))
    with pytest.raises(ValueError, match="has no model that was explained yet"):
        report.book(tmp_path)


def test_a_photograph_is_shown_under_the_change_of_its_row():
    photo = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    assert (under(photo, "itself") == photo).all()
    assert (under(photo, "flip_lr") == photo[:, ::-1]).all()
    assert (under(photo, "brightness(bin=-30,magnitude=-0.99)") <= 3).all()


def test_the_real_scales_are_well_formed():
    for scale in SCALES.values():
        assert set(scale.often) | set(scale.ablation) | set(scale.methods) <= set(METHODS)
        assert set(scale.ablated) <= set(scale.archs)
        assert list(scale.specs()) == list(METHODS)
    assert SCALES["quick"].metrics()[0] == "cose"
    assert SCALES["smoke"].metrics()[1] == "cose(magnitudes=1,mode=published)"


@pytest.mark.slow
def test_jobs_run_in_processes_of_their_own_and_their_errors_come_back(tmp_path):
    """The processes know nothing of the stubs, so that they find no data."""
    found = {}
    todo = jobs_of(tmp_path, replace(TINY, ablated=()), {"toys": "nowhere"}, [], 0, "cpu")
    for job, error in cose._worked(todo, 2, lambda share, text: None):
        found[job.arch] = error
    assert set(found) == {"resnet20", "vit_tiny"}
    assert all(isinstance(error, Exception) and "nowhere" in str(error) for error in found.values())
