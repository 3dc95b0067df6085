"""Remedies for operations and types that packages do not support."""

from __future__ import annotations

import linecache
import os
from typing import Optional

import torch


_LINES_ABOVE = 8


def of(operation: str, line: Optional[str]) -> Optional[str]:
    """The remedy for an operation at a source line, if a specific one is known."""
    file = os.path.basename((line or "").rpartition(":")[0])
    base = operation.split("::")[1].split(".")[0]
    if "moe" in file or "moe" in (line or "") and base in ("histc", "_local_scalar_dense", "nonzero", "index", "bincount", "_grouped_mm"):
        return ('Experts of transformers whose work does not depend on the values: model.set_experts_implementation("batched_mm"), or '
                'experts_implementation="batched_mm" when the model is made')
    if base == "_local_scalar_dense" and "layerdrop" in _around(line):
        return "Whole layers are left out at random: set layerdrop=0.0 (encoder_layerdrop, decoder_layerdrop) in the model's configuration"
    if base == "_local_scalar_dense" and file == "masking_utils.py":
        return "Give attention_mask as the mask of [batch, 1, query, key] that is added to the scores, made of the ids in the layer"
    return None


def _around(line: Optional[str]) -> str:
    """The source line and a few lines above it, which compute the condition of a branch."""
    file, _, number = (line or "").rpartition(":")
    last = int(number or 0)
    return "".join(linecache.getline(file, k) for k in range(max(1, last - _LINES_ABOVE), last + 1))


DRAWS = "torch.rand, randn, randint, normal, bernoulli, their forms in place and for the shape of a tensor, exponential_, dropout"
"""The supported draws, whose numbers are functions of their position."""


def of_draw(base: str, own_generator: bool) -> str:
    """The remedy for the random operation `base`, which is not among these."""
    if own_generator:
        return ("Leave out generator=: the seed of the run decides all random numbers. Numbers that are the same in each step belong into a "
                "buffer")
    if base == "randperm":
        return ("Sort random numbers, as torch.rand(samples, patches).argsort(1) does for the patches of each sample; the order of samples, as "
                "mixup exchanges them, belongs into the data")
    if base == "multinomial":
        return "Take the largest: (probabilities.log() - torch.empty_like(probabilities).exponential_().log()).argmax(-1)"
    return f"Draw by {DRAWS}; or draw them into the data"


def of_type(dtype: torch.dtype) -> str:
    """The remedy for values of a type that packages do not support."""
    if dtype.is_complex:
        return "Compute with real and imaginary parts"
    if dtype.is_floating_point:
        return "Convert the model with .float(), and remove casts such as .to() and autocast from it"
    return "Count in int64: .long() in place of such as .to(), and dtype=torch.int64 where a tensor is made"
