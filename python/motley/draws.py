"""Random draws of PyTorch as dropout masks, which are functions of their place and not of what ran before.

While a `Draws` is entered, Bernoulli numbers are masks, and so are uniform numbers that are only compared with a
probability: stochastic depth as torchvision, timm and transformers write it, the dropout inside of nn.LSTM, dropped
labels. What else draws stays as it is, is noted, and is for others to refuse.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import dropout, operations
from .errors import ExportError
from .record import Recorder

aten = torch.ops.aten

MOST_MASKS = 256
"""In a layer (docs/formats/package.md, "Limits")."""


class Draw(NamedTuple):
    """One draw: `count` numbers that are 0 with probability `p`; or, where p is None, what else the operation `what` draws."""

    what: str
    p: Optional[float]
    count: int
    module: Optional[str]

    def __str__(self) -> str:
        kind = f"dropout of {self.p:g}" if self.p is not None else self.what
        return f"{kind}{f' in {self.module}' if self.module else ''}"


class Draws(TorchDispatchMode):
    """Entered after a recorder, so that it sees operations first. `order` numbers the masks otherwise than in turn."""

    def __init__(self, recorder: Optional[Recorder] = None, module: Callable[[], Optional[str]] = lambda: None,
                 order: Optional[List[int]] = None):
        super().__init__()
        self.drawn: List[Draw] = []
        self._recorder = recorder
        self._module = module
        self._order = order
        self._uniform: Dict[int, Tuple[torch.Tensor, float]] = {}  # [id] uniform numbers that were not used yet, and what was added
        self._generator = torch.Generator().manual_seed(0)
        self.most: Optional[int] = MOST_MASKS

    def mask(self, like: torch.Tensor, p: float) -> torch.Tensor:
        """A mask in the shape of `like`: 0 with probability p, else 1 / (1 - p)."""
        if self._recorder is not None and self._recorder.backward:
            raise self._recorder.fail("dropout runs again in the backward pass, as activation checkpointing makes it",
                                      "Switch activation checkpointing off: Motley recomputes by itself where memory is short")
        if not 0 <= p <= 1:
            raise self.fail(f"the probability of a dropout is {p}", "Give one from 0 to 1")
        index = len(self.drawn)
        if self._recorder is not None and self.most is not None and index >= self.most:
            raise self.fail(f"the layer draws more than {self.most} dropout masks", "Make several layers of it")
        self.drawn.append(Draw("dropout", p, like.numel(), self._module()))
        return dropout.mask(like, p, self._order[index] if self._order is not None and index < len(self._order) else index)

    def fail(self, reason: str, remedy: str) -> ExportError:
        return ExportError(reason, remedy, self._module()) if self._recorder is None else self._recorder.fail(reason, remedy)

    def __exit__(self, *args: Any) -> None:
        super().__exit__(*args)
        self._uniform.clear()

    def __torch_dispatch__(self, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Optional[dict] = None) -> Any:
        kwargs = kwargs or {}
        name = operations.name_of(func)
        if name in ("aten::bernoulli_.float", "aten::bernoulli.p"):
            kept = self._kept(args[0], float(args[1]) if len(args) > 1 else float(kwargs.get("p", 0.5)), args[0].dtype)
            return aten.copy_.default(args[0], kept) if name.endswith("_.float") else kept
        if name == "motley::dropout_mask" and args[2] == dropout.FRESH:
            return self.mask(args[0], args[1])
        if name in ("aten::rand", "aten::rand_like") or name == "aten::uniform_" and args[1:] in ((), (0.0, 1.0)):
            return self._uniform_numbers(name, args, kwargs)
        if self._uniform and any(isinstance(a, torch.Tensor) and id(a) in self._uniform for a in args):
            return self._of_uniform(name, func, args, kwargs)
        if name.split("::")[1].split(".")[0].rstrip("_") in operations.RANDOM:
            self.drawn.append(Draw(name, None, sum(a.numel() for a in args if isinstance(a, torch.Tensor)), self._module()))
        return func(*args, **kwargs)

    def _kept(self, like: torch.Tensor, probability: float, dtype: torch.dtype) -> torch.Tensor:
        """Numbers of `dtype` in the shape of `like` that are 1 with `probability`, else 0."""
        if probability in (0.0, 1.0):
            return aten.full_like.default(like, probability, dtype=dtype)
        if like.dtype != torch.float32:
            like = aten._to_copy.default(like, dtype=torch.float32)
        kept = aten.ne.Scalar(self.mask(like, 1 - probability), 0)
        return kept if dtype == torch.bool else aten._to_copy.default(kept, dtype=dtype)

    def _uniform_numbers(self, name: str, args: Tuple[Any, ...], kwargs: dict) -> torch.Tensor:
        dtype = kwargs.get("dtype") or (args[0].dtype if name != "aten::rand" else torch.get_default_dtype())
        if self._recorder is None:
            shape = args[0].shape if name != "aten::rand" else args[0]
            out = torch.rand(shape, generator=self._generator).to(dtype)
        elif name == "aten::rand":
            out = aten.zeros.default(args[0], dtype=dtype)
        else:
            out = aten.zeros_like.default(args[0], dtype=dtype)
        if name == "aten::uniform_":
            out = aten.copy_.default(args[0], out)
        self._uniform[id(out)] = (out, 0.0)
        return out

    def _of_uniform(self, name: str, func: Any, args: Tuple[Any, ...], kwargs: dict) -> Any:
        """What an operation makes of uniform numbers, plus a number, in place of them."""
        base = name.split("::")[1].split(".")[0]
        numbers, added = self._uniform[id(args[0])] if isinstance(args[0], torch.Tensor) and id(args[0]) in self._uniform else (None, 0.0)
        number = float(args[1]) if len(args) > 1 and isinstance(args[1], (int, float)) else None
        if numbers is not None and number is not None and base in ("lt", "le", "gt", "ge"):
            below = min(1.0, max(0.0, number - added))
            return self._kept(numbers, below if base in ("lt", "le") else 1 - below, torch.bool)
        if numbers is not None and number is not None and base in ("add", "sub") and not kwargs and len(args) == 2:
            out = aten.clone.default(numbers) if self._recorder is not None else func(*args)
            self._uniform[id(out)] = (out, added + (number if base == "add" else -number))
            return out
        if numbers is not None and base in ("floor", "floor_") and 0 <= added <= 1:
            kept = self._kept(numbers, added, numbers.dtype)
            if base == "floor":
                return kept
            del self._uniform[id(args[0])]
            return aten.copy_.default(args[0], kept)
        if base in ("detach", "alias") and numbers is not None:
            out = func(*args, **kwargs)
            self._uniform[id(out)] = (out, added)
            return out
        if base in ("empty_like", "zeros_like", "ones_like", "new_empty", "new_zeros", "new_ones"):
            return func(*args, **kwargs)
        if self._recorder is not None:
            raise self.fail(f"{name} uses random numbers, which would depend on the number of machines",
                            "Compare them with a probability, as in torch.rand(n) < p, use torch.nn.functional.dropout, or draw "
                            "them into the data")
        for argument in args:
            if isinstance(argument, torch.Tensor) and self._uniform.pop(id(argument), None) is not None:
                self.drawn.append(Draw("uniform random numbers", None, argument.numel(), self._module()))
        return func(*args, **kwargs)
