"""The number of samples of a layer whose comparison fits into a limit of memory."""

from __future__ import annotations

import math
import numbers
from typing import Any, Callable, List, Mapping, Sequence

from . import measure, operations, rounding
from .assemble import Assembled
from .errors import ExportError
from .graph import Graph, Node, uses
from .graph_json import NARROW, TYPES

GIB = 1 << 30

_BYTES = {**{name: 4 for name in TYPES.values()}, "int64": 8, "bool": 1, **{name: 2 for name in NARROW.values()}}
"""[type in a package] the most bytes of an element."""


def check(given: Any) -> None:
    """Refuses a limit in GiB that is not a positive number; None is the default."""
    if given is not None and (isinstance(given, bool) or not isinstance(given, numbers.Real) or not given > 0):
        raise ExportError(f"memory= is {given!r}", "Pass the limit in GiB, a number above 0, e.g. memory=1.5")


PROCESS_BYTES = 3 * GIB // 2
"""With weights in a folder, an export may need this memory and the largest stored tensor, with the libraries."""

LIBRARIES_BYTES = 9 * GIB // 10
"""Measured with PyTorch 2.15, transformers 5.24 and the traces of a model of 0.3B parameters with 2,048 tokens."""

_PIECES_BYTES = 40 << 20

_LARGE_BYTES = 64 << 20


class MemoryLimit:
    """`bytes`: the limit for the comparison of one layer. With `may_skip`, a layer may be too large for any number of samples."""

    def __init__(self, built: Assembled, bytes: float, may_skip: bool):
        self._description = built.package
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

    def is_large(self, layer: int, samples: int) -> bool:
        """Whether a comparison needs much memory."""
        return self.bytes(layer, samples) > _LARGE_BYTES

    def bytes(self, layer: int, samples: int) -> int:
        """The memory of a comparison or of a reference: weights; inputs, outputs and their gradients; a forward and backward, in which
        weights are perturbed or arguments rounded, and which has one gradient at a time."""
        parts = self._graphs[self._layers[layer]["graph"]].parts
        weights = self._weights(layer)
        largest = max(weights, default=0)
        perturbed = sum(size for size in weights if size < rounding.LARGE_BYTES)

        def extra(graph: Graph, node: Node, size: Callable[[int], int]) -> int:
            moved = largest if any(role.kind == "parameter" for role in graph.inputs.values()) else 0
            return max(moved, sum(map(size, set(uses(node)))) if node.op in operations.PRODUCTS else 0)

        return _with_pieces(sum(weights) + self._boundaries(layer, samples) + measure.training_bytes(parts, samples, extra) + perturbed)

    def allows(self, layer: int) -> bool:
        """Whether the comparison of one sample fits, or must not be skipped."""
        return self.samples(layer, (1,)) > 0

    def allows_forward(self, layer: int, samples: int) -> bool:
        """Whether the layer's forward alone fits."""
        return not self._may_skip or self._forward_bytes(layer, samples) <= self._bytes

    def allows_evaluation(self, layer: int, samples: int) -> bool:
        """Whether the comparison of the layer's results in evaluation fits."""
        return self._forward_bytes(layer, samples) <= self._bytes

    def _forward_bytes(self, layer: int, samples: int) -> int:
        graphs = self._graphs[self._layers[layer]["graph"]]
        run = max(measure.live_peak(graph, samples) for graph in (graphs.evaluate, graphs.score) if graph is not None)
        return _with_pieces(sum(self._weights(layer)) + self._boundaries(layer, samples) + run)

    def _boundaries(self, layer: int, samples: int) -> int:
        """Two samples of the inputs, those of the comparison with a copy, outputs, and gradients of outputs with a copy."""
        before = self._layers[layer - 1]["outputs"] if layer else self._description.get("inputs") or [self._description["input"]]
        inputs, outputs = (sum(_bytes_of(entry) for entry in entries) for entries in (before, self._layers[layer]["outputs"]))
        return (2 + 2 * samples) * inputs + 3 * samples * outputs

    def _weights(self, layer: int) -> List[int]:
        """The bytes of each weight."""
        return [_bytes_of(entry) for kind in ("parameters", "statistics", "constants") for entry in self._layers[layer][kind]]


def _with_pieces(bytes: int) -> int:
    """Adds the pieces of tensors that digests and conversions compute with, whatever the layer."""
    return bytes + min(bytes // 2, _PIECES_BYTES)


def _bytes_of(entry: Mapping[str, Any]) -> int:
    return _BYTES[entry.get("type", "float32")] * math.prod(entry["shape"])
