"""The number of samples of a layer whose comparison fits into a limit of memory."""

from __future__ import annotations

import numbers
from typing import Any, List, Sequence

from . import measure
from .assemble import Assembled
from .errors import ExportError
from .graph_json import NARROW, TYPES

GIB = 1 << 30

_BYTES = {**{name: 4 for name in TYPES.values()}, "int64": 8, "bool": 1, **{name: 2 for name in NARROW.values()}}
"""[type in a package] the most bytes of an element."""


def check(given: Any) -> None:
    """Refuses a limit in GiB that is not a positive number; None is the default."""
    if given is not None and (isinstance(given, bool) or not isinstance(given, numbers.Real) or not given > 0):
        raise ExportError(f"memory= is {given!r}", "Pass the limit in GiB, a number above 0, e.g. memory=1.5")


class MemoryLimit:
    """`bytes`: the limit for the comparison of one layer. With `may_skip`, a layer may be too large for any number of samples."""

    def __init__(self, built: Assembled, bytes: float, may_skip: bool):
        self._layers = built.package["layers"]
        self._graphs = built.graphs
        self._bytes = bytes
        self._may_skip = may_skip

    def samples(self, layer: int, options: Sequence[int]) -> int:
        """The first of `options`, in descending order, that fits; else the last one, or 0 if the layer may be skipped."""
        for count in options:
            if self.bytes(layer, count) <= self._bytes:
                return count
        return 0 if self._may_skip else options[-1]

    def bytes(self, layer: int, samples: int) -> int:
        """The memory of a comparison: the weights, two further tensors of their size (gradients of both sides, or moved weights),
        the results of a forward and backward, and the largest weight once more while it is rounded to bf16 and back."""
        weights = self._weights(layer)
        largest = max(weights, default=0)
        results = measure.footprint(self._graphs[self._layers[layer]["graph"]].parts, samples)
        return max(3 * sum(weights) + results + largest * 3 // 2, 2 * sum(weights) + 3 * largest)

    def allows_forward(self, layer: int, samples: int) -> bool:
        """Whether the layer's forward alone fits."""
        graph = self._graphs[self._layers[layer]["graph"]].evaluate
        return not self._may_skip or sum(self._weights(layer)) + measure.workspace(graph, samples) <= self._bytes

    def _weights(self, layer: int) -> List[int]:
        """The bytes of each weight."""
        found = []
        for kind in ("parameters", "statistics", "constants"):
            for entry in self._layers[layer][kind]:
                size = _BYTES[entry.get("type", "float32")]
                for length in entry["shape"]:
                    size *= length
                found.append(size)
        return found
