"""Generates samples that resemble the example's."""

from __future__ import annotations

from typing import List, Optional

import torch


def like(example: torch.Tensor, limit: int, generator: torch.Generator, count: int, whole_numbers: bool = False) -> torch.Tensor:
    """`count` samples: integers from 0 to below `limit`, or floats with the example's mean and standard deviation. With
    `whole_numbers`, positions where all values of the example are whole, such as ids packed with floats, are resampled from
    it."""
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
    """`made` for packed integers: positions where all values of the example are equal, or 0 and 1, such as masks, positions and
    segments, are resampled from the example."""
    return _where(((example == example[:1]) | (example >= 0) & (example <= 1)).all(0), example, made, generator)


def resampled(example: torch.Tensor, generator: torch.Generator, count: int) -> torch.Tensor:
    """`count` samples of the example, at random."""
    return example[torch.randint(example.size(0), (count,), generator=generator)]


def _where(places: torch.Tensor, example: torch.Tensor, made: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """`made` with the values at `places` from the example; each row is from one sample."""
    others = example[torch.randint(example.size(0), made.shape[:1], generator=generator)]
    return torch.where(places, others, made)


def padded(ids: torch.Tensor, pads: List[int]) -> torch.Tensor:
    """Rows of integers with padding, alternately at the end and at the beginning, if they are long enough."""
    made = ids.clone()
    length = ids.size(-1)
    for row, pad in zip(range(ids.size(0)), (pads * ids.size(0)) if ids.dim() > 1 and length > 3 else []):
        part = slice(length - length // 4, length) if row % 2 == 0 else slice(0, length // 4)
        made[row][..., part] = pad
    return made


def pads_of(model: Optional[torch.nn.Module], limit: int) -> List[int]:
    """The padding ids of a model, from its configuration and its embeddings; 0 if there is none."""
    found = [getattr(getattr(model, "config", None), "pad_token_id", None)]
    if model is not None:
        found += [getattr(module, "padding_idx", None) for module in model.modules()]
    return [pad for pad in dict.fromkeys(found) if isinstance(pad, int) and 0 <= pad < limit] or [0]
