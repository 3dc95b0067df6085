"""The programs that `pip install .` puts beside the Python package: their paths, the torch that they need, and the
commands `motley`, `motley-stage` and `motley-store` of the environment.

Does not import torch, so that the commands start at once. The Python package alone (`pip install ./python`) has no
programs.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from typing import NoReturn, Optional

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "motley", "bin")
_VERSION_FILE = "torch-version"


class WrongTorch(ImportError):
    """The environment's torch is not the one that the installed programs were built with."""


def program(name: str) -> Optional[str]:
    """The path of an installed program, or None if there is none."""
    path = os.path.join(FOLDER, name)
    return path if os.access(path, os.X_OK) else None


def needed_torch() -> Optional[str]:
    """The release of torch that the programs were built with, such as 2.15, or None if no programs are installed."""
    try:
        with open(os.path.join(FOLDER, _VERSION_FILE), encoding="utf-8") as file:
            return file.read().strip()
    except FileNotFoundError:
        return None


def installed_torch() -> Optional[str]:
    """The `__version__` of the torch that `import torch` would load, or None if there is none. Does not import it: a
    torch whose own libraries are missing has a version too."""
    spec = importlib.util.find_spec("torch")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        try:
            with open(os.path.join(folder, "version.py"), encoding="utf-8") as file:
                found = re.search(r"^__version__[^=]*=\s*['\"]([^'\"]+)['\"]", file.read(), re.MULTILINE)
        except OSError:
            continue
        if found is not None:
            return found[1]
    return None


def check_torch() -> None:
    """Raises WrongTorch if programs are installed that cannot load the environment's torch."""
    needed = needed_torch()
    version = installed_torch() if needed is not None else None
    if needed is None or version is None or re.match(re.escape(needed) + r"(?!\d)", version):
        return
    raise WrongTorch(f"Motley's programs in {FOLDER} were built with torch {needed}, but this environment has torch "
                     f"{version}. Run `pip install 'torch=={needed}.*'`, or `pip install .` in Motley's repository, "
                     f"which builds them with torch {version}")


def motley() -> NoReturn:
    """The command `motley`."""
    _become("motley")


def motley_stage() -> NoReturn:
    """The command `motley-stage`."""
    _become("motley-stage")


def motley_store() -> NoReturn:
    """The command `motley-store`."""
    _become("motley-store")


def _become(name: str) -> NoReturn:
    path = program(name)
    if path is None:
        sys.exit(f"{name}: {os.path.join(FOLDER, name)} is missing or not executable. Run `pip install .` again in "
                 "Motley's repository")
    os.execv(path, [path] + sys.argv[1:])
