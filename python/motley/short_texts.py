"""Shorter texts, with which layers are compared that need too much memory with the example's."""

from __future__ import annotations

from typing import Tuple

import torch

from .named import Input, each, tensors

TOKENS = 128

Example = Tuple[Input, torch.Tensor]


def is_long(example: Example) -> bool:
    """Whether the samples are texts that may be cropped to TOKENS."""
    return all(x.dim() == 2 and x.size(1) > TOKENS and not x.is_floating_point() for x in (*tensors(example[0]), example[1]))


def cropped(example: Example) -> Example:
    return each(_cropped, example[0]), _cropped(example[1])


def _cropped(tensor: torch.Tensor) -> torch.Tensor:
    return tensor[:, :TOKENS].contiguous()
