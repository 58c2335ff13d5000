"""Weights from files: what is read, what is refused and in which words."""

import os
import pickle
import zipfile
from argparse import Namespace
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

from saliometer.engine.weights import check_finite, fingerprint, fit, read


def small(classes: int = 3) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        OrderedDict(conv=nn.Conv2d(3, 4, 3), norm=nn.BatchNorm2d(4), flat=nn.Flatten(), head=nn.Linear(144, classes))
    )


def another() -> nn.Sequential:
    net = small()
    with torch.no_grad():
        for values in net.parameters():
            values.add_(1)
    return net


def same(net: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(net.state_dict().values(), other.state_dict().values(), strict=True))


WRAPPINGS = {
    "bare": lambda state: state,
    "state_dict": lambda state: {"state_dict": state, "epoch": 3},
    "model": lambda state: {"model": state, "optimizer": {"lr": 0.1}, "args": {"a": 1}},
    "model_state_dict": lambda state: {"model_state_dict": state, "loss": 0.5},
    "net": lambda state: {"net": state},
    "average ignored": lambda state: {"model_ema": {k: v * 0 for k, v in state.items()}, "model": state},
    "a name beside it": lambda state: {"model": "resnet50", "state_dict": state},
    "twice": lambda state: {"model": {"state_dict": state}},
    "data parallel": lambda state: {"module." + k: v for k, v in state.items()},
    "lightning": lambda state: {"state_dict": {"model." + k: v for k, v in state.items()}},
    "compiled": lambda state: {"_orig_mod." + k: v for k, v in state.items()},
    "compiled in parallel": lambda state: {"module._orig_mod." + k: v for k, v in state.items()},
    "parallel in compiled": lambda state: {"_orig_mod.module." + k: v for k, v in state.items()},
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_a_state_dict_is_found_in_what_training_scripts_save(wrapping, tmp_path):
    torch.save(WRAPPINGS[wrapping](another().state_dict()), tmp_path / "w.pt")
    net = small()
    assert not same(net, another())
    fit(net, read(tmp_path / "w.pt"), "w.pt")
    assert same(net, another())


@pytest.mark.parametrize("name", ["w.safetensors", "w.bin"])
def test_safetensors_are_known_by_name_or_content(name, tmp_path):
    safetensors.torch.save_file(another().state_dict(), tmp_path / name)
    net = small()
    fit(net, read(tmp_path / name), name)
    assert same(net, another())


def test_a_layer_that_is_called_model_keeps_its_name(tmp_path):
    net, other = nn.ModuleDict({"model": small()}), nn.ModuleDict({"model": another()})
    fit(net, dict(other.state_dict()), "w")
    assert same(net, other)


def test_the_old_format_and_the_version_of_layers_are_kept(tmp_path):
    torch.save(another().state_dict(), tmp_path / "w.pth", _use_new_zipfile_serialization=False)
    state = read(tmp_path / "w.pth")
    assert state._metadata["norm"]["version"] == 2
    net = small()
    fit(net, state, "w")
    assert same(net, another())


def test_half_precision_is_widened():
    net = small()
    fit(net, {k: v.half() if v.is_floating_point() else v for k, v in another().state_dict().items()}, "w")
    assert {v.dtype for v in net.parameters()} == {torch.float32}
    torch.testing.assert_close(net.head.weight, another().head.weight, rtol=1e-3, atol=1e-3)


class Bomb:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self):
        return os.system, (f"touch '{self.target}'",)


