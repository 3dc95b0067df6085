"""The layout of a value as a boundary tensor, whose first dimension is that of the samples."""

from __future__ import annotations

import difflib
import math
from typing import Any, List, NamedTuple, Optional, Tuple

import torch

from ..graph import Batch
from ..graph_json import TYPES, WIDENED
from .program import Program


_FILLER = -1
"""The number of a value that another mode has at this boundary."""

_MAX_FILLED = 0.25
"""The largest share of fillers in the elements of a boundary."""


class BoundaryValue(NamedTuple):
    """A value at a boundary between layers. `dim`: its dimension of samples, with `factor` elements per sample. If it is None,
    the value is transferred once per sample, and the receiver uses the first copy."""

    value: int
    dim: Optional[int]
    factor: int
    dtype: torch.dtype
    gradient: bool
    sizes: Tuple[int, ...]
    """The transferred sizes of one sample."""

    @property
    def is_filler(self) -> bool:
        """Whether zeros are transferred, which the receiver does not use."""
        return self.value == _FILLER

    def zeros(self, samples: int) -> torch.Tensor:
        return torch.zeros(samples, *self.sizes, dtype=WIDENED.get(self.dtype, self.dtype))

    def pack(self, tensor: torch.Tensor, samples: int) -> torch.Tensor:
        if not self.gradient and tensor.requires_grad:
            tensor = tensor.detach()
        if tensor.dtype in WIDENED:
            tensor = tensor.to(WIDENED[tensor.dtype])
        if self.dim is None:
            return tensor.unsqueeze(0).expand(samples, *tensor.shape)
        if self.factor != 1:
            shape = list(tensor.shape)
            tensor = tensor.reshape(shape[:self.dim] + [samples, self.factor] + shape[self.dim + 1:])
        return tensor if self.dim == 0 else tensor.movedim(self.dim, 0)

    def unpack(self, tensor: torch.Tensor) -> torch.Tensor:
        if self.dim is None:
            tensor = tensor[0]
        else:
            tensor = tensor if self.dim == 0 else tensor.movedim(0, self.dim)
            tensor = tensor if self.factor == 1 else tensor.flatten(self.dim, self.dim + 1)
        return tensor if tensor.dtype == self.dtype else tensor.to(self.dtype)

    @property
    def kind(self) -> Any:
        """A key that is equal for values with equal layouts."""
        return self.dim, self.factor, self.dtype, self.gradient, self.sizes


def aligned(train: List[BoundaryValue], evaluate: List[BoundaryValue]) -> Optional[Tuple[List[BoundaryValue], List[BoundaryValue]]]:
    """Both modes' values at a boundary in equal layouts, with fillers for those of the other mode alone, such as random numbers of
    training; None if that needs many elements, or a filler in place of a gradient in training."""
    found: Tuple[List[BoundaryValue], List[BoundaryValue]] = [], []
    filled = 0
    matcher = difflib.SequenceMatcher(None, [each.kind for each in train], [each.kind for each in evaluate], autojunk=False)
    for what, *places in matcher.get_opcodes():
        own = train[places[0]:places[1]], evaluate[places[2]:places[3]]
        if what == "equal":
            found[0].extend(own[0])
            found[1].extend(own[1])
            continue
        for mode, values in enumerate(own):
            if mode == 1 and any(each.gradient for each in values):
                return None
            fillers = [each._replace(value=_FILLER) for each in values]
            filled += sum(math.prod(each.sizes) for each in values)
            found[mode].extend(values)
            found[1 - mode].extend(fillers)
    return found if filled <= _MAX_FILLED * sum(math.prod(each.sizes) for each in found[0]) else None


def boundary_value(program: Program, value: int) -> Optional[BoundaryValue]:
    """The layout of a value at a boundary; None if it cannot be transferred."""
    shape = program.shapes.get(value)
    if shape is None or WIDENED.get(shape.dtype, shape.dtype) not in TYPES:
        return None
    gradient = program.gradient.get(value, False)
    dims = [k for k, size in enumerate(shape.sizes) if not isinstance(size, int)]
    rest = tuple(size for size in shape.sizes if isinstance(size, int))
    if 0 in rest:
        return None
    if not dims:
        return BoundaryValue(value, None, 1, shape.dtype, gradient, rest)
    size = shape.sizes[dims[0]]
    if len(dims) > 1 or not isinstance(size, Batch) or size.a != 0 or size.b < 1:
        return None
    dim = dims[0]
    inner = rest if size.b == 1 else (size.b, *rest) if dim == 0 else (*rest[:dim], size.b, *rest[dim:])
    return BoundaryValue(value, dim, size.b, shape.dtype, gradient, inner)
