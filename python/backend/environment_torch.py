"""The torch of the environment into which pip installs: where it is, whether programs can be linked with it, and the
version and the requirements of a wheel that is built with it.

Imports only the standard library, so that tests need neither scikit-build-core nor torch.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

OLDEST = (1, 13)
"""The oldest LibTorch that Motley supports (cmake/Dependencies.cmake)."""

_LOCATE = """
import importlib.util, sysconfig
spec = importlib.util.find_spec("torch")
print((spec.submodule_search_locations or [""])[0] if spec else "")
print(sysconfig.get_path("platlib"))
"""
_SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class NoUsableTorch(Exception):
    """No torch that programs can be linked with; the text states the cause and a remedy."""


class Torch(NamedTuple):
    """An installed torch."""

    folder: str
    """The folder of the Python package."""
    version: str
    """As in `torch.__version__`: 2.15.0+cu132."""
    site: Optional[str]
    """None if torch is in the folder where pip installs; otherwise the folder that contains it."""

    @property
    def release(self) -> str:
        """Major and minor version: 2.15. Programs need a torch of the same release."""
        return ".".join(self.version.split(".")[:2])


def find_torch(python: Optional[str] = None) -> Torch:
    """The torch that `python` imports: by default MOTLEY_PYTHON, else this interpreter.

    pip runs the backend by the interpreter of the environment into which it installs, and isolates the build by
    environment variables alone. Without these (`-E`) the interpreter finds what it finds in normal use.

    Raises NoUsableTorch if there is none, or one that programs cannot be linked with.
    """
    python = python or os.environ.get("MOTLEY_PYTHON") or sys.executable
    try:
        done = subprocess.run([python, "-E", "-c", _LOCATE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except OSError as error:
        raise NoUsableTorch(f"the interpreter {python} cannot be started: {error.strerror}. Set MOTLEY_PYTHON to the "
                            "Python of the environment whose torch the programs shall use") from error
    lines = done.stdout.splitlines()
    if done.returncode != 0 or len(lines) != 2:
        said = done.stderr.strip() or done.stdout.strip()
        raise NoUsableTorch(f"{python} does not report where its torch is: {said}")
    if not lines[0]:
        raise NoUsableTorch(f"the environment of {python} has no torch, which the programs are linked with. Run "
                            "`pip install torch` there first, then this command again. If another environment has the "
                            "torch (uv and `python -m build` build in their own), set MOTLEY_PYTHON to its Python")
    torch = described(lines[0], lines[1])
    refuse_unusable(torch)
    return torch


def described(folder: str, platlib: str) -> Torch:
    """The torch in a folder, without importing it, which would take seconds."""
    path = os.path.join(folder, "version.py")
    try:
        with open(path, encoding="utf-8") as file:
            found = re.search(r"^__version__[^=]*=\s*['\"]([^'\"]+)['\"]", file.read(), re.MULTILINE)
    except OSError as error:
        raise NoUsableTorch(f"{path} cannot be read: {error.strerror}. Install torch again") from error
    if found is None:
        raise NoUsableTorch(f"{path} has no __version__. Install torch again")
    site = os.path.dirname(os.path.abspath(folder))
    beside = os.path.realpath(site) == os.path.realpath(platlib)
    return Torch(os.path.abspath(folder), found[1], None if beside else site)


def refuse_unusable(torch: Torch) -> None:
    """Raises NoUsableTorch for a version that is too old, and for libraries with the C++ library's old strings."""
    numbers = re.match(r"(\d+)\.(\d+)", torch.version)
    if numbers is None:
        raise NoUsableTorch(f"the version {torch.version!r} of the torch in {torch.folder} has no release number")
    if (int(numbers[1]), int(numbers[2])) < OLDEST:
        raise NoUsableTorch(f"torch {torch.version} in {torch.folder} is too old. Run `pip install 'torch>=2.7'`, then "
                            "this command again")
    config = os.path.join(torch.folder, "share", "cmake", "Torch", "TorchConfig.cmake")
    try:
        with open(config, encoding="utf-8") as file:
            old_strings = "_GLIBCXX_USE_CXX11_ABI=0" in file.read()
    except OSError:
        old_strings = False
    if old_strings:
        raise NoUsableTorch(f"torch {torch.version} in {torch.folder} is built with the old strings of the C++ library "
                            "(most wheels of torch up to 2.6), which programs of a current compiler cannot be linked "
                            "with. Run `pip install 'torch>=2.7'`, then this command again")


def build_folder(torch: Torch) -> str:
    """The build folder: one for each torch, kept, so that a repeated build compiles only what has changed."""
    return "build/pip/torch-" + re.sub(r"[^\w.]", "-", torch.version)


def motley_version(source: str = _SOURCE) -> str:
    """The version in CMakeLists.txt."""
    with open(os.path.join(source, "CMakeLists.txt"), encoding="utf-8") as file:
        found = re.search(r"^project\(motley VERSION ([\d.]+)", file.read(), re.MULTILINE)
    assert found is not None, "CMakeLists.txt has no project(motley VERSION ...)"
    return found[1]


def wheel_version(version: str, torch: Torch) -> str:
    """The wheel's version, with the torch that it needs as its local part: 0.1.0+torch2.15."""
    return f"{version}+torch{torch.release}"


def requirements(torch: Torch) -> List[str]:
    """The packages that a wheel built with this torch needs."""
    # Debian's version is 1.13.0a0, which pip takes for one before 1.13 and accepts only where it is named.
    before_release = f",>={torch.release}.0a0" if "a" in torch.version.split("+")[0] else ""
    return ["numpy", f"torch=={torch.release}.*{before_release}"]


_state = "wheel"


def build_state(state: str) -> None:
    """Called by scikit-build-core before `dynamic_metadata`."""
    global _state
    _state = state


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> Dict[str, Any]:
    """Called by scikit-build-core for the fields that pyproject.toml lists as dynamic."""
    del settings, project
    if _state == "sdist":
        return {"version": motley_version(), "dependencies": ["numpy", "torch"]}
    torch = find_torch()
    return {"version": wheel_version(motley_version(), torch), "dependencies": requirements(torch)}


def dynamic_wheel(settings: Mapping[str, Any]) -> Dict[str, bool]:
    """Called by scikit-build-core for the fields in which a wheel may differ from the source archive."""
    del settings
    return {"dependencies": True}
