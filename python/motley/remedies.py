"""Hints for operations and types that packages do not support."""

from __future__ import annotations

import linecache
import os
from typing import Optional

import torch


_LINES_ABOVE = 8


def for_operation(operation: str, line: Optional[str]) -> Optional[str]:
    """The hint for an operation at a source line, if a specific one is known."""
    file = os.path.basename((line or "").rpartition(":")[0])
    base = operation.split("::")[1].split(".")[0]
    if "moe" in file or "moe" in (line or "") and base in ("histc", "_local_scalar_dense", "nonzero", "index", "bincount", "_grouped_mm"):
        return ('Use an implementation of the experts that does not depend on values: '
                'model.set_experts_implementation("batched_mm"), or experts_implementation="batched_mm" in the model\'s '
                'configuration')
    if base == "_local_scalar_dense" and "layerdrop" in _around(line):
        return "Layers are skipped at random: set layerdrop=0.0 (encoder_layerdrop, decoder_layerdrop) in the model's configuration"
    if base == "_local_scalar_dense" and file == "masking_utils.py":
        return "Compute attention_mask in the layer from the ids, as the mask [batch, 1, query, key] that is added to the scores"
    return None


_WRITES = (("rescale_every", "Set rescale_every=0 in the model's configuration: its weights are then the same in training and in evaluation"),
           ("altup_coef_clip", "Set altup_coef_clip=None in the model's configuration: the coefficients are then not clipped in each call"))
"""[a part of the source that writes to weights] the hint for models of transformers."""


def for_write(line: Optional[str]) -> str:
    """The hint for a write to a tensor from outside the layer at a source line."""
    above = _around(line)
    return next((hint for part, hint in _WRITES if part in above),
                "A layer may write only to its inputs and results; use the operation without the underscore")


def _around(line: Optional[str]) -> str:
    """The source line and a few lines above it, which compute the condition of a branch."""
    file, _, number = (line or "").rpartition(":")
    last = int(number or 0)
    return "".join(linecache.getline(file, k) for k in range(max(1, last - _LINES_ABOVE), last + 1))


def for_given_result(module: Optional[str]) -> str:
    """The hint for an operation that writes its result to a given tensor."""
    if module is not None and ".parametrizations." in f".{module}":
        return ("Parametrizations may not change buffers in each call, as spectral normalization does: use "
                "torch.nn.utils.parametrizations.weight_norm, or torch.nn.utils.parametrize.remove_parametrizations")
    return "Use the operation's result, without out="


DRAWS = "torch.rand, randn, randint, normal, bernoulli, their in-place and _like forms, exponential_, dropout"
"""The supported random operations."""


def for_draw(base: str, own_generator: bool) -> str:
    """The hint for the random operation `base`, which is not among these."""
    if own_generator:
        return "Leave out generator=: the seed of the run determines all random numbers. Store numbers that are equal in all steps in a buffer"
    if base == "randperm":
        return ("Sort random numbers, e.g. torch.rand(samples, patches).argsort(1) for the patches of each sample; the order of "
                "samples, as for mixup, belongs in the data")
    if base == "multinomial":
        return "Use the Gumbel-max trick: (probabilities.log() - torch.empty_like(probabilities).exponential_().log()).argmax(-1)"
    return f"Use {DRAWS}; or generate the numbers as part of the data"


def for_dtype(dtype: torch.dtype) -> str:
    """The hint for values of a type that packages do not support."""
    if dtype.is_complex:
        return "Compute with real and imaginary parts"
    if dtype.is_floating_point:
        return "Convert the model with .float(), and remove casts such as .to() and autocast from it"
    return "Use int64: .long() instead of other conversions, and dtype=torch.int64 for new tensors"
