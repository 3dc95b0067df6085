"""Values that depend only on constants and sizes, in a trace without values.

Large ones, such as a mask of all pairs of positions, are discarded: a recording references all results until its end, and each
layer computes such a mask. If their values are needed, they are computed again.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

import torch

from .graph import Node, needed
from .interpret import run_node
from .virtual import Virtual, without_values

_LARGE_ELEMENTS = 1 << 20


def discard_large(out: Any) -> Any:
    """The result of an operation, without its values if it is large. REQUIRES: it is not a view."""
    if isinstance(out, torch.Tensor) and not isinstance(out, Virtual) and out.numel() > _LARGE_ELEMENTS:
        return without_values(out)
    return out


def evaluate(value: int, nodes: List[Node], constants: Mapping[int, torch.Tensor]) -> torch.Tensor:
    """The tensor of a value that `nodes` compute from `constants` alone."""
    values: Dict[int, Optional[torch.Tensor]] = dict(constants)
    for node in needed(nodes, [value]):
        values.update(zip(node.results, run_node(node, values, samples=1)))
    found = values[value]
    assert found is not None
    return found
