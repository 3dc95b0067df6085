"""The folder RUN.setup next to a run: the package, the data and the configuration that `motley.train` writes."""

from __future__ import annotations

import fcntl
import json
import os
from typing import Any, Dict, Optional

from .errors import MotleyError

Sections = Dict[str, Dict[str, Any]]


class Setup:
    """The folder, locked by this process while entered."""

    def __init__(self, run: str, resume: bool):
        """Entering refuses a new run that already exists, and with `resume` a run that does not exist."""
        self.folder = run + ".setup"
        self.config = os.path.join(self.folder, "motley.toml")
        self.package = os.path.join(self.folder, "model.motley")
        self._run, self._resume = run, resume
        self._data = os.path.join(self.folder, "data.json")
        self._lock: Optional[int] = None
        self._before: Optional[str] = None

    def __enter__(self) -> "Setup":
        if self._resume and not os.path.isfile(self.config):
            raise MotleyError(f"nothing to resume: {self.config} is missing. Leave resume= out, or pass the run as run=")
        try:
            os.makedirs(self.folder, exist_ok=True)
            self._lock = os.open(os.path.join(self.folder, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            self._acquire()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _acquire(self) -> None:
        assert self._lock is not None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise MotleyError(f"{self._run} is in use by another motley.train. Wait for its end, or choose another run=") from error
        if not self._resume and os.path.isdir(self._run) and os.listdir(self._run):
            raise MotleyError(f"{self._run} already contains a run. Continue it with resume=True, or choose another run=")

    def __exit__(self, *_: Any) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def write_data(self, given: Any) -> None:
        """Writes the data and its keys of `[data]`."""
        try:
            section = given.write(os.path.join(self.folder, "data"))
            with open(self._data, "w", encoding="utf-8") as file:
                json.dump(section, file)
        except OSError as error:
            raise self._unwritable(error) from error

    def merged(self, sections: Sections) -> Sections:
        """`sections` with the keys of the written model and data."""
        try:
            with open(self._data, encoding="utf-8") as file:
                data = json.load(file)
        except (OSError, ValueError) as error:
            raise MotleyError(f"{self._data} cannot be read: {error}. Changes of settings need it; edit {self.config} instead, "
                              "and resume without settings") from error
        written = {"model": {"kind": "package", "path": self.package}, "data": data}
        return {name: {**written.get(name, {}), **sections.get(name, {})} for name in {**written, **sections}}

    def write(self, config: str) -> None:
        """Writes the configuration atomically."""
        if os.path.isfile(self.config):
            with open(self.config, encoding="utf-8") as file:
                self._before = file.read()
        self._replace(config)

    def restore(self) -> None:
        """Restores the configuration from before `write`, if there was one."""
        if self._before is not None:
            self._replace(self._before)

    def _replace(self, config: str) -> None:
        partial = self.config + ".partial"
        try:
            with open(partial, "w", encoding="utf-8") as file:
                file.write(config)
            os.replace(partial, self.config)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> MotleyError:
        return MotleyError(f"{self.folder} cannot be written: {error}. Free space, or choose another run=")
