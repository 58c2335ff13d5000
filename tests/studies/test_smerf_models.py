"""The study's models: options, one line for each, and how many missed the bar."""

from pathlib import Path

import pytest

from saliometer.studies import _smerf_models
from saliometer.studies._smerf_models import asked, condition_of, train_all

CARD = {"tried": 1, "acceptance": {"overall accuracy": {"got": 0.5, "wanted": 0.95}}}


def test_every_setting_is_trained_for_every_seed_and_those_that_miss_are_counted(monkeypatch, capsys, tmp_path):
    called = []

    def trained(setting, folder, **params):
        called.append((setting, params["seed"], params["condition"].background))
        return CARD | {"accepted": setting != "simple-fr"}

    monkeypatch.setattr(_smerf_models, "trained", trained)
    assert train_all([str(tmp_path), "--background", "noise", "--seed", "0", "--seed", "1", "--device", "cpu"]) == 2
    assert len(called) == 14
    assert called[7] == ("simple-fr", 1, "noise")
    lines = capsys.readouterr().out.splitlines()
    assert lines[7].startswith("simple-fr.noise.seed1: NOT accepted after 1 tries")
    assert lines[8].startswith("simple-nr.noise.seed1: accepted")


def test_a_run_is_told_which_models_to_explain():
    found = asked(["--models", "d", "--background", "noise", "--model-seed", "1", "--robust"])
    assert found == {"models": Path("d"), "model_seeds": [1], "background": "noise", "arch": "", "robust": True}
    assert asked([]) == {"models": None, "model_seeds": [], "background": "black", "arch": "", "robust": False}


def test_vgg16_has_imagenets_features_where_the_user_has_them(monkeypatch, tmp_path):
    monkeypatch.setattr("torch.hub.get_dir", lambda: str(tmp_path / "hub"))
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    assert condition_of("vgg16", shelf=shelf).arch == "vgg16"
    (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
    (tmp_path / "hub" / "checkpoints" / "vgg16-397923af.pth").touch()
    assert condition_of("vgg16", shelf=shelf).arch == "vgg16(frozen=true)"
    assert condition_of("alexnet", shelf=shelf).arch == "alexnet"
    (shelf / "simple-fr.vgg16.json").touch()  # a study that was begun from scratch goes on so
    assert condition_of("vgg16", shelf=shelf).arch == "vgg16"
    (shelf / "simple-fr.vgg16-frozen=true.json").touch()
    assert condition_of("vgg16", shelf=shelf).arch == "vgg16(frozen=true)"


def test_an_unknown_setting_is_refused(tmp_path):
    with pytest.raises(SystemExit):
        train_all([str(tmp_path), "--setting", "xyzzy"])
