"""Two small models that predict the noise in pictures from time and class: a diffusion transformer and a U-Net."""

from __future__ import annotations

import math
from typing import Optional

import torch
import torch.nn as nn
import torch.nn.functional as F


class Conditions(nn.Module):
    """A vector per sample, of its time and its class."""

    def __init__(self, width: int, classes: int):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(32, width), nn.SiLU(), nn.Linear(width, width))
        self.classes = nn.Embedding(classes, width)

    def forward(self, time: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        angles = time[:, None] * torch.exp(-math.log(10000) * torch.arange(16) / 16)
        return self.time(torch.cat([angles.sin(), angles.cos()], -1)) + self.classes(label)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, heads: int) -> torch.Tensor:
    """Of [samples, tokens, width]."""
    q, k, v = (x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (q, k, v))
    weights = (q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))).softmax(-1)
    return (weights @ v).transpose(1, 2).flatten(2)


class TransformerBlock(nn.Module):
    """A transformer's block whose norms are scaled and shifted by the conditions (adaLN), as in DiT."""

    def __init__(self, width: int):
        super().__init__()
        self.attention_norm, self.mlp_norm = (nn.LayerNorm(width, elementwise_affine=False) for _ in range(2))
        self.to_q, self.to_k, self.to_v, self.to_out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.modulation = nn.Linear(width, 6 * width)

    def forward(self, x: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        scale, shift, gate, mlp_scale, mlp_shift, mlp_gate = self.modulation(F.silu(condition))[:, None].chunk(6, -1)
        y = self.attention_norm(x) * (1 + scale) + shift
        x = x + gate * self.to_out(attention(self.to_q(y), self.to_k(y), self.to_v(y), heads=4))
        y = self.mlp_norm(x) * (1 + mlp_scale) + mlp_shift
        return x + mlp_gate * self.down(F.gelu(self.up(y), approximate="tanh"))


class DiffusionTransformer(nn.Module):
    """For pictures [channels, size, size], in patches of patch × patch."""

    def __init__(self, channels: int, size: int, patch: int, width: int = 64, blocks: int = 2, classes: int = 10):
        super().__init__()
        self.patch, self.side = patch, size // patch
        self.patches = nn.Conv2d(channels, width, patch, patch)
        self.positions = nn.Parameter(torch.randn(1, self.side ** 2, width) * 0.02)
        self.conditions = Conditions(width, classes)
        self.blocks = nn.ModuleList(TransformerBlock(width) for _ in range(blocks))
        self.final = nn.Linear(width, patch * patch * channels)

    def forward(self, x: torch.Tensor, time: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        condition = self.conditions(time, label)
        x = self.patches(x).flatten(2).transpose(1, 2) + self.positions
        for block in self.blocks:
            x = block(x, condition)
        x = self.final(x).unflatten(1, (self.side, self.side)).unflatten(-1, (self.patch, self.patch, -1))
        return x.permute(0, 5, 1, 3, 2, 4).flatten(2, 3).flatten(3)


class ResidualBlock(nn.Module):
    """Two convolutions, the second of which sees the conditions."""

    def __init__(self, inputs: int, outputs: int, width: int):
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(4, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1))
        self.shift = nn.Linear(width, outputs)
        self.second = nn.Sequential(nn.GroupNorm(4, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, padding=1))
        self.direct: Optional[nn.Module] = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else None

    def forward(self, x: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        y = self.second(self.first(x) + self.shift(F.silu(condition))[:, :, None, None])
        return y + (x if self.direct is None else self.direct(x))


class SelfAttention(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.norm, self.to_qkv, self.to_out = nn.GroupNorm(4, channels), nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.to_qkv(self.norm(x).flatten(2).transpose(1, 2)).chunk(3, -1)
        return x + self.to_out(attention(q, k, v, heads=2)).transpose(1, 2).unflatten(2, x.shape[2:])


class UNet(nn.Module):
    """Two resolutions down and up, with attention at the lowest; what goes down is joined to what goes up."""

    def __init__(self, channels: int, width: int = 16, classes: int = 10):
        super().__init__()
        vector = 4 * width
        self.conditions = Conditions(vector, classes)
        self.input = nn.Conv2d(channels, width, 3, padding=1)
        self.down, self.shrink = ResidualBlock(width, width, vector), nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.lower, self.shrink_again = ResidualBlock(2 * width, 2 * width, vector), nn.Conv2d(2 * width, 2 * width, 3, 2, 1)
        self.middle, self.attention = ResidualBlock(2 * width, 2 * width, vector), SelfAttention(2 * width)
        self.rise, self.up = ResidualBlock(4 * width, 2 * width, vector), ResidualBlock(3 * width, width, vector)
        self.output = nn.Sequential(nn.GroupNorm(4, width), nn.SiLU(), nn.Conv2d(width, channels, 3, padding=1))

    def forward(self, x: torch.Tensor, time: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        condition = self.conditions(time, label)
        high = self.down(self.input(x), condition)
        low = self.lower(self.shrink(high), condition)
        x = self.attention(self.middle(self.shrink_again(low), condition))
        x = self.rise(torch.cat([F.interpolate(x, scale_factor=2.0), low], 1), condition)
        x = self.up(torch.cat([F.interpolate(x, scale_factor=2.0), high], 1), condition)
        return self.output(x)
