"""The controls come out as they must: what knows no weights is insensitive, what knows the answer is accurate."""

import pytest
import torch

from saliometer.sanity import controls
from saliometer.sanity.effect import energy, pairwise, permutation, shares
from saliometer.sanity.focus import area_share, dissociation, focus
from saliometer.sanity.uncertainty import MARGINS, bootstrap_contrast, bootstrap_energy, equivalent
from saliometer.sanity.verdict import INSENSITIVE, SENSITIVE, Focused, verdict
from saliometer.seeds import scoped
from saliometer.tasks.shape_digits import seen_as, shape_digits
from saliometer.types import PRIMARY, SECONDARY, Model, Samples
from toys import explain

R, J = 5, 20  # enough for a p that Holm leaves below 0.01


def samples() -> Samples:
    """Ten digits with a rectangle and ten with a circle."""
    return shape_digits("shape", count=20, start=10)


def masks(some: Samples) -> tuple[torch.Tensor, torch.Tensor]:
    return some.region(PRIMARY, "ink"), some.region(SECONDARY, "ink")


def stacked(kind: str, deciding: torch.Tensor | None, models: range, some: Samples) -> torch.Tensor:
    size = some.batch.images.shape[2:]
    if kind == "oracle":
        maps = [controls.oracle(deciding, some.batch.seeds, f"{deciding is None} {m}", size) for m in models]
    else:
        maps = [controls.fresh_noise(some.batch.seeds, f"{m}", size) for m in models]
    return torch.stack(maps)


def judged(first: torch.Tensor, second: torch.Tensor, random: torch.Tensor):
    """The verdict on t1, from maps (models, n, 1, H, W) of networks for the shape, for the digit and for nothing."""
    deciding, distracting = masks(samples())
    distances = pairwise(torch.cat((first, random)))
    ours, others, chance = (focus(shares(maps)[0], deciding, distracting) for maps in (first, second, random))
    found = Focused(
        bootstrap_contrast([(1, ours), (-1, others)], draws=300),
        bootstrap_contrast([(1, ours)], draws=300),
        bootstrap_contrast([(1, chance)], draws=300),
        bootstrap_contrast([(1, area_share(deciding, distracting)[None])], draws=300),
    )
    spread = bootstrap_energy(distances, len(first), draws=300)
    return verdict(spread, permutation(distances, len(first)).p, focused=found), distances, dissociation(ours, others)


def test_fresh_noise_is_insensitive_though_no_two_of_its_maps_are_alike():
    some = samples()
    parts = [stacked("noise", None, models, some) for models in (range(R), range(100, 100 + R), range(200, 200 + J))]
    found, distances, apart = judged(*parts)
    assert (found.word, found.accurate) == (INSENSITIVE, False)
    terms = energy(distances, R)
    assert terms.between == pytest.approx(1 / 3, abs=0.01)
    assert equivalent(apart.nanmean(1), MARGINS["DD"]).holds


def test_the_oracle_is_sensitive_and_accurate():
    some = samples()
    by_shape, by_digit = masks(some)[0], masks(seen_as(some, "digit"))[0]
    parts = [stacked("oracle", truth, range(m), some) for truth, m in ((by_shape, R), (by_digit, R), (None, J))]
    found, _, apart = judged(*parts)
    assert (found.word, found.accurate) == (SENSITIVE, True)
    assert apart.nanmean() > 0.8


def test_with_four_against_four_even_the_oracle_is_not_called_sensitive():
    some = samples()
    truth = masks(some)[0]
    ours, chance = stacked("oracle", truth, range(4), some), stacked("oracle", None, range(4), some)
    distances = pairwise(torch.cat((ours, chance)))
    assert permutation(distances, 4).p == pytest.approx(2 / 70)
    assert verdict(bootstrap_energy(distances, 4, draws=300), 2 / 70).word == "undecided"


def test_the_oracle_has_a_tenth_of_its_mass_in_noise_and_all_where_nothing_decides():
    some = shape_digits("shape", count=20)  # ten of them without a shape
    truth = masks(some)[0]
    maps = controls.oracle(truth, some.batch.seeds, "m", (28, 28))[:, 0]
    torch.testing.assert_close(maps.sum((1, 2)), torch.ones(20))
    inside = (maps * truth).sum((1, 2))
    assert (inside[10:] > 0.9).all()
    assert (inside[:10] == 0).all()
    torch.testing.assert_close(maps[:10], controls.oracle(None, some.batch.seeds, "m", (28, 28))[:10, 0])


@pytest.mark.parametrize("name", [name for name in controls.NEGATIVE if name != "fresh_noise"])
def test_methods_that_know_no_weights_have_no_energy_and_no_dissociation(name):
    some = samples()
    maps = []
    for seed in range(4):
        with scoped("control", seed):
            net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 3)).requires_grad_(False)
        maps.append(explain(Model(f"{seed}", net, "", ""), some.batch, name))
    found, distances, apart = judged(torch.stack(maps[:2]), torch.stack(maps[1:3]), torch.stack(maps[2:]))
    assert (distances == 0).all()
    assert (apart.nan_to_num(0) == 0).all()
    assert (found.word, found.accurate) == (INSENSITIVE, False)
