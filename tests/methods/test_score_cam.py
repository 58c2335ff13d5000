"""Score-CAM: the known answer of methods.md, fills, flat channels, passes, and pytorch-grad-cam."""

import pytest
import torch
from torch import Tensor, nn

from cam_toys import IMAGE_A, assert_parity, gap_cnn
from saliometer.engine.answer import Answers
from saliometer.engine.score import attributions
from toys import CPU, Spy, asked, batch_of, explain, explained, model_of, noise_batch


class Shown(nn.Module):
    """A layer that gives the same maps for every image, beside a score of the pixels alone."""

    def __init__(self, maps: Tensor, weight: float = 1.0) -> None:
        super().__init__()
        self.features, self.maps, self.weight = nn.Identity(), maps, weight

    def forward(self, images: Tensor) -> Tensor:
        self.features(self.maps.expand(len(images), -1, -1, -1))
        score = self.weight * images.sum((1, 2, 3))
        return torch.stack((score, 0 * score), 1)


ONES = batch_of(torch.ones(1, 1, 2, 2, dtype=torch.float64))
MAPS = IMAGE_A.double()


def test_the_known_answer():
    """f(x M) = (2, 1), weights (0.73106, 0.26894)."""
    maps = explain(model_of(Shown(MAPS), "features"), ONES, "score_cam")
    assert maps.flatten().tolist() == pytest.approx([1.80682, 1.46212, 2.19318, 2.92423], abs=1e-5)


def test_probabilities_as_weights_do_not_share_one_softmax():
    """softmax(2, 0) and softmax(1, 0): 0.880797 and 0.731059."""
    maps = explain(model_of(Shown(MAPS), "features"), ONES, "score_cam(weights=probability)")
    first, second = 0.8807970779778823, 0.7310585786300049
    wanted = [first + 4 * second, 2 * first, 3 * first, 4 * first]
    assert maps.flatten().tolist() == pytest.approx(wanted, abs=1e-12)


def test_black_hides_with_black():
    """Black is -1 there: f(x M + black (1 - M)) = 2 - 2 and 1 - 3; the softmax only sees their difference, 2."""
    model = model_of(Shown(MAPS), "features", mean=(0.5,), std=(0.5,))
    share = torch.sigmoid(torch.tensor(2.0)).item()
    maps = explain(model, ONES, "score_cam(fill=black)").flatten().tolist()
    assert maps == pytest.approx([share + 4 * (1 - share), 2 * share, 3 * share, 4 * share], abs=1e-6)


def test_a_flat_channel_is_left_out():
    """A third channel of sevens changes nothing, neither in the softmax nor in the sum."""
    flat = torch.cat((MAPS, torch.full((1, 1, 2, 2), 7.0, dtype=torch.float64)), 1)
    for weights in ("softmax_logits", "probability"):
        one, two = (
            explain(model_of(Shown(m), "features"), ONES, f"score_cam(weights={weights})") for m in (MAPS, flat)
        )
        torch.testing.assert_close(one, two)


def test_only_flat_channels_make_a_dead_map():
    found = explained(model_of(Shown(torch.full_like(MAPS, 7.0)), "features"), ONES, "score_cam")
    assert found.maps.tolist() == [[[[0, 0], [0, 0]]]]
    assert found.flags["dead_cam"].tolist() == [True]


class Own(nn.Module):
    """The image's own channels as features."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.features(images)
        return features.mean((2, 3))


def test_an_image_whose_channels_are_flat_is_dead_among_others():
    images = torch.cat((IMAGE_A, torch.ones_like(IMAGE_A)))
    model = model_of(Own(), "features")
    found = explained(model, batch_of(images), "score_cam")
    assert found.flags["dead_cam"].tolist() == [False, True]
    torch.testing.assert_close(found.maps[:1], explain(model, batch_of(IMAGE_A), "score_cam"))


@pytest.mark.parametrize("weights", ["softmax_logits", "probability"])
def test_a_channel_that_is_flat_for_one_image_is_left_out_of_that_one(weights):
    """Its first channel alone counts there, with all of the weight, or with its probability."""
    half_flat = torch.cat((IMAGE_A[:, :1], torch.ones_like(IMAGE_A[:, :1])), 1)
    model, text = model_of(Own(), "features"), f"score_cam(weights={weights})"
    together = explain(model, batch_of(torch.cat((IMAGE_A, half_flat))), text)
    torch.testing.assert_close(together[1:], explain(model, batch_of(half_flat), text))
    if weights == "softmax_logits":
        torch.testing.assert_close(together[1:], half_flat[:, :1])


@pytest.mark.parametrize("size", [0, 3])
def test_no_pass_is_spent_on_channels_that_are_flat_for_all_images(size):
    net = gap_cnn()
    with torch.no_grad():
        net[2].weight[1] = 0  # flat on every image
    spy = Spy(net)
    answers = Answers(model_of(spy, "net.3"), CPU, size)
    batch = noise_batch(3)
    attributions([asked("score_cam")], answers, batch)
    shaped = net[:4](batch.images).flatten(2)
    alive = (shaped.amax(2) > shaped.amin(2)).any(0).sum()
    assert 0 < alive < 5
    assert sum(spy.sizes) == 3 + 3 * alive


def test_the_maps_are_those_of_masks_made_one_by_one():
    """gap_cnn at half size in float64: every mask enlarged, scaled and applied by hand."""
    batch = noise_batch(3)
    batch = type(batch)(batch.images.double(), batch.targets, batch.seeds)
    net = gap_cnn(seed=3).double()
    wanted = []
    for image, target in zip(batch.images, batch.targets, strict=True):
        activations = net[:4](image[None])[0].detach()
        used = [a for a in activations if a.max() > a.min()]
        scores = []
        for channel in used:
            mask = nn.functional.interpolate(channel[None, None], (8, 8), mode="bilinear", align_corners=False)[0]
            mask = (mask - mask.min()) / (mask.max() - mask.min())
            scores.append(net((image * mask)[None])[0, target].detach())
        wanted.append(sum(w * a for w, a in zip(torch.stack(scores).softmax(0), used, strict=True)))
    wanted = nn.functional.interpolate(torch.stack(wanted)[:, None], (8, 8), mode="bilinear", align_corners=False)
    torch.testing.assert_close(explain(model_of(net), batch, "score_cam(relu=none)"), wanted, rtol=1e-10, atol=1e-12)


def test_parity_with_pytorch_grad_cam():
    """1.5.7 enlarges masks with align_corners=True, so a layer as large as the image, no flat channels; 2e-5."""
    net = gap_cnn(stride=1, seed=2)
    with torch.no_grad():
        net[2].bias.add_(0.3)
    model, batch = model_of(net), noise_batch(3)
    shaped = net[:4](batch.images).flatten(2)
    assert (shaped.amax(2) > shaped.amin(2)).all()
    assert_parity("ScoreCAM", explain(model, batch, "score_cam"), model, batch)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ("weights=logits", "LookupError: there is no weights 'logits'. Did you mean 'softmax_logits'?"),
        ("fill=grey", "LookupError: there is no fill 'grey'"),
    ],
)
def test_what_cannot_be_done_is_refused(params, words):
    with pytest.raises(AssertionError, match=words):
        explain(model_of(gap_cnn()), noise_batch(2), f"score_cam({params})")
