"""The weights of a model that is exported from a folder: their places in files, and whether all of them may be in memory."""

from __future__ import annotations

import contextlib
import copy
import os
from typing import Any, Dict, Iterator, Optional, Tuple

import torch

from . import empty_model, shards
from .errors import ExportError
from .layers import Layers, Names
from .memory_limit import GIB, LIBRARIES_BYTES, PROCESS_BYTES
from .split.segment import Segment
from .virtual import Virtual
from .weights import Stored

_COMPARISON_BYTES = 9 * GIB // 10
"""Beside the largest tensor, for models that are in memory."""

_SMALL_MODEL_BYTES = 512 << 20
"""Up to this size in float32, all weights are read to compare the layers with the model."""


_SAMPLES, _OUTPUTS = 3, 5
"""Of the comparison with the model: samples, and tensors of the size of its output, which may have a value for each row of a matrix."""


class FolderWeights:
    """`sources`: [name in the state_dict] the stored values of a parameter; empty if the model has its own weights."""

    def __init__(self, described: Layers, names: Names, folder: Any, base: Optional[str], has_fewer_rows: bool = False):
        """`has_fewer_rows`: the model has only the first rows of some of the folder's tensors."""
        self.sources: Dict[str, Stored] = {}
        self._described = described
        self._names = names
        virtual = [name for name, tensor in names.state.items() if isinstance(tensor, Virtual)]
        if folder is None:
            if virtual:
                raise ExportError(f"{virtual[0]} has no values",
                                  "Pass folder=, the folder of the weights of a model that was created in motley.without_weights()")
            return
        if len(virtual) < sum(isinstance(tensor, torch.nn.Parameter) for tensor in names.state.values()):
            raise ExportError("both the model and folder= have weights",
                              "Leave folder= out, or create the model in motley.without_weights()")
        if base is not None:
            raise ExportError("base= quantises weights in memory, and those of folder= are read from files",
                              "Leave base= or folder= out")
        self._check_types(names)
        empty_model.check_buffers([root for _, root in described.roots])
        path = os.fspath(folder)
        self.sources = shards.of_model(names, described.model, shards.in_folder(path), path, has_fewer_rows)

    def with_layers(self, described: Layers) -> "FolderWeights":
        """The same weights for other layers of the same model."""
        other = copy.copy(self)
        other._described = described
        return other

    @staticmethod
    def _check_types(names: Names) -> None:
        for name, tensor in names.state.items():
            if isinstance(tensor, Virtual) and tensor.dtype != torch.float32:
                raise ExportError(f"the parameter {name} is {str(tensor.dtype)[6:]}",
                                  "Create the model in float32: the folder's weights are converted when they are read")

    def memory(self, given: Optional[float]) -> float:
        """The limit of bytes for a comparison. `given`: in GiB."""
        if given is not None:
            return given * GIB
        if self.sources:
            return PROCESS_BYTES - LIBRARIES_BYTES + max(source.bytes for source in self.sources.values())
        return _COMPARISON_BYTES + max((tensor.numel() * 4 for tensor in self._names.state.values()), default=0)

    def allows_whole(self, positions: int) -> bool:
        """Whether all weights may be in memory at once, to compare the layers with the model. `positions`: of a sample's target."""
        tensors = list(self._names.state.values())
        total, largest = (4 * combine([tensor.numel() for tensor in tensors] or [0]) for combine in (sum, max))
        outputs = 4 * _SAMPLES * positions * max((tensor.size(0) for tensor in tensors if tensor.dim() == 2), default=0)
        return total <= _SMALL_MODEL_BYTES and total + 2 * largest + _OUTPUTS * outputs <= self.memory(None)

    @contextlib.contextmanager
    def whole(self) -> Iterator[Tuple[Layers, Names]]:
        """The layers with all weights."""
        if not self.sources:
            yield self._described, self._names
            return
        state = self._names.state
        values = {}
        for name, source in self.sources.items():
            own = state[name]
            values[id(own)] = torch.nn.Parameter(source.values(own.dtype), requires_grad=own.requires_grad)
        with empty_model.with_values([root for _, root in self._described.roots], values):
            described = self._described._replace(layers=[(name, call.with_values(values) if isinstance(call, Segment) else call)
                                                         for name, call in self._described.layers])
            yield described, Names(described)
