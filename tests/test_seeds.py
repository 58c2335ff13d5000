"""Streams of random numbers: the same alone and in a batch, the same for ever, and random."""

import hashlib
from functools import cache

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from saliometer.seeds import fork, forks, normal, scoped, uniform, uniforms

SEEDS = forks(fork("tests"), torch.arange(6))


def drawn(seeds: Tensor, purpose: str) -> dict[str, Tensor]:
    return {"uniform": uniform(seeds, purpose, 3, 5), "normal": normal(seeds, purpose, torch.zeros(len(seeds), 3, 5))}


@cache
def many(count: int = 1_000_000) -> dict[str, np.ndarray]:
    one = torch.tensor([fork("many")])
    return {
        "uniform": uniform(one, "many", count)[0].double().numpy(),
        "normal": normal(one, "many", torch.zeros(1, count))[0].double().numpy(),
    }


@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_a_stream_is_the_same_alone_in_a_batch_and_in_another_order(kind):
    together = drawn(SEEDS, "noise")[kind]
    alone = torch.cat([drawn(SEEDS[i : i + 1], "noise")[kind] for i in range(len(SEEDS))])
    backwards = drawn(SEEDS.flip(0), "noise")[kind].flip(0)
    assert torch.equal(together, alone)
    assert torch.equal(together, backwards)


@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_another_purpose_and_another_seed_give_other_numbers(kind):
    one, other = (drawn(SEEDS, purpose)[kind] for purpose in ("noise", "noise "))
    assert (one != other).all()
    assert len(one.unique()) == one.numel()


def test_a_longer_draw_begins_like_a_shorter_one():
    assert torch.equal(uniform(SEEDS, "x", 1000)[:, :10], uniform(SEEDS, "x", 10))


def test_the_streams_are_those_of_the_first_release():
    """Golden: a change here changes every image and every noisy map, so it needs a new version of the task."""
    assert fork("a", 1) == 1635061960360317945
    assert forks(0, torch.arange(3)).tolist() == [0, -2152535657050944081, 7960286522194355700]
    assert (uniform(forks(0, torch.arange(2)), "x", 4) * 2**24).tolist() == [
        [4633783, 16673013, 13245555, 3213735],
        [12106831, 10020338, 16435713, 16420812],
    ]
    digest = hashlib.sha256((uniform(forks(0, torch.arange(4)), "golden", 1000) * 2**24).int().numpy().tobytes())
    assert digest.hexdigest() == "06d3a91965c80e9e331c9282bc2e9618c07df8fe63df5564b90ef7da16b2d461"
    wanted = torch.tensor([[0.4789171, 0.0701510, 0.0152333], [-0.7574415, 1.5798494, -0.0514935]])
    torch.testing.assert_close(normal(torch.tensor([1, 2]), "x", torch.zeros(2, 3)), wanted, rtol=1e-5, atol=1e-6)


