"""`masked_scatter` and its gradient by operations whose shapes do not depend on values: multimodal models write the features of an
image into the places of its tokens with it."""

from __future__ import annotations

from typing import List, Tuple

import torch

aten = torch.ops.aten


def forward(self: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """The elements of `self`, where `mask` is true replaced by those of `source` in order. Those that `source` lacks, for which PyTorch
    raises, are NaN."""
    shape = list(torch.broadcast_shapes(self.shape, mask.shape))
    mask = mask if list(mask.shape) == shape else aten.expand(mask, shape)
    rows, places = _places(mask, source.numel())
    values = aten.reshape(source, [-1, rows])
    count = values.size(0)
    if count == 0:
        return aten.masked_fill.Scalar(self, mask, float("nan"))
    taken = aten.index.Tensor(values, [aten.clamp_max(places, count - 1)])
    taken = aten.masked_fill.Scalar(taken, aten.unsqueeze(aten.ge.Scalar(places, count), 1), float("nan"))
    return aten.where.self(mask, aten.reshape(taken, shape), self)


def backward(grad: torch.Tensor, mask: torch.Tensor, sizes: List[int]) -> torch.Tensor:
    """The gradient of `source`, which has `sizes`."""
    mask = mask if mask.shape == grad.shape else aten.expand(mask, list(grad.shape))
    count = torch.Size(sizes).numel()
    rows, places = _places(mask, count)
    zeros = aten.zeros([count // rows, rows], dtype=grad.dtype)
    given = aten.reshape(aten.masked_fill.Scalar(grad, aten.logical_not(mask), 0), [-1, rows])
    return aten.reshape(aten.index_put(zeros, [aten.clamp_max(places, count // rows - 1)], given, True), list(sizes))


def _places(mask: torch.Tensor, elements: int) -> Tuple[int, torch.Tensor]:
    """The length of the rows along which `mask` is the same, and for each row the number of selected ones before it."""
    rows = mask.size(-1) if mask.dim() > 1 and mask.stride(-1) == 0 and elements % mask.size(-1) == 0 else 1
    chosen = aten.reshape(aten.select(mask, -1, 0) if rows > 1 else mask, [-1])
    return rows, aten.clamp_min(aten.sub.Scalar(aten.cumsum(chosen, 0), 1), 0)
