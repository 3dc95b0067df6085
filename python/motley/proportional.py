"""Whether a backward pass is proportional to the gradient that it gets.

Motley adds up the gradients of micro-batches and divides by the count at the end. Inside of a backward pass gradients are then those of
a sum, which is another one where a hook or an autograd function bounds or normalizes them.
"""

from __future__ import annotations

from typing import List, Mapping, Optional

import torch

from .digest import PROJECTIONS, Digest, differs, gradients
from .errors import ExportError, in_words, lacks_memory

GRADIENT = 2.0 ** 10
"""How large the gradients of outputs are, so that a bound on gradients shows: the loss's own are smaller."""

_DOWN = 2.0 ** -20
"""To a part of that. What is linear is scaled by a power of two to the last bit."""

_LARGEST_DIFFERENCE, _LEAST, _UNDERFLOW = 1e-3, 1e-4, 1e-20
"""Of a gradient's norm, or of these where they are more: a part of the largest norm, and a norm."""


def random_gradients(of: List[torch.Tensor]) -> List[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(output.shape, generator=generator) * GRADIENT for output in of]


def check(outputs: List[torch.Tensor], grads: List[torch.Tensor], parameters: Mapping[str, torch.Tensor], found: Mapping[str, Digest],
          retain_graph: bool = False) -> Optional[str]:
    """Refuses a backward pass that gave `found` of `grads`, and gives something else of a part of them. Returns why that was not seen,
    for the user, where it does not run twice."""
    try:
        small = gradients(outputs, grads, parameters, retain_graph, _DOWN)
    except (RuntimeError, ExportError, AttributeError, LookupError, TypeError) as error:
        if lacks_memory(error):
            raise
        return f"whether gradients are proportional to the loss's was not seen, for the backward pass runs only once ({in_words(error)})"
    none = Digest(0.0, torch.zeros(PROJECTIONS, dtype=torch.float64))
    floor = max([_UNDERFLOW, *(_LEAST * seen.norm for seen in found.values())])
    differences = {}
    for name in {**found, **small}:
        seen = small.get(name, none)
        differences[name] = differs(Digest(seen.norm / _DOWN, seen.projections / _DOWN), found.get(name, none), floor)
    worst = max(differences, key=lambda name: differences[name], default="")
    if worst and not differences[worst] <= _LARGEST_DIFFERENCE:
        raise ExportError(f"the backward pass is not proportional to the gradient that it gets: that of {worst} does not grow as the output's does, as "
                          "where a hook or an autograd function bounds or normalizes gradients", "Take that out: Motley adds up the gradients of "
                          "micro-batches and divides by the count at the end, so that inside of a backward pass they are not those of the mean. "
                          "clip= (train.clip) bounds the norm of the whole gradient")
    return None
