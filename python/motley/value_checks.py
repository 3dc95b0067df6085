"""Checks of values in a recording, which has none: assertions, branches on whether numbers are finite, and texts of messages."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Optional, Tuple

import torch

from .recording import Recording

_ASSERTIONS = {"_assert": 0, "_check_tensor_all": 0, "_check_tensor_all_with": 1}
"""[function of torch that raises for false conditions] the place of its condition."""

_TESTS = {torch.isfinite: True, torch.isinf: False, torch.isnan: False,
          torch.Tensor.isfinite: True, torch.Tensor.isinf: False, torch.Tensor.isnan: False}
"""[function that tests each number] its result for finite numbers."""

_REDUCED = {True: frozenset({torch.all, torch.Tensor.all}), False: frozenset({torch.any, torch.Tensor.any})}
"""[result of a test] functions that have it for all numbers if it is that of each number."""

_AS_NUMBER = frozenset({torch.Tensor.__bool__, torch.Tensor.item})

_TEXTS = frozenset({torch.Tensor.__format__, torch.Tensor.__repr__})
"""Functions that convert values to text, such as that of a message."""

FUNCTIONS = frozenset({*_TESTS, *_REDUCED[True], *_REDUCED[False], *_AS_NUMBER, *_TEXTS})
"""The functions that `ValueChecks` runs."""


class ValueChecks:
    """While entered, assertions of tensors are skipped: they do not change results."""

    def __init__(self, recorder: Optional[Recording]):
        """Without a recorder, all functions run as they are."""
        self._recorder = recorder
        self._originals: Dict[str, Any] = {}
        self._tests: Dict[int, Tuple[torch.Tensor, bool]] = {}  # [id] results of tests, and their value for finite numbers

    def __enter__(self) -> "ValueChecks":
        for name, place in _ASSERTIONS.items() if self._recorder is not None else ():
            if hasattr(torch, name):
                self._originals[name] = getattr(torch, name)
                setattr(torch, name, functools.partial(_of_python_alone, self._originals[name], place))
        return self

    def __exit__(self, *_: Any) -> None:
        for name, function in self._originals.items():
            setattr(torch, name, function)
        self._tests.clear()

    def run(self, func: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """The result of one of `FUNCTIONS`. A branch on a test is taken as for finite numbers. REQUIRES: there is a recorder."""
        known = self._tests.get(id(args[0])) if args else None
        if (known is not None and func in _AS_NUMBER or func in _TEXTS) and self._recorder is not None and self._recorder.varies(args[0]):
            return known[1] if known is not None and func in _AS_NUMBER else f"tensor of shape {list(args[0].shape)}"
        out = func(*args, **kwargs)
        if func in _TESTS:
            self._tests[id(out)] = out, _TESTS[func]
        elif known is not None and len(args) == 1 and not kwargs and func in _REDUCED[known[1]]:
            self._tests[id(out)] = out, known[1]
        return out


def _of_python_alone(original: Callable[..., None], place: int, *args: Any, **kwargs: Any) -> None:
    """Runs an assertion unless its condition is a tensor."""
    condition = args[place] if len(args) > place else kwargs.get("condition", kwargs.get("cond"))
    if not isinstance(condition, torch.Tensor):
        original(*args, **kwargs)
