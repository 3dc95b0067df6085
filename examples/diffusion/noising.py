"""The training of a denoiser (DDPM): the model draws a time and noise for each sample in its forward."""

from __future__ import annotations

import math
from typing import Tuple

import torch
import torch.nn as nn

TIMES = 100


class Noising(nn.Module):
    """Returns the error of the denoiser's prediction, which `mean_square` makes the loss."""

    def __init__(self, denoiser: nn.Module):
        super().__init__()
        self.denoiser = denoiser
        share = torch.cos((torch.arange(TIMES) + 1) / (TIMES + 1) * math.pi / 2) ** 2  # of the picture, by time
        self.register_buffer("picture_scale", share.sqrt())
        self.register_buffer("noise_scale", (1 - share).sqrt())

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        time = torch.randint(TIMES, (images.size(0),), device=images.device)
        return self.error(images, labels, time, torch.randn_like(images))

    def error(self, images: torch.Tensor, labels: torch.Tensor, time: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        scales = (scale[time][:, None, None, None] for scale in (self.picture_scale, self.noise_scale))
        return self.denoiser(next(scales) * images + next(scales) * noise, time, labels) - noise


def mean_square(error: torch.Tensor, _: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """Sum and count. A denoiser has no target but the noise, so the data has zeros as targets."""
    return error.square().sum(), torch.full((), error.numel(), dtype=torch.int64)
