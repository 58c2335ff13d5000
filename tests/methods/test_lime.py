"""LIME: methods.md 8.2, the lime package on the same samples, and images with different numbers of segments."""

import numpy as np
import pytest
import torch
from torch import Tensor

from saliometer.methods import _segments
from saliometer.methods._masks import cut
from saliometer.methods.lime import _coins, nearness, ridge
from toys import Formula, batch_of, explain, explained, flat, model_of, noise_batch, seeds_of, small_cnn

PAIRS = torch.tensor([[1, 1], [1, 0], [0, 1], [0, 0]], dtype=torch.bool)[:, None]  # (4, 1, 2)


def present(*counts: int) -> Tensor:
    return torch.arange(max(counts)) < torch.tensor(counts)[:, None]


def blobs(side: int = 24) -> Tensor:
    """(3, 3, side, side): tiles of colour with some noise, 4 x 4 and 2 x 2, and a flat image."""
    generator = torch.Generator().manual_seed(3)
    tiles = [torch.rand(1, 3, count, count, generator=generator) for count in (4, 2)]
    large = [torch.nn.functional.interpolate(one, (side, side)) for one in tiles]
    coloured = torch.cat(large) + 0.05 * torch.rand(2, 3, side, side, generator=generator)
    return torch.cat((coloured, torch.full((1, 3, side, side), 0.5)))


def linear(images: Tensor) -> Formula:
    weights = torch.linspace(-1, 1, images[0].numel())
    return Formula(lambda x: x @ weights / 10)


def test_four_samples_of_two_segments():
    weights = nearness(PAIRS, present(2), 0.25)
    assert weights.flatten().tolist() == pytest.approx([1, 0.50344, 0.50344, 0.00034], abs=1e-5)
    coefficients, fit = ridge(PAIRS, PAIRS[..., 0].double(), weights)
    assert coefficients.flatten().tolist() == pytest.approx([0.26782, -0.06703], abs=1e-5)
    assert fit.item() == pytest.approx(0.4922, abs=1e-4)


def test_half_of_the_segments_weighs_the_same_whatever_their_number():
    for count in (4, 8, 40):
        half, quarter = torch.arange(count) < count // 2, torch.arange(count) < count // 4
        weights = nearness(torch.stack((half, quarter))[:, None], present(count), 0.25)
        assert weights.flatten().tolist() == pytest.approx([0.5034, 0.1353], abs=1e-4)


@pytest.mark.parametrize("segments", [1, 5, 40])
def test_parity_with_the_lime_package_and_scikit_learn(segments):
    """lime 0.2.0.1 (scikit-learn's Ridge, float64) on the same samples: coefficients and R^2 to 1e-10."""
    lime_base = pytest.importorskip("lime.lime_base")
    from sklearn.metrics import pairwise_distances

    coins = _coins(seeds_of(1), 300, present(segments))
    scores = (coins.double() @ torch.linspace(-1, 2, segments, dtype=torch.float64)).sigmoid()
    coefficients, fit = ridge(coins, scores, nearness(coins, present(segments), 0.25))
    rows = coins[:, 0].double().numpy()
    distances = pairwise_distances(rows, rows[:1], metric="cosine").ravel()
    base = lime_base.LimeBase(lambda d: np.sqrt(np.exp(-(d**2) / 0.25**2)))
    _, weighted, score, _ = base.explain_instance_with_data(
        rows, scores.numpy(), distances, 0, segments, feature_selection="none"
    )
    wanted = [value for _, value in sorted(weighted)]
    assert coefficients[0].tolist() == pytest.approx(wanted, abs=1e-10)
    assert fit.item() == pytest.approx(score, abs=1e-10)


class SameCoins:
    """Stands in for the lime package's generator."""

    def __init__(self, coins: Tensor) -> None:
        self.coins = coins

    def randint(self, *_: object) -> np.ndarray:
        return self.coins.long().numpy().ravel()


