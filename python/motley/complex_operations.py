"""The table of operations on complex tensors, by operations on pairs of real numbers."""

from __future__ import annotations

from typing import Any, Callable, Optional

from .complex_arithmetic import ARITHMETIC
from .complex_shapes import SHAPES
from .fourier import TRANSFORMS

_TABLE = {**ARITHMETIC, **SHAPES, **TRANSFORMS}


def find(name: str) -> Optional[Callable[..., Any]]:
    """The function of pairs and real tensors for the operation `name`."""
    return _TABLE.get(name)
