"""Generates samples that resemble the example's."""

from __future__ import annotations

from typing import List, Optional

import torch


def like(example: torch.Tensor, limit: int, generator: torch.Generator, count: int, whole_numbers: bool = False) -> torch.Tensor:
    """`count` samples: integers from 0 to below `limit`, or floats of the example's mean and spread. With `whole_numbers`, places
    where all of the example's are whole, such as ids that lie among floats, get those of other samples."""
    shape = (count,) + tuple(example.shape[1:])
    if example.dtype == torch.int64:
        return torch.randint(limit, shape, generator=generator)
    spread = float(example.std()) if example.numel() > 1 else 1.0
    made = torch.randn(shape, generator=generator) * (spread or 1.0) + float(example.mean())
    return _where((example == example.round()).all(0), example, made, generator) if whole_numbers else made


def keeps_values(example: torch.Tensor, limit: Optional[int]) -> bool:
    """Whether other values than those of the example may mean nothing: truth values, integers that index nothing, and masks of 0 and 1."""
    if not example.is_floating_point():
        return limit is None
    return bool(((example == 0) | (example == 1)).all()) and bool((example == 1).any())


def packed(example: torch.Tensor, made: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Integers of several kinds in one tensor: places where all of the example's are equal, or 0 and 1, such as masks, positions and
    segments, get those of other samples in place of `made`."""
    return _where(((example == example[:1]) | (example >= 0) & (example <= 1)).all(0), example, made, generator)


def of_these(example: torch.Tensor, generator: torch.Generator, count: int) -> torch.Tensor:
    """`count` of the example's own samples."""
    return example[torch.randint(example.size(0), (count,), generator=generator)]


def _where(places: torch.Tensor, example: torch.Tensor, made: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Samples that take some positions from the example's samples, each from one sample."""
    others = example[torch.randint(example.size(0), made.shape[:1], generator=generator)]
    return torch.where(places, others, made)


def padded(ids: torch.Tensor, pads: List[int]) -> torch.Tensor:
    """Rows of integers that alternately end and begin with padding, if they are long enough."""
    made = ids.clone()
    length = ids.size(-1)
    for row, pad in zip(range(ids.size(0)), (pads * ids.size(0)) if ids.dim() > 1 and length > 3 else []):
        part = slice(length - length // 4, length) if row % 2 == 0 else slice(0, length // 4)
        made[row][..., part] = pad
    return made


def pads_of(model: Optional[torch.nn.Module], limit: int) -> List[int]:
    """The padding id of a model from its configuration or its embeddings; else 0."""
    found = [getattr(getattr(model, "config", None), "pad_token_id", None)]
    if model is not None:
        found += [getattr(module, "padding_idx", None) for module in model.modules()]
    return [pad for pad in dict.fromkeys(found) if isinstance(pad, int) and 0 <= pad < limit] or [0]
