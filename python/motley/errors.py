"""What this package raises."""

from __future__ import annotations

from typing import Optional


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
