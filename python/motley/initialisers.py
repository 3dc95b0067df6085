"""Initialisers of models that are created without weights: their results are not used.

Those of `torch.nn.init` do nothing. Others run, and may ask for values in a loop that draws until all are within bounds: their
conditions are true and false in turn at each source line, so that such loops end.
"""

from __future__ import annotations

import contextlib
import sys
import types
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import torch

from . import virtual
from .errors import DataDependent
from .virtual import Virtual

_OWN_FILES = (__file__, virtual.__file__, contextlib.__file__)

_originals: Dict[str, Callable[..., Any]] = {}
"""[name in torch.nn.init] the function with its own code, while it has that of `skipped`."""


@contextlib.contextmanager
def skipped() -> Iterator[None]:
    """While entered, the functions of `torch.nn.init` leave tensors without values as they are. Their code is replaced, since other
    modules have imported the functions themselves."""
    if _originals:
        yield
        return
    own = {name: function for name, function in vars(torch.nn.init).items()
           if name.endswith("_") and isinstance(function, types.FunctionType) and not function.__code__.co_freevars}
    codes = {name: function.__code__ for name, function in own.items()}
    try:
        for name, function in own.items():
            copy = types.FunctionType(codes[name], function.__globals__, name, function.__defaults__)
            copy.__kwdefaults__ = function.__kwdefaults__
            _originals[name] = copy
            made: Dict[str, Any] = {}
            exec(f"def {name}(*args, **named):\n    from motley import initialisers\n    return initialisers.run({name!r}, args, named)", made)
            function.__code__ = made[name].__code__
        yield
    finally:
        for name, function in own.items():
            function.__code__ = codes[name]
        _originals.clear()


def run(name: str, args: Tuple[Any, ...], named: Dict[str, Any]) -> Any:
    """Calls a function of `torch.nn.init`, unless its tensor has no values."""
    tensor = args[0] if args else named.get("tensor")
    return tensor if isinstance(tensor, Virtual) else _originals[name](*args, **named)


class Creation:
    """The creation of models in `motley.without_weights()`, which the frame `outer` enters."""

    def __init__(self, outer: Any):
        self._outer = outer
        self._asked: Dict[Tuple[str, int], int] = {}

    def answer(self, name: str, asked: torch.Tensor) -> bool:
        """A condition in an initialiser that depends on `asked`, which has no values. Raises DataDependent for others, and for
        numbers, from which a buffer may be computed."""
        place = self._initialiser()
        if place is None or asked.dtype != torch.bool or name not in ("aten::_local_scalar_dense", "aten::is_nonzero", "aten::item"):
            raise DataDependent(f"a constructor needs the values of weights ({name}), and the model is created without them",
                                "Create the model outside of motley.without_weights(), with its weights, and export it from memory, "
                                "without folder=")
        self._asked[place] = self._asked.get(place, 0) + 1
        return self._asked[place] % 2 == 1

    def _initialiser(self) -> Optional[Tuple[str, int]]:
        """The source line that asks, if an initialiser is running."""
        frame: Any = sys._getframe(1)
        while frame.f_code.co_filename in _OWN_FILES:
            frame = frame.f_back
        place = frame.f_code.co_filename, frame.f_lineno
        while frame is not None and frame is not self._outer:
            name = frame.f_code.co_name
            if not name.startswith("__") and ("init" in name or "reset" in name or name.endswith("_")):
                return place
            frame = frame.f_back
        return None


def caller() -> Any:
    """The frame that enters the context manager whose function calls this."""
    frame: Any = sys._getframe(2)
    while frame.f_code.co_filename == contextlib.__file__:
        frame = frame.f_back
    return frame
