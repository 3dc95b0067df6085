"""Tiny models with what stands between the blocks of real ones, for the tests of `motley.split` by the trace."""

from __future__ import annotations

import math
from typing import Any, List, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.checkpoint

VOCABULARY, WIDTH, LENGTH = 40, 16, 9


class Attention(nn.Module):
    def __init__(self, positions: int = 0):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.bias = nn.Embedding(positions, 2) if positions else None

    def forward(self, x: torch.Tensor, other: torch.Tensor, mask: Optional[torch.Tensor] = None,
                rotary: Optional[Tuple[torch.Tensor, torch.Tensor]] = None, position: Optional[torch.Tensor] = None) -> Any:
        q, k, v = (t.view(x.size(0), -1, 2, WIDTH // 2).transpose(1, 2) for t in (self.q(x), self.k(other), self.v(other)))
        if rotary is not None:
            q, k = (t * rotary[0] + torch.cat([-t[..., WIDTH // 4:], t[..., :WIDTH // 4]], -1) * rotary[1] for t in (q, k))
        scores = q @ k.transpose(2, 3) / math.sqrt(WIDTH // 2)
        if position is None and self.bias is not None:
            apart = (torch.arange(x.size(1))[:, None] - torch.arange(other.size(1))).clamp(-3, 4) + 3
            position = self.bias(apart).permute(2, 0, 1).unsqueeze(0)
            position = position if mask is None else position + mask
        elif position is None:
            position = mask
        scores = scores if position is None else scores + position
        out = (scores.softmax(-1) @ v).transpose(1, 2).reshape(x.size(0), -1, WIDTH)
        return self.o(out), position


class Block(nn.Module):
    """Before the norm, as newer models are."""

    def __init__(self, dropout: float = 0.0, positions: int = 0):
        super().__init__()
        self.ln_1, self.attention, self.ln_2 = nn.LayerNorm(WIDTH), Attention(positions), nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor, *args: Any) -> torch.Tensor:
        y = self.ln_1(x)
        x = x + self.dropout(self.attention(y, y, *args)[0])
        return x + self.dropout(self.mlp(self.ln_2(x)))


class Language(nn.Module):
    """Glue between blocks, a mask of ids, rotary tables, dropout outside of blocks, a tied head."""

    def __init__(self, blocks: int = 3, dropout: float = 0.0, tied: bool = True):
        super().__init__()
        self.dropout = dropout
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block(dropout) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.register_buffer("frequencies", 1 / 100 ** (torch.arange(0, WIDTH // 2, 2).float() / (WIDTH // 2)), persistent=False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = F.dropout(self.embed(ids) * math.sqrt(WIDTH), self.dropout, self.training)
        seen = torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).tril() & (ids != 0)[:, None, None] | torch.eye(ids.size(1), dtype=torch.bool)
        mask = torch.zeros_like(seen, dtype=torch.float32).masked_fill(~seen, torch.finfo(torch.float32).min)
        angles = torch.arange(ids.size(1))[:, None] * self.frequencies
        rotary = torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()
        for block in self.blocks:
            x = F.dropout(block(x, mask, rotary) * 0.75, self.dropout, self.training) + 0.1
        return torch.tanh(self.head(self.norm(x)) / 5) * 5


class StackBlock(nn.Module):
    """As T5 has them: sublayers in a list, a bias of positions that the first block makes for all."""

    def __init__(self, crosses: bool, first: bool):
        super().__init__()
        self.own = Attention(8 if first else 0)
        self.cross = Attention() if crosses else None
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3 if crosses else 2))
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor, mask: torch.Tensor, position: Any, encoded: Any, encoded_mask: Any) -> Any:
        y = self.norms[0](x)
        out, position = self.own(y, y, mask, None, position)
        x = x + out
        if self.cross is not None:
            x = x + self.cross(self.norms[1](x), encoded, encoded_mask)[0]
        return x + self.mlp(self.norms[-1](x)), position


class Stack(nn.Module):
    def __init__(self, embed: nn.Embedding, crosses: bool, blocks: int = 2):
        super().__init__()
        self.embed, self.crosses = embed, crosses
        self.block = nn.ModuleList(StackBlock(crosses, k == 0) for k in range(blocks))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, ids: torch.Tensor, encoded: Any = None, encoded_ids: Any = None) -> torch.Tensor:
        x, position = self.embed(ids), None
        mask = (ids == 0)[:, None, None].float()
        if self.crosses:
            mask = torch.maximum(mask, torch.ones(ids.size(1), ids.size(1)).triu(1))
        other = None if encoded_ids is None else (encoded_ids == 0)[:, None, None].float() * -1e4
        for block in self.block:
            x, position = block(x, mask * -1e4, position, encoded, other)
        return self.norm(x)


class EncoderDecoder(nn.Module):
    """Two texts in one tensor; the embedding is used three times."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Embedding(VOCABULARY, WIDTH)
        self.encoder, self.decoder = Stack(self.shared, False), Stack(self.shared, True)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.shared.weight

    def forward(self, both: torch.Tensor) -> torch.Tensor:
        first, second = both[:, :LENGTH], both[:, LENGTH:]
        return self.head(self.decoder(second, self.encoder(first), first) * 0.25)


class Residual(nn.Module):
    def __init__(self, inner: int, outer: int):
        super().__init__()
        self.norm, self.first = nn.GroupNorm(2, inner), nn.Conv2d(inner, outer, 3, padding=1)
        self.time, self.second = nn.Linear(8, outer), nn.Conv2d(outer, outer, 3, padding=1)
        self.shortcut = nn.Conv2d(inner, outer, 1) if inner != outer else None

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        y = self.second(F.silu(self.first(F.silu(self.norm(x))) + self.time(time)[:, :, None, None]))
        return y + (x if self.shortcut is None else self.shortcut(x))


class Resized(nn.Module):
    """A stage of a U-Net: residual blocks in a list, and a convolution that changes the size."""

    def __init__(self, sizes: List[Tuple[int, int]], stride: int):
        super().__init__()
        self.resnets = nn.ModuleList(Residual(*size) for size in sizes)
        self.resize = nn.Conv2d(sizes[-1][1], sizes[-1][1], 3, abs(stride), 1)
        self.up = stride < 0

    def forward(self, x: torch.Tensor, time: torch.Tensor, skips: List[torch.Tensor]) -> torch.Tensor:
        for block in self.resnets:
            x = block(torch.cat([x, skips.pop()], 1) if self.up else x, time)
            if not self.up:
                skips.append(x)
        return self.resize(F.interpolate(x, scale_factor=2.0) if self.up else x)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.time, self.stem = nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.Linear(8, 8)), nn.Conv2d(3, 4, 3, padding=1)
        self.down = nn.ModuleList([Resized([(4, 4), (4, 4)], 2), Resized([(4, 8), (8, 8)], 2)])
        self.middle = Residual(8, 8)
        self.up = nn.ModuleList([Resized([(16, 8), (16, 8)], -1), Resized([(12, 4), (8, 4)], -1)])
        self.head = nn.Conv2d(4, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        angles = x[:, 0, 0, :1] * torch.exp(-0.5 * torch.arange(2))
        time = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        x, skips = self.stem(x), []
        for stage in self.down:
            x = stage(x, time, skips)
        x = F.interpolate(self.middle(x, time), scale_factor=2.0)
        for k, stage in enumerate(self.up):
            x = stage(x, time, skips)
            x = x if k == 0 else x[:, :, ::2, ::2]
        return self.head(x)


class Inverted(nn.Module):
    """With stochastic depth, and batch normalization in lists that are no place to cut."""

    def __init__(self, inner: int, outer: int, stride: int):
        super().__init__()
        def convolution(a: int, b: int, size: int, stride: int, groups: int) -> nn.Module:
            return nn.Sequential(nn.Conv2d(a, b, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True))
        self.block = nn.Sequential(convolution(inner, 3 * inner, 1, 1, 1), convolution(3 * inner, 3 * inner, 3, stride, 3 * inner),
                                   convolution(3 * inner, outer, 1, 1, 1))
        self.adds = inner == outer and stride == 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.block(x)
        if self.adds and self.training:
            y = y * x.new_empty(x.size(0), 1, 1, 1).bernoulli_(0.75).div_(0.75)
        return x + y if self.adds else y


class Images(nn.Module):
    """Stages in lists of lists, with unlike blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.Sequential(Inverted(4, 4, 1), Inverted(4, 6, 2)),
                                      nn.Sequential(Inverted(6, 6, 1), Inverted(6, 6, 1)))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(6, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


class Plain(nn.Module):
    """Without blocks: convolutions and products as attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2, self.norm = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4)
        self.fc1, self.fc2, self.dropout = nn.Linear(16, 8), nn.Linear(8, 5), nn.Dropout(0.3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.relu(self.norm(self.conv2(F.pad(x, (0, 1, 0, 1)))))
        return self.fc2(self.dropout(F.relu(self.fc1(x.flatten(1)))))


class Doubled(torch.autograd.Function):
    """Its backward is not that of its operations."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 1.0

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * 0.5


class Features(nn.Module):
    """Blocks on features [batch, length, 8], with what `how` says between them."""

    def __init__(self, how: str = "", blocks: int = 2):
        super().__init__()
        self.how = how
        self.stem, self.head = nn.Linear(8, WIDTH), nn.Linear(WIDTH, 4)
        self.blocks = nn.ModuleList(Block() for _ in range(1 if how == "same block" else blocks))
        self.small = nn.Parameter(torch.rand(1, 1, WIDTH) + 0.5) if how == "small parameter" else None
        self.register_buffer("scale", torch.rand(WIDTH) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        with torch.no_grad():
            level = x.abs().mean(-1, keepdim=True).sqrt()
        if self.how == "length first":
            x = x.transpose(0, 1)
        for block in list(self.blocks) * (3 if self.how == "same block" else 1):
            before = x
            if self.how == "checkpoint":
                x = torch.utils.checkpoint.checkpoint(block, x, **({"use_reentrant": True} if int(torch.__version__[0]) > 1 else {}))
            else:
                x = block(x.transpose(0, 1)).transpose(0, 1) if self.how == "length first" else block(x)
            if self.how == "no_grad":
                x = x * self.scale + level * 0.1 + before.detach() * 0.05
            elif self.how == "small parameter":
                x = x * self.small
            elif self.how == "own function":
                x = Doubled.apply(x)
            elif self.how == "hook" and x.requires_grad:
                x.register_hook(lambda grad: grad * 0.5)
            elif self.how == "folded":
                x = (x.reshape(-1, WIDTH) + 1).view(before.shape)
            elif self.how == "in place":
                x[:, 0] = x[:, 0] * 2
                x += before
        x = x.transpose(0, 1) if self.how == "length first" else x
        return self.head(x.mean(1))
