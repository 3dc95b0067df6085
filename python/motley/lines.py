"""Where in the user's source something happened, and errors of code that is not ours in words that name the place."""

from __future__ import annotations

import contextlib
import os
import sys
from types import FrameType
from typing import Callable, Iterator, Optional

import torch

from .errors import ExportError, in_words

_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep


def user_line() -> Optional[str]:
    """The innermost source line that is neither PyTorch's nor this package's."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name == _REPLAY and "line" in frame.f_locals:  # an operation that runs again, with the line where it ran first
            return frame.f_locals["line"]
        if (name, frame.f_code.co_name) == _CALLS_MODEL or name == _CALLS_LAYER:
            return None
        if not name.startswith(_NOT_THE_USERS) and not name.startswith("<"):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return None


_OWN = os.path.dirname(user_line.__code__.co_filename) + os.sep
_CALLS_LAYER = _OWN + "trace.py"
_CALLS_MODEL = os.path.join(_OWN, "split", "whole_trace.py"), "_run"
_REPLAY = os.path.join(_OWN, "split", "segment.py")
_NOT_THE_USERS = (_OWN, _TORCH, os.path.realpath(_TORCH))


def user_line_of(error: BaseException) -> Optional[str]:
    """The same of the place where an error was raised."""
    found = None
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith(_NOT_THE_USERS) and not name.startswith("<"):
            found = f"{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


_REMEDIES = (
    ("Checkpointing is not compatible", "Switch activation checkpointing off: Motley recomputes by itself where memory is short"),
    ("modified by an inplace operation", "Use the operation without the underscore; PyTorch's own backward refuses this, too"))
"""What to do about errors of PyTorch, by a part of their text."""


@contextlib.contextmanager
def guarded(step: str, remedy: str, path: Callable[[], Optional[str]] = lambda: None) -> Iterator[None]:
    """Makes an ExportError of whatever else is raised in `step`, with the module that is running and the user's line."""
    try:
        yield
    except ExportError:
        raise
    except Exception as error:  # whatever the unknown code raises
        known = next((what for part, what in _REMEDIES if part in str(error)), remedy)
        raise ExportError(f"{step}: {in_words(error)}", known, path(), user_line_of(error)) from error
