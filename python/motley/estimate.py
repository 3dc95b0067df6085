"""`motley.estimate`: whether a Hugging Face model can be trained on a cluster, and how fast, from its configuration alone."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

from . import empty_model, folder_model, losses, weights
from .errors import MotleyError, step
from .layers import Names, as_layers
from .program import find_program
from .settings import sections_of, toml
from .split import split
from .verified_package import Options, outline

Path = Union[str, "os.PathLike[str]"]

_DOES_NOT_FIT = 6
"""The exit status of `motley plan` without a plan (docs/exit-status.md)."""


class Estimate(NamedTuple):
    """The result of `motley.estimate`."""

    text: str
    """The output of `motley plan`: the layers and the memory of each machine, or what is missing."""
    plan: Optional[Dict[str, Any]]
    """The plan's JSON (docs/formats/plan.md); None if the model does not fit."""
    notices: Tuple[str, ...] = ()
    """Notices about the model, such as samples that are longer than its configuration has positions."""

    @property
    def fits(self) -> bool:
        """Whether the machines have the memory for the model."""
        return self.plan is not None


def estimate(folder: Path, cluster: Path, *, tokens: int, links: Optional[Path] = None, motley: Optional[Path] = None,
             **settings: Any) -> Estimate:
    """The plan for a model of which only the configuration is available; no weights are read.

    folder    a Hugging Face folder of a causal language model, or its config.json
    cluster   the machines and links (docs/formats/cluster.md); they may be hypothetical (docs/devices.md)
    tokens    the number of tokens of a sample
    links     the file of `motley probe --output`
    motley    the program; by default the one installed with this package, else the one on PATH
    settings  as of `motley.train`: keys of `[train]`, such as precision="bf16", global_batch=64, and others with two underscores

    Returns an `Estimate`, also if the model does not fit. Raises MotleyError for invalid settings or files, and ExportError for a
    model that cannot be traced.
    """
    program = find_program(motley)
    sections = sections_of(settings, "runs/estimate")
    own = sorted({"kind", "path"} & set(sections.get("model", {})))
    if own:
        raise MotleyError(f"model.{own[0]} is set, but the model is that of {os.fspath(folder)}. Leave it out")
    with tempfile.TemporaryDirectory() as work:
        package = os.path.join(work, "model.motley")
        sections["model"] = {"kind": "package", "path": package, **sections.get("model", {})}
        sections["data"] = {"kind": "synthetic", **sections.get("data", {})}
        config, output = os.path.join(work, "estimate.toml"), os.path.join(work, "plan.json")
        with open(config, "w", encoding="utf-8") as file:
            file.write(toml(sections))
        command = [program, "plan", config, "--cluster", os.fspath(cluster), "--output", output]
        command += ["--links", os.fspath(links)] if links is not None else []
        _check_arguments(command, config, package)
        notices = _write_outline(folder, tokens, package)
        done = _run(command)
        if done.returncode == _DOES_NOT_FIT:
            return Estimate(done.stdout, None, notices)
        if done.returncode != 0:
            raise MotleyError(f"`motley plan` ended with status {done.returncode} (docs/exit-status.md):\n{done.stdout}")
        with open(output, encoding="utf-8") as file:
            return Estimate(done.stdout, json.load(file), notices)


def _run(command: List[str]) -> "subprocess.CompletedProcess[str]":
    with step(f"starting {command[0]}"):
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")


def _check_arguments(command: List[str], config: str, package: str) -> None:
    """Refuses invalid settings, cluster and links before the model is traced, which takes a minute for large ones: `motley plan` reads
    them before the package, which does not exist yet."""
    done = _run(command)
    if done.returncode != 0 and package not in done.stdout:
        raise MotleyError(f"invalid settings, cluster or links:\n{done.stdout.replace(config, 'settings')}")


def _write_outline(folder: Path, tokens: int, path: str) -> Tuple[str, ...]:
    """Writes a package with the description and size of the model's package, whose weights are 0 in a sparse file. Returns notices."""
    model, loss, example, notices = folder_model.open_folder(folder, None, None, tokens, is_estimate=True)
    empty_model.check_buffers([model])
    described = as_layers(split(model, example))
    built = outline(described, losses.parse(loss), example, Names(described), Options())
    os.mkdir(path)
    file = os.path.join(path, "weights.safetensors")
    weights.write_zeros(file, built.tensors)
    built.package["name"] = os.path.basename(os.path.normpath(os.fspath(folder)))
    built.package["made_by"] = "motley.estimate"
    built.package["weights"] = {"file": "weights.safetensors", "bytes": os.path.getsize(file), "sha256": "0" * 64}
    with open(os.path.join(path, "package.json"), "w", encoding="utf-8") as out:
        json.dump(built.package, out, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return notices
