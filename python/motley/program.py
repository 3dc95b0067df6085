"""The program `motley`, which this package starts."""

from __future__ import annotations

import os
import shutil
from typing import Optional, Union

import motley_programs

from .errors import MotleyError


def find_program(given: Optional[Union[str, "os.PathLike[str]"]] = None) -> str:
    """The path of the given program; by default of the one installed with this package, or else of the one on PATH.

    Raises MotleyError if it does not exist or is not executable.
    """
    installed = motley_programs.program("motley") if given is None else None
    name = os.fspath(given) if given is not None else "motley"
    found = installed or shutil.which(name)
    if found is None:
        raise MotleyError(f"the program {name} is not found. Install it (docs/install.md), and add its folder to PATH "
                          "or pass motley=")
    return found
