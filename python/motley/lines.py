"""Source lines of the user's code, and the conversion of its exceptions to errors with module and line."""

from __future__ import annotations

import contextlib
import os
import sys
from types import FrameType
from typing import Callable, Iterator, Optional

import torch

from .errors import ExportError, summary

_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep


def user_line() -> Optional[str]:
    """The innermost source line outside PyTorch and this package."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name == _REPLAY and "line" in frame.f_locals:  # a replayed operation: the line where it was recorded
            return frame.f_locals["line"]
        if (name, frame.f_code.co_name) == _CALLS_MODEL or name == _CALLS_LAYER:
            return None
        if not name.startswith(_SKIPPED) and not name.startswith("<"):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return None


_PACKAGE_FOLDER = os.path.dirname(user_line.__code__.co_filename) + os.sep
_CALLS_LAYER = _PACKAGE_FOLDER + "trace.py"
_CALLS_MODEL = os.path.join(_PACKAGE_FOLDER, "split", "whole_trace.py"), "_run"
_REPLAY = os.path.join(_PACKAGE_FOLDER, "split", "segment.py")
_SKIPPED = (_PACKAGE_FOLDER, _TORCH, os.path.realpath(_TORCH))


def error_line(error: BaseException) -> Optional[str]:
    """The innermost such line in the traceback of an error."""
    found = None
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith(_SKIPPED) and not name.startswith("<"):
            found = f"{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


_REMEDIES = (
    ("Checkpointing is not compatible", "Disable activation checkpointing: Motley recomputes activations itself if memory is "
     "short"),
    ("modified by an inplace operation", "Use the operation without the underscore: PyTorch's backward does not support this "
     "either"))
"""Hints for errors of PyTorch, by a part of their text."""


@contextlib.contextmanager
def guarded(step: str, remedy: str, path: Callable[[], Optional[str]] = lambda: None) -> Iterator[None]:
    """Converts other exceptions in `step` to an ExportError with the running module and the user's line."""
    try:
        yield
    except ExportError:
        raise
    except Exception as error:  # any exception of the user's code
        known = next((what for part, what in _REMEDIES if part in str(error)), remedy)
        raise ExportError(f"{step}: {summary(error)}", known, path(), error_line(error)) from error
