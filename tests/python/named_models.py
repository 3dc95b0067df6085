"""Models that are called with several inputs by name."""

from __future__ import annotations

from typing import Dict, Optional, Tuple

import torch
import torch.nn as nn

Batch = Tuple[Dict[str, torch.Tensor], torch.Tensor]

VOCABULARY, LENGTH, CLASSES = 40, 6, 4


class Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float):
        super().__init__()
        self.heads = heads
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width), nn.Dropout(dropout))

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        samples, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(samples, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5 + bias).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(samples, length, width))
        return x + self.mlp(x)


class Encoder(nn.Module):
    """Ids, a mask and segments; `weight` is used by the head alone."""

    def __init__(self, width: int = 8, blocks: int = 2, dropout: float = 0.0):
        super().__init__()
        self.ids, self.segments = nn.Embedding(VOCABULARY, width), nn.Embedding(2, width)
        self.positions = nn.Parameter(torch.randn(LENGTH, width) * 0.1)
        self.blocks = nn.ModuleList(Block(width, 2, dropout) for _ in range(blocks))
        self.head = nn.Linear(width, CLASSES)

    def forward(self, input_ids: torch.Tensor, attention_mask: Optional[torch.Tensor] = None, token_type_ids: Optional[torch.Tensor] = None,
                weight: Optional[torch.Tensor] = None) -> Dict[str, torch.Tensor]:
        assert attention_mask is not None
        x = self.ids(input_ids) + self.positions
        if token_type_ids is not None:
            x = x + self.segments(token_type_ids)
        bias = torch.zeros(attention_mask.shape).masked_fill(attention_mask == 0, -1e4)[:, None, None]
        for block in self.blocks:
            x = block(x, bias)
        seen = attention_mask[:, :, None].float()
        pooled = (x * seen).sum(1) / seen.sum(1).clamp(min=1)
        return {"logits": self.head(pooled if weight is None else pooled * weight[:, None]), "pooled": pooled}


class Captions(nn.Module):
    """An image and ids: a score for each token."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.image = nn.Sequential(nn.Conv2d(3, width, 3, stride=2), nn.ReLU(), nn.Flatten(2))
        self.ids = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(Block(width, 2, 0.0) for _ in range(2))
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, pixel_values: torch.Tensor, input_ids: torch.Tensor) -> torch.Tensor:
        patches = self.image(pixel_values).transpose(1, 2)
        x = torch.cat([patches, self.ids(input_ids)], 1)
        for block in self.blocks:
            x = block(x, torch.zeros(()))
        return self.head(x[:, patches.size(1):])


def texts(samples: int, truth_values: bool = False) -> Batch:
    """For `Encoder`: some rows end in padding."""
    lengths = torch.arange(samples) % 3 + LENGTH - 2
    mask = (torch.arange(LENGTH) < lengths[:, None]).long()
    segments = (torch.arange(LENGTH) >= 3).long().expand(samples, -1).contiguous()
    inputs = {"input_ids": torch.randint(1, VOCABULARY, (samples, LENGTH)) * mask, "attention_mask": mask.bool() if truth_values else mask,
              "token_type_ids": segments * mask}
    return inputs, torch.randint(CLASSES, (samples,))


def pictures(samples: int) -> Batch:
    """For `Captions`."""
    inputs = {"pixel_values": torch.randn(samples, 3, 5, 5), "input_ids": torch.randint(VOCABULARY, (samples, LENGTH))}
    return inputs, torch.randint(VOCABULARY, (samples, LENGTH))
