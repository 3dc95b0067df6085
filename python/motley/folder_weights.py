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
from .memory_limit import GIB
from .split.segment import Segment
from .virtual import Virtual
from .weights import Stored

_COMPARISON_GIB = 0.9
_SMALL_MODEL_BYTES = 512 << 20
"""Up to this size in float32, all weights are read to compare the layers with the model."""


class FolderWeights:
    """`sources`: [name in the state_dict] the stored values of a parameter; empty if the model has its own weights."""

    def __init__(self, described: Layers, names: Names, folder: Any, base: Optional[str]):
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
        self.sources = shards.of_model(names, described.model, shards.in_folder(path), path)

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
        """The limit of bytes for the comparison of one layer. `given`: in GiB."""
        largest = max((tensor.numel() * 4 for tensor in self._names.state.values()), default=0)
        return given * GIB if given is not None else _COMPARISON_GIB * GIB + largest

    @property
    def is_small(self) -> bool:
        """Whether all weights may be in memory at once."""
        return 4 * sum(tensor.numel() for tensor in self._names.state.values()) <= _SMALL_MODEL_BYTES

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
            values[id(own)] = torch.nn.Parameter(source.values().to(own.dtype), requires_grad=own.requires_grad)
        with empty_model.with_values([root for _, root in self._described.roots], values):
            described = self._described._replace(layers=[(name, call.with_values(values) if isinstance(call, Segment) else call)
                                                         for name, call in self._described.layers])
            yield described, Names(described)
