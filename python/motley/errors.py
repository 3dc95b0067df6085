"""The exceptions of this package."""

from __future__ import annotations

import contextlib
from typing import Iterator, Optional


class MotleyError(Exception):
    """A failed operation; the text states the operation, the place, the cause and a hint."""


class ExportError(MotleyError):
    """A model that cannot be exported as a package.

    `module` is the path of the running module, or None if it is unknown; `line` is the user's source line as `file:number`.
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


class DataDependent(ExportError):
    """Python code or a shape depends on the values of a tensor."""


class ModelMismatch(ExportError):
    """The list of layers differs from the model."""


def lacks_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or isinstance(error, RuntimeError) and "memory" in str(error)


def summary(error: BaseException) -> str:
    """An exception's type and the first line of its text, with the following one if it ends in a colon."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    count = next((k + 1 for k, line in enumerate(lines) if not line.endswith(":")), len(lines))
    return f"{type(error).__name__}: {' '.join(lines[:count]).rstrip('.:')}" if lines else type(error).__name__


@contextlib.contextmanager
def step(what: str) -> Iterator[None]:
    """Converts other exceptions to a MotleyError that names the step `what`; the original one is its cause."""
    try:
        yield
    except MotleyError:
        raise
    except Exception as error:
        raise MotleyError(f"{what} failed: {summary(error)}. The traceback above shows the place") from error
