"""Replaces random draws of PyTorch by numbers that are functions of their position, not of earlier draws.

While a `Draws` is entered, Bernoulli numbers with one probability become dropout masks, and uniform, normal, exponential and
integer numbers come from random_numbers.py. Each draw gets the next index. Other random operations, and draws from a separate
generator, are not replaced but recorded; the callers refuse them.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import dropout, operations, random_numbers
from .errors import ExportError
from .graph import leaves
from .record import Recorder

aten = torch.ops.aten

MAX_DRAWS = 256
"""The most draws in a layer (docs/formats/package.md, "Limits")."""

Number = Union[float, torch.Tensor]


class Draw(NamedTuple):
    """One draw. `p`: the probability of a dropout. `placed`: its numbers are functions of their position. `used`: they affect
    results, unlike numbers that are compared with a probability of 0."""

    what: str
    p: Optional[float]
    shape: Tuple[int, ...]
    module: Optional[str]
    placed: bool = True
    used: bool = True

    def __str__(self) -> str:
        kind = f"dropout of {self.p:g}" if self.p is not None else f"{self.what} of {list(self.shape)}" if self.placed else self.what
        return f"{kind}{f' in {self.module}' if self.module else ''}"


class Draws(TorchDispatchMode):
    """Entered after a recorder, so that it gets operations first. `order`: the indices of the draws, consecutive by default."""

    def __init__(self, recorder: Optional[Recorder] = None, module: Callable[[], Optional[str]] = lambda: None,
                 order: Optional[List[int]] = None):
        super().__init__()
        self.drawn: List[Draw] = []
        self._recorder = recorder
        self._module = module
        self._order = order
        self._placed = 0
        self._unused: Dict[int, Tuple[torch.Tensor, int]] = {}  # [id] numbers in [0, 1), and the index of their draw
        self.most: Optional[int] = MAX_DRAWS

    def mask(self, like: torch.Tensor, p: float) -> torch.Tensor:
        """A mask in the shape of `like`: 0 with probability p, else 1 / (1 - p)."""
        if not 0 <= p <= 1:
            raise self.fail(f"the dropout probability is {p}", "Pass a probability from 0 to 1")
        return dropout.mask(like, p, self._place("dropout", p, (like.numel(),)))

    def numbers(self, kind: str, size: Sequence[int], *limits: int) -> torch.Tensor:
        """The result of the operation motley::`kind`."""
        size = [int(length) for length in size]
        what = f"integers from {limits[0]} to below {limits[1]}" if limits else f"{kind} numbers"
        return getattr(torch.ops.motley, kind)(size, *limits, self._place(what, None, tuple(size)))

    def fail(self, reason: str, remedy: str) -> ExportError:
        return ExportError(reason, remedy, self._module()) if self._recorder is None else self._recorder.fail(reason, remedy)

    def __exit__(self, *args: Any) -> None:
        super().__exit__(*args)
        self._unused.clear()

    def __torch_dispatch__(self, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Optional[dict] = None) -> Any:
        kwargs = kwargs or {}
        name = operations.name_of(func)
        args = operations.with_tensors(name, args)
        base = name.split("::")[1].partition(".")[0]
        if name.startswith("motley::") and args[-1] == dropout.FRESH:
            return self.mask(args[0], args[1]) if base == "dropout_mask" else self.numbers(base, args[0], *args[1:-1])
        if base in _REPLACED and name.startswith("aten::"):
            given = _given(func, args, kwargs)
            made = _REPLACED[base](self, given) if given.get("generator") is None else None
            if made is not None:
                return aten.copy_.default(given["self"], made) if base.endswith("_") else made
        if self._unused:
            if base in _COMPARISONS and id(args[0]) in self._unused and isinstance(args[1], (int, float)):
                always = _COMPARISONS[base](float(args[1]))
                if always is not None:
                    return aten.full.default(list(args[0].shape), always, dtype=torch.bool)
            if base in ("alias", "detach") and id(args[0]) in self._unused:
                out = func(*args, **kwargs)
                self._unused[id(out)] = (out, self._unused[id(args[0])][1])
                return out
            self._use(args, kwargs)
        if base.rstrip("_") in operations.RANDOM and name.startswith("aten::"):
            shape = next((tuple(a.shape) for a in args if isinstance(a, torch.Tensor)), ())
            self.drawn.append(Draw(name, None, shape, self._module(), placed=False))
        return func(*args, **kwargs)

    def _place(self, what: str, p: Optional[float], shape: Tuple[int, ...]) -> int:
        """Records a draw and returns its index."""
        if self._recorder is not None and self._recorder.backward:
            raise self._recorder.fail(f"{'dropout' if p is not None else 'a random draw'} is recomputed in the backward pass, "
                                      "as by activation checkpointing",
                                      "Disable activation checkpointing: Motley recomputes activations itself if memory is short")
        index = len(self.drawn)
        if self._recorder is not None and self.most is not None and self._placed >= self.most:
            raise self.fail(f"the layer has more than {self.most} dropout masks and random draws",
                            "Divide it into several layers")
        self._placed += 1
        self.drawn.append(Draw(what, p, shape, self._module()))
        return self._order[index] if self._order is not None and index < len(self._order) else index

    def _use(self, args: Tuple[Any, ...], kwargs: dict) -> None:
        for known in [self._unused.get(id(leaf)) for leaf in leaves([args, list(kwargs.values())])]:
            if known is not None:
                self.drawn[known[1]] = self.drawn[known[1]]._replace(used=True)
                self._unused = {key: other for key, other in self._unused.items() if other[1] != known[1]}

    # The draw of an operation; None if it is not replaced.

    def _uniform_numbers(self, given: Dict[str, Any]) -> Optional[torch.Tensor]:
        size, dtype = _size_and_type(given)
        low, high = float(given.get("from", 0.0)), float(given.get("to", 1.0))
        out = _plus(_times(self.numbers("uniform", size), high - low), low)
        out = _as_type(out, dtype)
        if (low, high) == (0.0, 1.0) and "size" in given:
            self.drawn[-1] = self.drawn[-1]._replace(used=False)
            self._unused[id(out)] = (out, len(self.drawn) - 1)
        return out

    def _normal_numbers(self, given: Dict[str, Any]) -> Optional[torch.Tensor]:
        mean, std = given.get("mean", 0.0), given.get("std", 1.0)
        shapes = [number.shape for number in (mean, std) if isinstance(number, torch.Tensor)]
        if shapes:
            return _plus(_times(self.numbers("normal", torch.broadcast_shapes(*shapes)), std), mean)
        size, dtype = _size_and_type(given)
        return _as_type(_plus(_times(self.numbers("normal", size), std), mean), dtype)

    def _log_normal_numbers(self, given: Dict[str, Any]) -> Optional[torch.Tensor]:
        made = self._normal_numbers(given)
        return None if made is None else aten.exp.default(made)

    def _exponential_numbers(self, given: Dict[str, Any]) -> Optional[torch.Tensor]:
        size, dtype = _size_and_type(given)
        made = self.numbers("exponential", size)
        return _as_type(made if given["lambd"] == 1 else aten.div.Scalar(made, float(given["lambd"])), dtype)

    def _integers(self, given: Dict[str, Any]) -> Optional[torch.Tensor]:
        size, dtype = _size_and_type(given, torch.int64)
        low, high = given.get("low", given.get("from", 0)), given.get("high", given.get("to"))
        if high is None and low == 0:
            high = {torch.float32: (1 << 24) + 1, torch.bool: 2}.get(dtype)
        if not isinstance(low, int) or not isinstance(high, int) or high <= low:
            return None
        if high - low > random_numbers.MAX_INTEGERS:
            raise self.fail(f"random integers from {low} to below {high}: the range is too large",
                            "Draw from at most 2^32 integers")
        return _as_type(self.numbers("integers", size, low, high), dtype)

    def _bernoulli(self, given: Dict[str, Any]) -> Optional[torch.Tensor]:
        p = given.get("p", given["self"])
        if isinstance(p, torch.Tensor):
            return _as_type(aten.lt.Tensor(self.numbers("uniform", given["self"].shape), p), given["self"].dtype)
        return self._bernoulli_mask(given["self"], float(p), given["self"].dtype)

    def _bernoulli_mask(self, like: torch.Tensor, probability: float, dtype: torch.dtype) -> torch.Tensor:
        """Numbers of `dtype` in the shape of `like` that are 1 with `probability`, else 0."""
        if probability in (0.0, 1.0):
            return aten.full_like.default(like, probability, dtype=dtype)
        if like.dtype != torch.float32:
            like = aten._to_copy.default(like, dtype=torch.float32)
        return _as_type(aten.ne.Scalar(self.mask(like, 1 - probability), 0), dtype)


def _given(func: Any, args: Tuple[Any, ...], kwargs: dict) -> Dict[str, Any]:
    """The arguments of an operation by name, with their defaults."""
    arguments = func._schema.arguments
    given = {argument.name: argument.default_value for argument in arguments if argument.has_default_value()}
    given.update(zip((argument.name for argument in arguments), args))
    return {**given, **kwargs}


def _size_and_type(given: Dict[str, Any], default: Optional[torch.dtype] = None) -> Tuple[Sequence[int], torch.dtype]:
    """The type of the draw. `default`: used if neither an argument nor a tensor determines it."""
    dtype = given.get("dtype")
    if "self" in given:
        return given["self"].shape, dtype or given["self"].dtype
    return given["size"], dtype or default or torch.get_default_dtype()


def _times(tensor: torch.Tensor, factor: Number) -> torch.Tensor:
    if isinstance(factor, torch.Tensor):
        return aten.mul.Tensor(tensor, factor)
    return tensor if factor == 1 else aten.mul.Scalar(tensor, float(factor))


def _plus(tensor: torch.Tensor, summand: Number) -> torch.Tensor:
    if isinstance(summand, torch.Tensor):
        return aten.add.Tensor(tensor, summand)
    return tensor if summand == 0 else aten.add.Scalar(tensor, float(summand))


def _as_type(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return tensor if tensor.dtype == dtype else aten._to_copy.default(tensor, dtype=dtype)


_REPLACED: Dict[str, Callable[[Draws, Dict[str, Any]], Optional[torch.Tensor]]] = {
    **dict.fromkeys(("rand", "rand_like", "uniform_"), Draws._uniform_numbers),
    **dict.fromkeys(("randn", "randn_like", "normal", "normal_"), Draws._normal_numbers),
    **dict.fromkeys(("randint", "randint_like", "random_"), Draws._integers),
    **dict.fromkeys(("bernoulli", "bernoulli_"), Draws._bernoulli),
    "exponential_": Draws._exponential_numbers,
    "log_normal_": Draws._log_normal_numbers,
}

# The result if all numbers in [0, 1) have the same order relative to this one, e.g. with a probability of 0; else None.
_COMPARISONS: Dict[str, Callable[[float], Optional[bool]]] = {
    "lt": lambda x: False if x <= 0 else True if x >= 1 else None,
    "le": lambda x: False if x < 0 else True if x >= 1 else None,
    "gt": lambda x: True if x < 0 else False if x >= 1 else None,
    "ge": lambda x: True if x <= 0 else False if x >= 1 else None,
}
