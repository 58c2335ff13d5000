"""How fine a map is: how far apart two of its pixels are that have half of their variation in common."""

import torch
from torch import Tensor


def grain(maps: Tensor) -> Tensor:
    """(N,) float64: the lag, in pixels, at which the autocorrelation of maps (N, H, W) falls to 1/2; NaN where flat
    or not finite.

    The mean of both directions, lag by lag; 0.5 for white noise, 1.67 sigma for noise under a Gaussian, and half of the
    shorter side at most.
    """
    height, width = maps.shape[1:]
    most = min(height, width) // 2
    centred = maps.double() - maps.double().mean((1, 2), keepdim=True)
    power = torch.fft.rfft2(centred, s=(2 * height, 2 * width)).abs().square()
    summed = torch.fft.irfft2(power, s=(2 * height, 2 * width))  # of products of pixels so far apart
    lags = torch.arange(most + 1, device=maps.device)
    down, right = summed[:, : most + 1, 0] / (height - lags), summed[:, 0, : most + 1] / (width - lags)
    joined = down / width + right / height
    varies = centred.abs().amax((1, 2)) >= 1e-9  # nor does what is NaN
    found = _crossing(joined / joined[:, :1].where(varies[:, None], 1.0))
    return found.where(varies, torch.nan)


def _crossing(falling: Tensor) -> Tensor:
    """(N,): where (N, lags), 1 at lag 0, first falls to 1/2, on a line between two lags; the last if it does not."""
    below = falling <= 0.5
    last = falling.shape[1] - 1
    place = torch.where(below.any(1), below.double().argmax(1), last)
    after = falling.gather(1, place[:, None])[:, 0]
    before = falling.gather(1, (place - 1).clamp(min=0)[:, None])[:, 0]
    share = ((before - 0.5) / (before - after).where(before != after, 1.0)).clamp(0, 1)
    return torch.where(below.any(1), place - 1 + share, float(last))