def splitmix(z: int) -> int:
    """The finaliser of SplitMix64 in Python's unbounded integers."""
    mask = (1 << 64) - 1
    z = (((z & mask) ^ ((z & mask) >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def lowbias(x: int) -> int:
    """Wellons' 32-bit mixer in Python's unbounded integers."""
    mask = (1 << 32) - 1
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & mask
    x = ((x ^ (x >> 15)) * 0x846CA68B) & mask
    return x ^ (x >> 16)


def test_forks_are_splitmix64():
    seed, indices = fork("walk"), [0, 1, 2, 1000, 2**40]
    wanted = [splitmix(seed + index * 0x9E3779B97F4A7C15) for index in indices]
    assert [value % 2**64 for value in forks(seed, torch.tensor(indices)).tolist()] == wanted


def test_forks_of_many_seeds_are_those_of_each():
    indices = torch.arange(7)
    together = forks(SEEDS[:, None], indices)
    assert together.shape == (6, 7)
    assert torch.equal(together, torch.stack([forks(seed, indices) for seed in SEEDS.tolist()]))
    assert len(together.unique()) == 42


def test_uniform_numbers_follow_their_formula_on_integers():
    """Wrapping int32 arithmetic in torch against plain integers, with a negative seed among them."""
    seeds = [0, 5, -7, 2**62 + 1]
    keys = [splitmix(seed ^ fork("x")) for seed in seeds]
    bits = [[lowbias((lowbias((i + key) % 2**32) + (key >> 32)) % 2**32) for i in range(50)] for key in keys]
    wanted = [[number >> 8 for number in row] for row in bits]
    assert (uniform(torch.tensor(seeds), "x", 50) * 2**24).tolist() == wanted


def test_forks_keep_parts_apart():
    assert len({fork("a", "b"), fork("ab"), fork("a b"), fork("b", "a"), fork(("a", "b"))}) == 5
    assert fork(1) != fork("1")
    assert min(fork(i) for i in range(1000)) >= 0
    assert max(fork(i) for i in range(1000)) < 2**63


@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_a_long_stream_has_the_distribution_it_claims(kind):
    """Kolmogorov-Smirnov on a million numbers: fixed seeds, so this never flickers."""
    law = {"uniform": stats.uniform, "normal": stats.norm}[kind]
    values = many()[kind]
    assert stats.kstest(values, law.cdf).pvalue > 0.01
    assert values.mean() == pytest.approx(law.mean(), abs=4 * law.std() / 1000)
    assert values.var() == pytest.approx(law.var(), rel=0.006)
    assert stats.kurtosis(values) == pytest.approx(law.stats(moments="k"), abs=0.02)


@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_the_first_numbers_of_neighbouring_seeds_have_that_distribution_too(kind):
    """Plain consecutive seeds, unmixed: image 1 must not look like image 2."""
    law = {"uniform": stats.uniform, "normal": stats.norm}[kind]
    first = drawn(torch.arange(100_000), "x")[kind].flatten(1)[:, 0].double().numpy()
    assert stats.kstest(first, law.cdf).pvalue > 0.01
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 4 / np.sqrt(len(first))


@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_numbers_know_nothing_of_each_other(kind):
    values = many()[kind]
    count = len(values)
    half = count // 2
    pairs = {
        "neighbours": (values[:-1], values[1:]),
        "the two branches of Box-Muller": (values[:half], values[half:]),
        "their squares": (values[:half] ** 2, values[half:] ** 2),
        "64 apart": (values[:-64], values[64:]),
    }
    for name, (one, two) in pairs.items():
        assert abs(np.corrcoef(one, two)[0, 1]) < 4 / np.sqrt(len(one)), name
    purposes = [uniform(torch.tensor([7]), name, 100_000)[0].numpy() for name in ("draw 1", "draw 2")]
    assert abs(np.corrcoef(*purposes)[0, 1]) < 4 / np.sqrt(100_000)


def test_pairs_of_uniform_numbers_fill_the_square_evenly():
    values = many()["uniform"]
    counts, _, _ = np.histogram2d(values[::2], values[1::2], bins=32, range=[[0, 1], [0, 1]])
    assert stats.chisquare(counts.ravel()).pvalue > 0.01


def test_every_bit_of_a_uniform_number_is_fair():
    values = (uniform(torch.arange(100), "bits", 10_000) * 2**24).long()
    for bit in range(24):
        share = ((values >> bit) & 1).double().mean().item()
        assert share == pytest.approx(0.5, abs=0.002), f"bit {bit}"


def test_normal_follows_the_type_and_the_odd_shape_it_is_asked_for():
    like = torch.zeros(6, 3, 3, dtype=torch.float64)
    values = normal(SEEDS, "x", like)
    assert values.dtype == torch.float64
    assert values.shape == like.shape
    torch.testing.assert_close(values.float(), normal(SEEDS, "x", like.float()))


def test_streams_neither_read_nor_move_the_callers_generator():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one = drawn(SEEDS, "x")["normal"]
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(2)
    assert torch.equal(one, drawn(SEEDS, "x")["normal"])


def test_scoped_gives_repeatable_weights_and_leaves_the_caller_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()

    def weights(*parts: object) -> Tensor:
        with scoped(*parts):
            return nn.Linear(3, 3).weight.detach()

    assert torch.equal(weights("a", 1), weights("a", 1))
    assert not torch.equal(weights("a", 1), weights("a", 2))
    assert torch.equal(before, torch.get_rng_state())


def test_scoped_brings_the_callers_state_back_after_an_error():
    before = torch.get_rng_state()
    with pytest.raises(ZeroDivisionError), scoped("x"):
        1 / torch.rand(1).mul(0).int().item()
    assert torch.equal(before, torch.get_rng_state())


def test_several_purposes_at_once_are_each_ones_own():
    seeds = forks(3, torch.arange(5))
    words = ["one", "another", "the last"]
    assert torch.equal(uniforms(seeds, words, 2, 7), torch.stack([uniform(seeds, word, 2, 7) for word in words]))
    assert uniforms(seeds, [], 2, 7).shape == (0, 5, 2, 7)
