"""The build backend of `pip install .`: scikit-build-core, with the torch of the environment into which pip installs.

pip builds in an isolated environment, which has no torch. Programs must be linked with the torch that they will load,
so the hooks here locate it in the environment (`environment_torch`), and pass its folder to CMake.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any, Callable, Dict, List, Optional

from environment_torch import NoUsableTorch, build_folder, find_torch
from scikit_build_core import build

Settings = Optional[Dict[str, Any]]
Folder = Optional[str]

get_requires_for_build_sdist = build.get_requires_for_build_sdist
build_sdist = build.build_sdist


def get_requires_for_build_wheel(config_settings: Settings = None) -> List[str]:
    return build.get_requires_for_build_wheel(_with_torch(config_settings))


def get_requires_for_build_editable(config_settings: Settings = None) -> List[str]:
    return build.get_requires_for_build_editable(_with_torch(config_settings))


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    return build.prepare_metadata_for_build_wheel(metadata_directory, _with_torch(config_settings))


def prepare_metadata_for_build_editable(metadata_directory: str, config_settings: Settings = None) -> str:
    return build.prepare_metadata_for_build_editable(metadata_directory, _with_torch(config_settings))


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: Folder = None) -> str:
    return _built(build.build_wheel, wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory: str, config_settings: Settings = None, metadata_directory: Folder = None) -> str:
    return _built(build.build_editable, wheel_directory, config_settings, metadata_directory)


def _built(hook: Callable[..., str], wheel_directory: str, config_settings: Settings, metadata: Folder) -> str:
    settings = _with_torch(config_settings)
    # As scripts/build: one job for each processor that this process may use, and ccache if it is installed.
    os.environ.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(len(os.sched_getaffinity(0))))
    if shutil.which("ccache"):
        os.environ.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")
    return hook(wheel_directory, settings, metadata)


def _with_torch(config_settings: Settings) -> Dict[str, Any]:
    """The settings of the caller, and those of the environment's torch that the caller leaves out."""
    try:
        torch = find_torch()
    except NoUsableTorch as error:
        print(f"\nmotley cannot be built: {error}\n", file=sys.stderr)
        raise SystemExit(1) from None
    found = {"build-dir": build_folder(torch), "cmake.define.MOTLEY_TORCH": torch.folder,
             "cmake.define.MOTLEY_WHEEL_SITE": torch.site or ""}
    return {**found, **(config_settings or {})}
