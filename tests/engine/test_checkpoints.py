"""Other states of a network: found, read without running code, checked for its architecture."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from saliometer.engine.checkpoints import randomised, states
from toys import small_cnn


class Attending(nn.Module):
    """A token of its own beside layers that can be reset."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.ones(4))
        self.norm = nn.BatchNorm2d(3)
        self.attention = nn.MultiheadAttention(4, 2)


def labels(net, checkpoints) -> list[str]:
    return [state.label for state in states(net, checkpoints, 0)[0]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for epoch in (10, 9, 1):
        torch.save(small_cnn(seed=epoch).state_dict(), tmp_path / f"epoch_{epoch}.pt")
    save_file(small_cnn(seed=5).state_dict(), tmp_path / "last.safetensors")
    (tmp_path / "log.txt").write_text("loss")
    return tmp_path


def test_a_folder_a_pattern_a_file_and_state_dicts_are_taken(folder):
    net = small_cnn()
    epochs = [f"checkpoint(name='epoch_{epoch}.pt')" for epoch in (1, 9, 10)]
    assert labels(net, folder) == ["random_model", *epochs, "checkpoint(name='last.safetensors')"]
    assert labels(net, str(folder / "epoch_*.pt")) == ["random_model", *epochs]
    assert labels(net, [folder / "epoch_9.pt"]) == ["random_model", epochs[1]]
    assert labels(net, [small_cnn(seed=3).state_dict()]) == ["random_model", "checkpoint(name='0')"]
    assert labels(net, None) == ["random_model"]


def test_weights_are_those_of_the_file_and_the_network_stays_as_it_was(folder):
    net = small_cnn()
    before = {key: value.clone() for key, value in net.state_dict().items()}
    found, said = states(net, folder / "epoch_9.pt", 0)
    wanted = small_cnn(seed=9).state_dict()
    assert all(torch.equal(value, wanted[key]) for key, value in found[1].net.state_dict().items())
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())
    assert said == []


def test_without_checkpoints_it_says_what_is_missing():
    _, said = states(small_cnn(), None, 0)
    assert len(said) == 1
    assert "no training checkpoints" in said[0]
    assert "--checkpoints" in said[0]


def test_a_checkpoint_that_is_the_model_itself_is_left_out(tmp_path):
    torch.save(small_cnn().state_dict(), tmp_path / "final.pt")
    found, said = states(small_cnn(), tmp_path / "final.pt", 0)
    assert [state.label for state in found] == ["random_model"]
    assert said == ["checkpoint 'final.pt' is the model itself and was left out"]


def test_the_random_copy_is_drawn_by_seed_and_leaves_the_global_generator_alone():
    net = small_cnn()
    state = torch.get_rng_state()
    one, same, other = (randomised(net, seed).state_dict() for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(one[key], same[key]) for key in one)
    for key, value in net.state_dict().items():
        assert not torch.equal(one[key], value), key
        assert not torch.equal(one[key], other[key]), key


def test_running_statistics_and_tokens_are_drawn_anew_too():
    net = Attending()
    net.norm.running_mean += 3
    fresh = randomised(net, 0)
    assert float(fresh.norm.running_mean.abs().max()) == 0
    assert not torch.equal(fresh.token, net.token)
    assert not torch.equal(fresh.attention.in_proj_weight, net.attention.in_proj_weight)


@pytest.mark.parametrize(
    ("net", "said"),
    [
        (small_cnn(classes=5), "of another shape: 5.weight"),
        (nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), "missing: .*unexpected"),
        (small_cnn(bias=False), "missing: 0.bias, 2.bias, 5.bias"),
    ],
)
def test_another_architecture_is_refused_by_its_keys(net, said, tmp_path):
    torch.save(net.state_dict(), tmp_path / "other.pt")
    with pytest.raises(ValueError, match=f"weights of checkpoint 'other.pt' do not fit the model: .*{said}"):
        states(small_cnn(), tmp_path, 0)


class Evil:
    def __reduce__(self):
        return (Path.touch, (Path("was-here"),))


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda path: torch.save({"state_dict": Evil()}, path), "refused: to read them would load"),
        (lambda path: path.write_bytes(b""), "are an empty file"),
        (lambda path: torch.save(small_cnn(), path), "refused"),
    ],
)
def test_files_that_hold_more_than_tensors_are_refused(write, said, tmp_path):
    write(tmp_path / "bad.pt")
    with pytest.raises(ValueError, match=said):
        states(small_cnn(), tmp_path / "bad.pt", 0)


def test_nan_weights_are_refused(tmp_path):
    state = small_cnn(seed=1).state_dict()
    state["0.weight"][0] = torch.nan
    with pytest.raises(ValueError, match=r"weights of checkpoint '0' are NaN or infinite in 1 of 6 tensors: 0\.weight"):
        states(small_cnn(), [state], 0)


@pytest.mark.parametrize("place", ["nowhere", "nowhere/*.pt"])
def test_a_place_without_checkpoints_is_told(place, tmp_path):
    with pytest.raises(ValueError, match=r"no checkpoints at .* wanted a file, a pattern .* or a folder"):
        states(small_cnn(), str(tmp_path / place), 0)


def test_what_is_no_checkpoint_is_told():
    with pytest.raises(ValueError, match="checkpoints hold int: wanted files, folders, patterns or state dicts"):
        states(small_cnn(), [3], 0)  # type: ignore[list-item]


def test_a_network_without_weights_has_no_other_states():
    with pytest.raises(ValueError, match="the model has no weights to draw anew"):
        states(nn.Flatten(), None, 0)
