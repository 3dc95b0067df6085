"""What this package raises."""

from __future__ import annotations

import contextlib
from typing import Iterator, Optional


class MotleyError(Exception):
    """Something did not work; the text says what, where, why, and what to do."""


class ExportError(MotleyError):
    """A model that cannot be made into a package.

    `module` is the path of the module that was running (None where that is not known), `line` the user's source line as
    `file:number`.
    """

    def __init__(self, reason: str, remedy: str, module: Optional[str] = None, line: Optional[str] = None):
        self.reason = reason
        self.remedy = remedy
        self.module = module
        self.line = line
        super().__init__(reason, remedy, module, line)

    def __str__(self) -> str:
        where = f"in {self.module}" if self.module else ""
        if self.line:
            where += f"{' ' if where else ''}at {self.line}"
        return f"{where}{': ' if where else ''}{self.reason}. {self.remedy}"


class DependsOnValues(ExportError):
    """Python, or a shape, depends on the values of a tensor."""


class DiffersFromModel(ExportError):
    """The list of layers is not the model."""


def lacks_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or isinstance(error, RuntimeError) and "memory" in str(error)


def in_words(error: BaseException) -> str:
    """An exception's type and the first line of its text."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].rstrip('.')}" if lines else type(error).__name__


@contextlib.contextmanager
def step(what: str) -> Iterator[None]:
    """Names the step of whatever fails in it without words of this package's; that error stays the cause."""
    try:
        yield
    except MotleyError:
        raise
    except Exception as error:
        raise MotleyError(f"{what} failed: {in_words(error)}. The traceback above has the place") from error
