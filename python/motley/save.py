"""`Run.save_pretrained`: the newest checkpoint of a run as a folder for transformers or peft, written by `motley ckpt export`."""

from __future__ import annotations

import json
import os
import subprocess
import warnings
from typing import Union

from .errors import MotleyError, step
from .export import ExportWarning
from .manifest import newest_checkpoint

Path = Union[str, "os.PathLike[str]"]


def save_pretrained(program: str, run: str, package: str, folder: Path) -> None:
    """Writes `folder`, which must not exist. Issues a warning for each file that a library needs and the package lacks."""
    newest_checkpoint(run)  # its error names the remedy
    command = [program, "ckpt", "export", run, "--package", package, "-o", os.fspath(folder), "--json"]
    with step(f"starting {program}"):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode != 0:
        ended = f"`{' '.join(command)}` ended with status {done.returncode} (docs/exit-status.md)"
        raise MotleyError(f"{ended}:\n{done.stderr.strip()}")
    for line in json.loads(done.stdout)["lacks"]:
        warnings.warn(line, ExportWarning, stacklevel=3)
