"""How many samples of a layer can be compared by values in so much memory."""

from __future__ import annotations

from typing import Sequence

from . import measure
from .assemble import Assembled
from .graph_json import NARROW, TYPES

GIB = 1 << 30

_BYTES = {**{name: 4 for name in TYPES.values()}, "int64": 8, "bool": 1, **{name: 2 for name in NARROW.values()}}


class MemoryLimit:
    """`bytes`: what the comparison of one layer may take. With `may_skip`, no number of samples may be small enough."""

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
        """What the comparison takes: the weights, two further tensors of their size (gradients of both sides, or moved weights), the
        results of a forward and backward, and the largest weight once more while it is rounded to bf16 and back."""
        weights = self._weights(layer)
        largest = max(weights, default=0)
        results = measure.footprint(self._graphs[self._layers[layer]["graph"]].parts, samples)
        return max(3 * sum(weights) + results + largest * 3 // 2, 2 * sum(weights) + 3 * largest)

    def runs(self, layer: int, samples: int) -> bool:
        """Whether its forward alone fits."""
        graph = self._graphs[self._layers[layer]["graph"]].evaluate
        return not self._may_skip or sum(self._weights(layer)) + measure.workspace(graph, samples) <= self._bytes

    def _weights(self, layer: int) -> "list[int]":
        found = []
        for kind in ("parameters", "statistics", "constants"):
            for entry in self._layers[layer][kind]:
                size = _BYTES[entry.get("type", "float32")]
                for length in entry["shape"]:
                    size *= length
                found.append(size)
        return found
