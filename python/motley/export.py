"""`motley.export`: a model as a package."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import warnings
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple, Union

import torch

from . import empty_model, folder_model, losses, reference, weights
from .assemble import Assembled
from .compared import OWN_FAULT, Options, compared_shorter, made
from .errors import ExportError
from .from_folder import FolderWeights
from .layers import Call, Layers, Names, as_layers
from .lines import guarded
from .model_files import FOLDER, ModelFiles, collect
from .split import split


class Exported(NamedTuple):
    """The package that `export` wrote, and the result of its comparison with PyTorch."""

    path: str
    layers: int
    operations: int
    largest_difference: float
    """Largest relative difference from eager PyTorch, over loss and gradients; 0 means equal to the last bit."""
    notices: Tuple[str, ...] = ()
    """Notices about parts that were not compared with the model, are not trained or were rounded; also issued as warnings."""


class ExportWarning(UserWarning):
    """A notice about a package, e.g. that there was no model to compare it with."""


def export(layers: Union[torch.nn.Module, Layers, Iterable[Tuple[str, Call]], None] = None, loss: Any = None,
           example: Optional[Tuple[torch.Tensor, torch.Tensor]] = None,
           path: Union[str, "os.PathLike[str]", None] = None, name: Optional[str] = None, *, model: Optional[torch.nn.Module] = None,
           decayed: Optional[Callable[[str, torch.Tensor], bool]] = None, input_limit: Optional[int] = None,
           target_limit: Optional[int] = None, unit: Optional[str] = None,
           units_per_sample: Optional[int] = None, forward: Optional[Call] = None, files: Any = None, base: Optional[str] = None,
           folder: Union[str, "os.PathLike[str]", None] = None, tokens: Optional[int] = None, memory: Optional[float] = None) -> Exported:
    """Writes the package `path` (docs/formats/package.md): what each layer computes forward and backward, and its weights.

    layers    the model, which is split by its trace; what `motley.split` gives; or a list of (name, module or function), each called with
              what the one before returned
    loss      `nn.CrossEntropyLoss()`, `nn.MSELoss()`, their functions, or a function (output, target) -> (sum, count)
    example   (input, target), both with a first dimension of samples; their values do not matter
    model     the module that names parameters; without it they are called by their layer's name and their own
    forward   the model as its author calls it, input -> output, where that is not model(input): the layers are compared with it
    decayed   (name, parameter) -> whether weight decay applies; by default to parameters of two dimensions and more
    input_limit, target_limit
              integers lie from 0 to below these; found where an embedding or the cross entropy tells
    files     what else belongs to the trained model: a folder with its tokenizer's files, or transformers' tokenizer or processor.
              The configuration of a transformers model is kept by itself, and so are the tokenizer's files where the model came from a folder
    base      "int8", "int4" or "nf4": in what the package holds the frozen weights of linear layers, from 4,096 elements on, and what is
              computed with is their values in it. Without it they keep their type
    folder    where the weights are, in safetensors files, which are read piece by piece. The layers are those of a model that was made in
              `motley.without_weights()`; without layers the model is a Hugging Face folder's, as its config.json says
    tokens    with such a folder, in place of an example: the length of its texts. The loss is then the cross entropy
    memory    GiB that comparing one layer with PyTorch may take. With `folder` a layer that needs more is not compared, with a notice;
              otherwise it is compared with fewer samples. By default 0.9 and the largest tensor

    Everything is traced in `train()` mode, evaluation in `eval()` mode; the model's modes and buffers are as before
    afterwards. Raises `ExportError`, with the module and the line, for what a package cannot hold.
    """
    if path is None:
        raise ExportError("the package has no path", 'Give path=, e.g. path="model.motley"')
    if layers is None:
        layers, loss, example = folder_model.opened(folder, loss, example, tokens)
    if example is None or loss is None:
        raise ExportError(f"there is no {'loss' if loss is None else 'example'}", "Give the loss, and example=(input, target)")
    _check_example(example)
    if isinstance(layers, torch.nn.Module):
        empty_model.check_buffers([layers])
        layers = split(layers, example, forward=forward)
    with guarded("the model cannot be read", OWN_FAULT):
        described = as_layers(layers, model, forward)
        names = Names(described)
        terms = losses.understand(loss)
        kept = collect(described.model, names, files)
    stored = FolderWeights(described, names, folder, base)
    options = Options(decayed or Options().decayed, input_limit, target_limit, unit, units_per_sample, base, memory)
    found = made(described, terms, example, names, stored, options)
    built = found.built
    notices = found.notices + compared_shorter(found, described, terms, example, names, stored, options)
    for notice in notices:
        warnings.warn(notice, ExportWarning, stacklevel=2)
    with guarded("the package cannot be written", "Give a path for a folder, and a text as its name"):
        written = os.fspath(path)
        built.package["name"] = name or os.path.splitext(os.path.basename(os.path.normpath(written)))[0]
        built.package["made_by"] = f"motley for Python, torch {torch.__version__}, Python {sys.version.split()[0]}"
        moved = {entry["name"] for layer in built.package["layers"] for kind in ("parameters", "statistics") for entry in layer[kind]}
        _write(written, built, kept.for_what_trains(moved), found.references, stored.sources)
    return Exported(written, len(built.package["layers"]), _operations(built.package), found.largest_difference, tuple(notices))


def _operations(package: Dict[str, Any]) -> int:
    return sum(len(graph["nodes"]) for graphs in package["graphs"] for key, graph in graphs.items() if key != "memory")


def _check_example(example: Tuple[torch.Tensor, torch.Tensor]) -> None:
    if not (isinstance(example, (tuple, list)) and len(example) == 2 and all(isinstance(t, torch.Tensor) for t in example)):
        raise ExportError("the example is no pair of two tensors", "Give (input, target), each with a first dimension of "
                          "samples; pack several inputs into one tensor and take it apart in the first layer")
    for what, tensor in zip(("input", "target"), example):
        if tensor.dtype not in (torch.float32, torch.int64):
            raise ExportError(f"the example's {what} is {str(tensor.dtype)[6:]}", "Give float32 or int64")
        if tensor.dim() < 1 or tensor.size(0) < 1:
            raise ExportError(f"the example's {what} has no samples", "Its first dimension is that of the samples")
    if example[0].size(0) != example[1].size(0):
        raise ExportError(f"the example has {example[0].size(0)} inputs and {example[1].size(0)} targets",
                          "Give one target for each input")


def _replace(folder: str, new: str) -> None:
    """Replaces `folder` by `new`, and deletes the old folder only afterwards."""
    old = new + ".replaced"
    there = os.path.lexists(folder)
    if there:
        os.rename(folder, old)
    try:
        os.rename(new, folder)
    except OSError:
        if there and not os.path.lexists(folder):
            os.rename(old, folder)
        raise
    if there:
        shutil.rmtree(old)


def _is_replaceable(folder: str) -> bool:
    """Whether it is an empty folder or contains only a package."""
    if os.path.islink(folder) or not os.path.isdir(folder):
        return False
    names = set(os.listdir(folder))
    if not names:
        return True
    if "package.json" not in names or not names <= {"package.json", "weights.safetensors", reference.FILE, FOLDER}:
        return False
    with open(os.path.join(folder, "package.json"), "rb") as file:
        return b'"motley-package"' in file.read(200)


def _write(folder: str, built: Assembled, kept: ModelFiles, references: List[Dict[str, Any]], sources: Mapping[str, weights.Stored]) -> None:
    """Atomic: the package is written to a temporary folder next to the target, and renamed when complete."""
    folder = os.path.abspath(folder)
    if os.path.lexists(folder) and not _is_replaceable(folder):
        raise ExportError(f"{folder} exists and is no package", "Choose another path, or remove it")
    partial = ""
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        partial = tempfile.mkdtemp(prefix=".", suffix=".partial", dir=os.path.dirname(folder))
        file = os.path.join(partial, "weights.safetensors")
        written = weights.write(file, built.tensors, sources=sources)
        built.package["weights"] = {"file": "weights.safetensors", "bytes": os.path.getsize(file), "sha256": written}
        built.package.update(kept.write(partial))
        package = json.dumps(built.package, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"
        for name, text in (("package.json", package), (reference.FILE, reference.text(package.encode(), references))):
            with open(os.path.join(partial, name), "w", encoding="utf-8") as out:
                out.write(text)
                out.flush()
                os.fsync(out.fileno())
        os.chmod(partial, 0o755)
        _replace(folder, partial)
    except BaseException as error:
        if partial:
            shutil.rmtree(partial, ignore_errors=True)
        if isinstance(error, OSError):
            raise ExportError(f"{folder} cannot be written: {error.strerror or error}", "Make room, or choose another path; what was there before "
                              "is as it was") from error
        raise