@pytest.mark.parametrize("fill", ["segment_mean", "black"])
def test_parity_with_the_lime_package_from_image_to_map(fill):
    """lime 0.2.0.1 with our segments and coins; float32 passes, so equal to 1e-5."""
    lime_image = pytest.importorskip("lime.lime_image")
    batch = batch_of(blobs()[:1])
    model = model_of(linear(batch.images))
    labels = cut(model, batch.images, "quickshift", max_dist=10.0, cells=7)
    count = int(labels.max()) + 1
    assert count > 4
    explainer = lime_image.LimeImageExplainer()
    explainer.random_state = SameCoins(_coins(batch.seeds, 100, present(count)))

    def classify(images: np.ndarray) -> np.ndarray:
        return model.logits(torch.from_numpy(images).permute(0, 3, 1, 2).float()).softmax(1).numpy()

    said = explainer.explain_instance(
        batch.images[0].permute(1, 2, 0).double().numpy(),
        classify,
        labels=(0,),
        top_labels=None,
        hide_color=None if fill == "segment_mean" else 0,
        num_features=count,
        num_samples=100,
        random_seed=0,
        segmentation_fn=lambda _: labels[0].numpy(),
    )
    wanted = torch.tensor([value for _, value in sorted(said.local_exp[0])])[labels]
    found = explained(model, batch, f"lime(samples=100,max_dist=10,fill={fill})")
    torch.testing.assert_close(found.maps[:, 0], wanted.float(), rtol=1e-4, atol=1e-5)
    score = said.score[0] if isinstance(said.score, dict) else said.score
    assert found.facts["r2"].item() == pytest.approx(score, abs=1e-5)


def test_the_default_segments_are_those_of_quickshift():
    batch = batch_of(blobs())
    found = explained(model_of(linear(batch.images)), batch, "lime(samples=20,max_dist=10)")
    labels = _segments.quickshift(batch.images, max_dist=10)
    assert found.facts["segments"].tolist() == (labels.flatten(1).amax(1) + 1).tolist()
    for one, cuts in zip(found.maps[:, 0], labels, strict=True):
        for label in cuts.unique():
            assert len(one[cuts == label].unique()) == 1


def test_what_is_segmented_can_be_what_the_model_sees():
    """A model whose input is the picture upside down in brightness: other colours, other segments."""
    batch = batch_of(blobs()[:2])
    model = model_of(linear(batch.images), mean=(0.5,), std=(-0.02,))
    on = {word: cut(model, batch.images, "quickshift", max_dist=10.0, cells=7, on=word) for word in ("pixels", "input")}
    assert torch.equal(on["pixels"], _segments.quickshift(batch.images * -0.02 + 0.5, max_dist=10.0))
    assert torch.equal(on["input"], _segments.quickshift(batch.images, max_dist=10.0))
    assert not torch.equal(on["pixels"], on["input"])
    one, two = (explain(model, batch, f"lime(samples=20,max_dist=10,on={word})") for word in on)
    assert not torch.equal(one, two)


def test_images_with_fewer_segments_are_not_disturbed_by_those_with_more():
    batch = batch_of(blobs())
    model = model_of(linear(batch.images))
    text = "lime(samples=50,max_dist=10,fill=zero)"
    together = explained(model, batch, text)
    alone = [explained(model, batch[i : i + 1], text) for i in range(3)]
    assert len(together.facts["segments"].unique()) == 3
    torch.testing.assert_close(together.maps, torch.cat([one.maps for one in alone]), rtol=1e-4, atol=1e-6)
    for name in ("r2", "segments"):
        torch.testing.assert_close(
            together.facts[name], torch.cat([one.facts[name] for one in alone]), rtol=1e-4, atol=0
        )


