"""The question for a layer's output on any images: how many there may be, what it costs, when it fails."""

import pytest
import torch
from torch import Tensor, nn

from saliometer.engine.answer import Answers
from saliometer.types import Activations, Features
from toys import CPU, Cramped, Spy, model_of, noise_batch, small_cnn


@pytest.mark.parametrize("count", [1, 5, 12])
@pytest.mark.parametrize("size", [0, 4])
def test_it_is_what_the_layer_gives_out_for_however_many_images(count, size):
    spy, images = Spy(small_cnn()), noise_batch(count).images
    answers = Answers(model_of(spy, "net.3"), CPU, size)
    found = answers({"toy": Activations(images, "net.2")}, noise_batch(5).targets)["toy"]
    torch.testing.assert_close(found, spy.net[:3](images))
    assert not found.requires_grad
    assert answers.passes == answers.asked == sum(spy.sizes) == count


def test_it_is_what_features_say():
    batch, answers = noise_batch(5), Answers(model_of(small_cnn()), CPU, 3)
    found = answers(
        {"a": Activations(batch.images, "1"), "b": Features(batch.images, "1"), "c": Activations(batch.images, "2")},
        batch.targets,
    )
    torch.testing.assert_close(found["a"], found["b"][0])
    assert found["c"].shape == (5, 5, 4, 4)


def test_what_is_overwritten_later_is_given_as_it_was():
    net = small_cnn()
    net[3] = nn.ReLU(inplace=True)
    images = noise_batch(3).images
    found = Answers(model_of(net), CPU)({"toy": Activations(images, "2")}, noise_batch(3).targets)["toy"]
    torch.testing.assert_close(found, small_cnn()[:3](images))
    assert found.min() < 0


def test_a_batch_that_does_not_fit_is_halved():
    net = Cramped(small_cnn(), most=3)
    images = noise_batch(7).images
    found = Answers(model_of(net, "net.3"), CPU, 16)({"toy": Activations(images, "net.3")}, noise_batch(7).targets)
    torch.testing.assert_close(found["toy"], net.net[:4](images))


def test_a_layer_inside_an_encoder_that_would_run_fused_is_heard():
    """PyTorch's encoder layers skip their parts when gradients are off, unless somebody listens."""

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

        def forward(self, images: Tensor) -> Tensor:
            return self.layer(images.flatten(1, 2))[:, 0, :3]

    images = noise_batch(2).images
    found = Answers(model_of(Encoder()), CPU)({"toy": Activations(images, "layer.norm1")}, noise_batch(2).targets)[
        "toy"
    ]
    assert found.shape == (2, 24, 8)


@pytest.mark.parametrize(
    ("layer", "words"),
    [("9", "model 'toy': there is no layer '9'"), ("6", "model 'toy': layer '6' has no part in the score")],
)
def test_a_layer_that_cannot_be_read_fails_its_asker_alone(layer, words):
    class Skips(nn.Sequential):
        def forward(self, images: Tensor) -> Tensor:
            return nn.Sequential(*list(self)[:6])(images)

    batch = noise_batch(3)
    net = Skips(*small_cnn(), nn.Identity())
    questions = {"bad": Activations(batch.images, layer), "good": Activations(batch.images, "3")}
    found = Answers(model_of(net), CPU)(questions, batch.targets)
    assert isinstance(found["bad"], LookupError)
    assert words in str(found["bad"])
    assert isinstance(found["good"], Tensor)
