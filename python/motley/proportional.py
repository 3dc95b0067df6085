"""Checks that a backward pass is proportional to its incoming gradient.

Motley adds up the gradients of micro-batches and divides by the count at the end. Gradients inside a backward pass are therefore
those of a sum. If a hook or an autograd function clips or normalizes them, the result differs from that of a mean.
"""

from __future__ import annotations

from typing import List, Mapping, Optional

import torch

from .digest import PROJECTIONS, Digest, differs, gradients
from .errors import ExportError, summary, lacks_memory

GRADIENT = 2.0 ** 10
"""The size of the outputs' gradients. It is larger than that of a loss's gradients, so that clipping takes effect."""

_SCALE = 2.0 ** -20
"""The factor of the second backward pass. Linear functions are exactly proportional for a power of two."""

_LARGEST_DIFFERENCE, _LEAST, _UNDERFLOW = 1e-3, 1e-4, 1e-20
"""The tolerance, relative to a gradient's norm, or to a share of the largest norm or an absolute norm if these are larger."""


def random_gradients(of: List[torch.Tensor]) -> List[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(output.shape, generator=generator) * GRADIENT for output in of]


def check(outputs: List[torch.Tensor], grads: List[torch.Tensor], parameters: Mapping[str, torch.Tensor], found: Mapping[str, Digest],
          retain_graph: bool = False) -> Optional[str]:
    """Refuses a backward pass whose gradients are `found` for `grads` but are not proportional for scaled `grads`. Returns a
    notice if the backward pass cannot run twice."""
    try:
        small = gradients(outputs, grads, parameters, retain_graph, _SCALE)
    except (RuntimeError, ExportError, AttributeError, LookupError, TypeError) as error:
        if lacks_memory(error):
            raise
        return f"gradients were not checked for proportionality: the backward pass runs only once ({summary(error)})"
    none = Digest(0.0, torch.zeros(PROJECTIONS, dtype=torch.float64))
    floor = max([_UNDERFLOW, *(_LEAST * seen.norm for seen in found.values())])
    differences = {}
    for name in {**found, **small}:
        seen = small.get(name, none)
        differences[name] = differs(Digest(seen.norm / _SCALE, seen.projections / _SCALE), found.get(name, none), floor)
    worst = max(differences, key=lambda name: differences[name], default="")
    if worst and not differences[worst] <= _LARGEST_DIFFERENCE:
        raise ExportError(f"the backward pass is not proportional to its incoming gradient: the gradient of {worst} does not "
                          "scale with the output's, as if a hook or an autograd function clips or normalizes it",
                          "Remove it: Motley adds up the gradients of micro-batches and divides by the count at the end, so "
                          "gradients inside a backward pass are not those of the mean. clip= (train.clip) clips the norm of the "
                          "whole gradient")
    return None