@pytest.mark.filterwarnings("error")  # a refusal is one sentence, without a warning of torch's before it
@pytest.mark.parametrize("how", ["torch", "torch old", "pickle", "new pickle", "hidden"])
@pytest.mark.parametrize("forced", ["0", "1"])
def test_a_pickle_that_would_run_code_is_refused_and_not_run(how, forced, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", forced)
    ran, file = tmp_path / "ran", tmp_path / "w.pth"
    if "pickle" in how:
        file.write_bytes(pickle.dumps(Bomb(ran), protocol=2 if how == "pickle" else 5))
    else:
        held = {"state_dict": small().state_dict(), "extra": Bomb(ran)} if how == "hidden" else Bomb(ran)
        torch.save(held, file, _use_new_zipfile_serialization=how != "torch old")
    what = "more than tensors" if how == "new pickle" else r"'(posix|nt|os)\.system'"
    with pytest.raises(ValueError, match=f"refused: to read them would load {what} and could run"):
        read(file)
    assert not ran.exists()
    if "pickle" in how:
        pickle.loads(file.read_bytes())
        assert ran.exists(), "the bomb is a dud, and the test shows nothing"


def test_a_whole_pickled_network_is_refused_with_advice(tmp_path):
    torch.save(small(), tmp_path / "w.pt")
    with pytest.raises(ValueError, match=r"refused.*torch\.nn\.modules.*save net\.state_dict\(\)"):
        read(tmp_path / "w.pt")


def saved_script(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:  # what torch.jit.save lays out
        for name in ("net/data.pkl", "net/constants.pkl", "net/code/__torch__.py", "net/version"):
            archive.writestr(name, b"3")


def saved_arrays(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, a=np.zeros(3))


OTHERS = {
    "no weights file": lambda path: None,
    "empty file": lambda path: path.touch(),
    "TorchScript": saved_script,
    "ONNX": lambda path: path.write_bytes(b"\x08\x08\x12\x07pytorch" + bytes(40)),
    "HDF5": lambda path: path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(40)),
    "NumPy": saved_arrays,
    "hold a list": lambda path: torch.save([torch.zeros(2)], path),
    "hold no tensors but epoch, weights_ema": lambda path: torch.save({"epoch": 3, "weights_ema": {}}, path),
    "hold no tensors but nothing": lambda path: torch.save({}, path),
    "hold a Tensor": lambda path: torch.save(torch.zeros(2), path),
    r"cannot be read|corrupt": lambda path: path.write_bytes(b"these are not weights, but words"),
}


@pytest.mark.parametrize("words", OTHERS)
def test_other_files_are_refused_in_words(words, tmp_path):
    path = tmp_path / "w.pt"
    OTHERS[words](path)
    with pytest.raises(ValueError, match=words):
        read(path)


@pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")
def test_a_real_torchscript_program_is_refused(tmp_path):
    try:
        torch.jit.save(torch.jit.trace(nn.Linear(2, 2), torch.zeros(1, 2)), str(tmp_path / "w.pt"))
    except Exception:
        pytest.skip("this PyTorch writes no TorchScript")
    with pytest.raises(ValueError, match="are a TorchScript program, wanted a state dict"):
        read(tmp_path / "w.pt")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("name", ["w.pt", "w.safetensors", "old.pt"])
def test_a_file_cut_short_is_told(share, name, tmp_path):
    path, state = tmp_path / name, small().state_dict()
    if name == "w.safetensors":
        safetensors.torch.save_file(state, path)
    else:
        torch.save(state, path, _use_new_zipfile_serialization=name == "w.pt")
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(ValueError, match=r"weights '.*' (cannot be read|are corrupt|are no readable)"):
        read(path)


def test_what_does_not_fit_is_named_with_both_shapes():
    state = dict(small(classes=5).state_dict())
    state["extra.weight"] = state.pop("norm.weight")
    with pytest.raises(ValueError, match="do not fit") as told:
        fit(small(), state, "'w.pt'")
    words = str(told.value)
    assert "1 missing: norm.weight" in words
    assert "1 unexpected: extra.weight" in words
    assert "2 of another shape: head.weight (5, 144), wanted (3, 144), head.bias (5,), wanted (3,)" in words
    assert "for 5 classes, the model for 3: pass --classes 5" in words


def test_another_first_layer_is_not_taken_for_another_number_of_classes():
    other = nn.Sequential(OrderedDict(conv=nn.Conv2d(3, 8, 3), flat=nn.Flatten(), linear=nn.Linear(8, 3)))
    with pytest.raises(ValueError, match=r"2 of another shape: conv.* Give the model that these weights were trained"):
        fit(small(), other.state_dict(), "'w.pt'")


def test_options_of_a_training_script_may_lie_beside_the_weights(tmp_path):
    """DINO, iBOT, MAE and many others save `args`; what torch.load accepts elsewhere stays as it was."""
    torch.save({"model": small().state_dict(), "args": Namespace(lr=0.1, arch="vit_base")}, tmp_path / "w.pth")
    before = torch.serialization.get_safe_globals()
    fit(small(), read(tmp_path / "w.pth"), "'w.pth'")
    assert set(torch.serialization.get_safe_globals()) == set(before)


def test_a_prefix_goes_though_one_key_lacks_it():
    state = {f"model.{key}": value for key, value in small().state_dict().items()} | {"criterion.weight": torch.ones(3)}
    with pytest.raises(ValueError, match=r"the model: 1 unexpected: criterion\.weight\. "):
        fit(small(), state, "'w.ckpt'")


def test_a_few_keys_stand_for_many_and_nothing_is_loaded():
    net = small()
    before = fingerprint(net)
    with pytest.raises(ValueError, match=r"7 unexpected: a0, a1, a2 and 4 more") as told:
        fit(net, {**another().state_dict(), **{f"a{i}": torch.zeros(1) for i in range(7)}}, "'w.pt'")
    assert "--classes" not in str(told.value)
    assert fingerprint(net) == before


def test_weights_of_a_wholly_other_network():
    with pytest.raises(ValueError, match=r"8 missing.*2 unexpected: weight, bias.*trained in"):
        fit(small(), dict(nn.Linear(2, 2).state_dict()), "'w.pt'")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("key", ["head.weight", "norm.running_var"])
def test_weights_that_are_not_finite_are_refused(key, value):
    net = small()
    check_finite(net, "w")
    net.state_dict()[key].view(-1)[1] = value
    with pytest.raises(ValueError, match=f"NaN or infinite in 1 of 9 tensors: {key}"):
        check_finite(net, "w")


def test_the_fingerprint_is_of_names_types_shapes_and_bytes():
    net = small()
    first = fingerprint(net)
    assert len(first) == 64
    assert fingerprint(small()) == first == fingerprint(net.train())
    net.norm.num_batches_tracked += 1
    assert fingerprint(net) != first
    assert fingerprint(small().half()) != fingerprint(small().bfloat16()) != first
    flat, square, whole = nn.Module(), nn.Module(), nn.Module()
    whole.register_buffer("x", torch.zeros(4, dtype=torch.int32))
    flat.register_buffer("x", torch.zeros(4))
    square.register_buffer("x", torch.zeros(2, 2))
    assert len({fingerprint(flat), fingerprint(square), fingerprint(whole)}) == 3
    empty = nn.Module()
    empty.register_buffer("y", torch.zeros(4))
    assert fingerprint(empty) != fingerprint(flat)


def test_the_order_of_layers_does_not_change_the_fingerprint():
    one, two = nn.Module(), nn.Module()
    for net, names in ((one, "ab"), (two, "ba")):
        for name in names:
            net.register_buffer(name, torch.tensor(float(ord(name))))
    assert fingerprint(one) == fingerprint(two)
