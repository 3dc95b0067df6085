"""Complex tensors in a recording, as pairs of real numbers: packages have no complex type.

An operation on complex tensors is recorded as operations on their pairs, real tensors with a last dimension of real and
imaginary part, in forward and in backward. `complex_operations.py` has the table.
"""

from __future__ import annotations

from typing import Any, Dict, Tuple

import torch

from . import complex_operations
from .aliases import Entry
from .complex_pair import Pair, Unsupported
from .graph import leaves, map_args
from .recording import Recording, has_place, place

aten = torch.ops.aten

_MAKES = frozenset({"aten::complex", "aten::polar", "aten::view_as_complex", "aten::_fft_r2c"})
"""Operations of real tensors with a complex result."""

_ALIASES = frozenset({"aten::alias", "aten::lift_fresh", "aten::lift", "aten::resolve_conj", "aten::resolve_neg"})


class ComplexRecording(Recording):
    """Records operations on complex tensors. REQUIRES: it is entered as a mode that records real operations."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._pairs: Dict[int, Tuple[torch.Tensor, torch.Tensor]] = {}  # [id of a complex tensor] the tensor, its pair
        self._pair_places: Dict[Tuple[Any, ...], torch.Tensor] = {}  # [memory and view of a complex tensor] its pair

    def release(self) -> None:
        super().release()
        self._pairs.clear()
        self._pair_places.clear()

    def takes_complex(self, name: str, args: Tuple[Any, ...], kwargs: dict) -> bool:
        """Whether an operation has a complex argument or result."""
        if name in _MAKES or isinstance(kwargs.get("dtype"), torch.dtype) and kwargs["dtype"].is_complex:
            return True
        return any(isinstance(leaf, complex) or isinstance(leaf, torch.Tensor) and leaf.is_complex()
                   for leaf in leaves([args, list(kwargs.values())]))

    def run_complex(self, func: Any, name: str, args: Tuple[Any, ...], kwargs: dict) -> Any:
        """The result of such an operation."""
        if name == "aten::view_as_complex":
            return self._paired(func(*args), args[0])
        if name in _ALIASES:
            out = func(*args)
            return out if out is args[0] else self._paired(out, self._pair(args[0]))
        if name == "aten::view_as_real":
            pair = self._pair(args[0])
            self.value_of(pair)
            out = func(*args)
            self._add_entry(out, Entry(out, None, self._entries[id(pair)])).seen = -1
            return out
        operation = complex_operations.find(name)
        if operation is None:
            if self._all_fixed(args, kwargs):
                return func(*args, **kwargs)  # a constant
            raise self.fail(f"{name} computes with complex numbers", "Compute with real and imaginary parts (torch.view_as_real)")
        given = tuple(map_args(argument, self._paired_argument) for argument in args)
        named = {key: map_args(value, self._paired_argument) for key, value in kwargs.items()}
        try:
            with self:  # type: ignore[attr-defined]
                found = operation(*given, **named)
                found = map_args(found, lambda leaf: Pair(_laid_out(leaf.parts)) if isinstance(leaf, Pair) else leaf)
        except Unsupported as error:
            raise self.fail(f"{name} computes with complex numbers: {error}",
                            "Compute with real and imaginary parts (torch.view_as_real)") from None
        if name.endswith("_") or "_." in name:  # in place: the pair has the result
            return args[0]
        return map_args(found, lambda leaf: self._paired(aten.view_as_complex(leaf.parts), leaf.parts) if isinstance(leaf, Pair) else leaf)

    def _all_fixed(self, args: Tuple[Any, ...], kwargs: dict) -> bool:
        return all(self._fixed[self.value_of(self._pair(leaf) if leaf.is_complex() else leaf)]
                   for leaf in leaves([args, list(kwargs.values())]) if isinstance(leaf, torch.Tensor))

    def _paired(self, tensor: torch.Tensor, pair: torch.Tensor) -> torch.Tensor:
        self._pairs[id(tensor)] = tensor, pair
        if has_place(tensor):
            self._pair_places.setdefault(place(tensor), pair)
        return tensor

    def _paired_argument(self, leaf: Any) -> Any:
        return Pair(self._pair(leaf)) if isinstance(leaf, torch.Tensor) and leaf.is_complex() else leaf

    def _pair(self, tensor: torch.Tensor) -> torch.Tensor:
        known = self._pairs.get(id(tensor))
        if known is not None:
            return known[1]
        pair = self._pair_places.get(place(tensor)) if has_place(tensor) else None  # autograd returns a saved tensor as a new one
        if pair is None:
            if tensor.requires_grad:
                raise self.fail("the layer uses a complex tensor that requires a gradient", "Make it a parameter of real and imaginary parts")
            whole = tensor.to(torch.complex64) if tensor.dim() == 0 else tensor  # a number of Python is complex128
            pair = torch.view_as_real(whole.resolve_conj())
        self._pairs[id(tensor)] = tensor, pair
        return pair


def _laid_out(parts: torch.Tensor) -> torch.Tensor:
    """A pair that can be viewed as complex numbers."""
    strides = parts.stride()
    is_viewable = strides[-1] == 1 and all(stride % 2 == 0 for stride in strides[:-1]) and parts.storage_offset() % 2 == 0
    return parts if is_viewable else aten.clone(parts, memory_format=torch.contiguous_format)
