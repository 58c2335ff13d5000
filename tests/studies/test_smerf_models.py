"""The study's models: options, one line for each, and how many missed the bar."""

from pathlib import Path

import pytest

from saliometer.studies import _smerf_models
from saliometer.studies._smerf_models import asked, train_all

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


def test_an_unknown_setting_is_refused(tmp_path):
    with pytest.raises(SystemExit):
        train_all([str(tmp_path), "--setting", "xyzzy"])
