"""Occlusion: methods.md 8.4, Captum, and windows that do not fit."""

import pytest
import torch
from captum.attr import Occlusion

from toys import Formula, Spy, batch_of, explain, flat, model_of, noise_batch, small_cnn

TOTAL = model_of(Formula(lambda x: x.sum(1)))


@pytest.mark.parametrize(
    ("pixels", "params", "wanted"),
    [
        ([1, 2, 3], "window=2,stride=1", [3, 4, 5]),
        ([1, 2, 3, 4, 5], "window=2,stride=2", [3, 3, 7, 8, 9]),  # the last window is moved to fit, not cut
        ([1, 2, 3], "window=7,stride=1", [6, 6, 6]),
        ([1, 2, 3], "window=1,stride=1", [1, 2, 3]),
        ([1, 2, 3], "window=1,stride=1,fill=white", [0, 1, 2]),
        ([1, 2, 3], "", [1, 2, 3]),
    ],
)
def test_the_answers_of_the_sheet(pixels, params, wanted):
    assert explain(TOTAL, flat(pixels), f"occlusion({params})").flatten().tolist() == pytest.approx(wanted, abs=1e-6)


def test_single_pixels_of_a_linear_model_get_their_weight_times_their_value():
    weights = torch.linspace(-1, 2, 3 * 5 * 6)
    batch = batch_of(torch.rand(2, 3, 5, 6, generator=torch.Generator().manual_seed(0)))
    maps = explain(model_of(Formula(lambda x: x @ weights)), batch, "occlusion(window=1,stride=1)")
    wanted = (batch.images * weights.view(3, 5, 6)).sum(1, keepdim=True)
    torch.testing.assert_close(maps, wanted, rtol=1e-4, atol=1e-5)


def test_at_224_pixels_it_takes_625_windows_and_the_image():
    spy = Spy(Formula(lambda x: x[:, 0]))
    explain(model_of(spy), batch_of(torch.zeros(1, 1, 224, 224)), "occlusion", size=64)
    assert sum(spy.sizes) == 626


def test_sides_are_measured_each_for_itself():
    """14 x 28 pixels: windows of 2 x 4 in steps of 1; one bright pixel darkens exactly the windows over it."""
    images = torch.zeros(1, 1, 14, 28)
    images[0, 0, 5, 9] = 1
    shown = explain(TOTAL, batch_of(images), "occlusion")[0, 0] > 0
    assert shown.nonzero().amin(0).tolist() == [4, 6]
    assert shown.nonzero().amax(0).tolist() == [6, 12]
    assert shown.sum() == 3 * 7


@pytest.mark.parametrize(("window", "stride"), [(2, 2), (3, 1), (4, 2)])
def test_parity_with_captum(window, stride):
    """Captum 0.9.0, windows that fit the 8 x 8 images; float32 scores, so equal to 1e-5."""
    model, batch = model_of(small_cnn()), noise_batch()
    maps = explain(model, batch, f"occlusion(window={window},stride={stride})")
    wanted = Occlusion(model.net).attribute(
        batch.images, (3, window, window), (3, stride, stride), baselines=0, target=batch.targets
    )[:, :1]
    torch.testing.assert_close(maps, wanted.float(), rtol=1e-5, atol=1e-6)


def test_it_follows_the_score_it_is_asked_for():
    model, batch = model_of(small_cnn()), noise_batch(1)
    maps = explain(model, batch, "occlusion(window=8,output=probability)")
    with torch.no_grad():
        whole, hidden = (model.logits(images).softmax(1)[0, 0] for images in (batch.images, 0 * batch.images))
    torch.testing.assert_close(maps, (whole - hidden).expand(1, 1, 8, 8))


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        (
            "window=2,stride=3",
            ValueError,
            "occlusion: window=2, stride=3; wanted a stride of 1 or more, up to the window",
        ),
        ("window=-1", ValueError, "occlusion: window=-1, stride=0; wanted"),
        ("stride=-1", ValueError, "occlusion: window=0, stride=-1; wanted"),
        ("fill=grey", LookupError, "there is no fill 'grey'"),
        ("output=logits", LookupError, "there is no output 'logits'. Did you mean 'logit'?"),
    ],
)
def test_what_cannot_be_done_is_refused(params, error, words):
    with pytest.raises(AssertionError, match=rf"(?s){error.__name__}: {words}"):
        explain(TOTAL, flat([1, 2, 3, 4]), f"occlusion({params})")