def test_a_segment_alone_is_said_and_gets_a_constant_map():
    found = explained(
        model_of(Formula(lambda x: x.sum(1))), batch_of(torch.full((1, 3, 8, 8), 0.01)), "lime(fill=zero)"
    )
    assert found.flags["one_segment"].tolist() == [True]
    assert found.flags["flat_score"].tolist() == [False]
    assert len(found.maps.unique()) == 1
    assert found.maps[0, 0, 0, 0] > 0.05


def test_a_score_that_never_moves_is_said_and_gets_zeros():
    still = model_of(Formula(lambda x: 0 * x[:, 0] + 2))
    found = explained(still, noise_batch(classes=2), "lime(samples=50,segments=grid)")
    assert found.flags["flat_score"].tolist() == [True] * 5
    assert found.facts["r2"].tolist() == [0] * 5
    assert found.maps.abs().max() < 1e-6


def test_a_segment_switched_off_is_filled_as_asked():
    """Two pixels of one segment each: (1, 3); their own mean changes nothing, white and zero do."""
    model = model_of(Formula(lambda x: x.sum(1)))
    for fill, moves in (("segment_mean", [0, 0]), ("zero", [1, 3]), ("white", [0, 2])):
        text = f"lime(samples=4000,segments=grid,cells=2,output=logit,fill={fill})"
        assert explain(model, flat([1, 3]), text).flatten().tolist() == pytest.approx(moves, abs=0.02), fill
    shared = explain(model, flat([1, 3, 5, 5]), "lime(samples=50,segments=grid,cells=2,output=logit)")
    assert shared.abs().max() < 1e-6  # the mean of a segment keeps the sum


def test_its_coins_are_fair_and_each_samples_own():
    coins = _coins(seeds_of(3), 2000, present(7, 3, 12))
    assert coins[0].sum(1).tolist() == [7, 3, 12]
    assert not coins[:, 1, 3:].any()
    assert coins[1:, 2].double().mean().item() == pytest.approx(0.5, abs=0.01)
    assert torch.equal(_coins(seeds_of(3), 10, present(7, 3, 12)), coins[:10])
    assert torch.equal(_coins(seeds_of(1), 2000, present(7)), coins[:, :1, :7])
    correlation = torch.corrcoef(coins[1:, 2].T.double()) - torch.eye(12)
    assert correlation.abs().max() < 4.5 / 2000**0.5


@pytest.mark.parametrize(
    ("paint", "wanted"),
    [("positive", lambda c: c.relu()), ("sign_top10", lambda c: c.sign() * (c.abs() >= c.abs().unique()[-10]))],
)
def test_the_papers_ways_to_paint(paint, wanted):
    batch = noise_batch(1)
    model = model_of(small_cnn())
    coefficients = explain(model, batch, "lime(samples=60,segments=grid,cells=4)")
    found = explain(model, batch, f"lime(samples=60,segments=grid,cells=4,paint={paint})")
    assert len(coefficients.unique()) == 16
    torch.testing.assert_close(found, wanted(coefficients))
    assert paint == "positive" or found.ne(0).sum() == 40


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        ("samples=1", ValueError, "lime: samples=1, kernel_width=0.25; wanted samples of 2 or more"),
        ("kernel_width=0", ValueError, "lime: samples=1000, kernel_width=0; wanted"),
        ("segments=squares", LookupError, "there is no segments 'squares'"),
        ("segments=grid,cells=0", ValueError, "grid: cells=0, wanted 1 or more"),
        ("on=lab", LookupError, "there is no on 'lab'"),
        ("fill=grey", LookupError, "there is no fill 'grey'"),
        ("paint=top5", LookupError, "there is no paint 'top5'"),
        ("output=logits", LookupError, "there is no output 'logits'"),
    ],
)
def test_what_cannot_be_done_is_refused(params, error, words):
    with pytest.raises(AssertionError, match=rf"(?s){error.__name__}: {words}"):
        explain(model_of(small_cnn()), noise_batch(), f"lime({params})")
