"""`motley.export`: writes a model as a package."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import warnings
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple, Union

import torch

from . import check, frozen, losses, reference, weights
from .assemble import Assembled, assemble
from .errors import ExportError
from .interpret import Package
from .layers import Call, Layers, Names, as_layers
from .lines import guarded
from .model_files import FOLDER, ModelFiles, collect
from .modules import ModuleStack, preserved_state
from .split import split
from .trace import Tracer
from .trace_layers import trace_all
from .comparison import Comparison


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


def export(layers: Union[torch.nn.Module, Layers, Iterable[Tuple[str, Call]]], loss: Any, example: Tuple[torch.Tensor, torch.Tensor],
           path: Union[str, "os.PathLike[str]"], name: Optional[str] = None, *, model: Optional[torch.nn.Module] = None,
           decayed: Optional[Callable[[str, torch.Tensor], bool]] = None, input_limit: Optional[int] = None,
           target_limit: Optional[int] = None, unit: Optional[str] = None,
           units_per_sample: Optional[int] = None, forward: Optional[Call] = None, files: Any = None, base: Optional[str] = None) -> Exported:
    """Writes the package `path` (docs/formats/package.md): the forward and backward graphs of each layer, and the weights.

    layers    the model, which is split by its trace; the result of `motley.split`; or a list of (name, module or function), each
              called with the result of the previous one
    loss      `nn.CrossEntropyLoss()`, `nn.MSELoss()`, their functions, or a function (output, target) -> (sum, count)
    example   (input, target), both with a first dimension of samples; only their shapes and types matter
    model     the module whose state_dict names the parameters; by default names consist of the layer's name and the module's own
    forward   the call of the model, input -> output, if it is not model(input): the layers are compared with it
    decayed   (name, parameter) -> whether weight decay applies; by default to parameters of two or more dimensions
    input_limit, target_limit
              integers are from 0 to below these; by default an embedding or the cross entropy determines them
    files     further files of the trained model: a folder with its tokenizer's files, or the tokenizer or processor of
              transformers. The configuration of a transformers model is always included, and the tokenizer's files if the model
              was loaded from a folder
    base      "int8", "int4" or "nf4": the type of frozen weights of linear layers with 4,096 elements or more; the package
              computes with the quantised values. By default they keep their type

    Training is traced in `train()` mode and evaluation in `eval()` mode; the model's modes and buffers are restored. Raises
    `ExportError`, with the module and the line, for operations and types that packages do not support.
    """
    if isinstance(layers, torch.nn.Module):
        _check_example(example)
        layers = split(layers, example, forward=forward)
    with guarded("the model cannot be read", _INTERNAL_ERROR):
        described = as_layers(layers, model, forward)
        names = Names(described)
        terms = losses.parse(loss)
        _check_example(example)
        model_files = collect(described.model, names, files)
    with contextlib.ExitStack() as held:
        with guarded("the model cannot be read", _INTERNAL_ERROR):
            names.check()
            frozen_tensors = frozen.find_frozen(names, [root for _, root in described.roots], base)
            errors = held.enter_context(frozen.with_float32_values(names, frozen_tensors))
        held.enter_context(preserved_state([root for _, root in described.roots]))
        stack = held.enter_context(ModuleStack(names.modules))
        with guarded("the layers cannot be compared with the model", _INTERNAL_ERROR, stack.path):
            comparison = Comparison(described, names, stack, losses.counted_positions(terms, example[1]))
            comparison.run(example[0], input_limit)
        with guarded("the layers cannot be traced", _INTERNAL_ERROR, stack.path):
            traced = trace_all(described, terms, example, Tracer(names.of, stack, names.memory(), frozen_tensors))
            built = assemble(traced, names, frozen_tensors, terms, decayed or (lambda _, tensor: tensor.dim() >= 2),
                             input_limit, target_limit, unit, units_per_sample)
            package = Package(json.loads(json.dumps(built.package)), built.tensors)
        with guarded("the layer raises on other samples than the example's",
                     "Make it accept all values of the example's kind; integers that are stored as floats may be clamped to "
                     "their range", stack.path):
            difference = check.against_eager(package, described, terms, traced, stack)
            references = reference.references(package, described, terms, traced, stack)
        # The traced values are written; after this block the model has its own values again.
        built = built._replace(tensors={key: tensor.detach() for key, tensor in built.tensors.items()})
    notices = [*comparison.notices, *frozen.notices(base, errors)]
    for notice in notices:
        warnings.warn(notice, ExportWarning, stacklevel=2)
    with guarded("the package cannot be written", "Pass the path of a folder, and a string as name="):
        folder = os.fspath(path)
        built.package["name"] = name or os.path.splitext(os.path.basename(os.path.normpath(folder)))[0]
        built.package["made_by"] = f"motley for Python, torch {torch.__version__}, Python {sys.version.split()[0]}"
        moved = {entry["name"] for layer in built.package["layers"] for kind in ("parameters", "statistics") for entry in layer[kind]}
        _write(folder, built, model_files.for_trained(moved), references)
    return Exported(folder, len(built.package["layers"]), _operations(built.package), difference, tuple(notices))


_INTERNAL_ERROR = "This is an internal error of Motley; joining this layer with its neighbours may avoid it"


def _operations(package: Dict[str, Any]) -> int:
    return sum(len(graph["nodes"]) for graphs in package["graphs"] for key, graph in graphs.items() if key != "memory")


def _check_example(example: Tuple[torch.Tensor, torch.Tensor]) -> None:
    if not (isinstance(example, (tuple, list)) and len(example) == 2 and all(isinstance(t, torch.Tensor) for t in example)):
        raise ExportError("the example is not a pair of tensors",
                          "Pass (input, target), each with a first dimension of samples; pack several inputs into one tensor and "
                          "unpack it in the first layer")
    for what, tensor in zip(("input", "target"), example):
        if tensor.dtype not in (torch.float32, torch.int64):
            raise ExportError(f"the example's {what} is {str(tensor.dtype)[6:]}", "Pass float32 or int64")
        if tensor.dim() < 1 or tensor.size(0) < 1:
            raise ExportError(f"the example's {what} has no samples",
                              "Pass a tensor whose first dimension is that of the samples, with at least one")
    if example[0].size(0) != example[1].size(0):
        raise ExportError(f"the example has {example[0].size(0)} inputs and {example[1].size(0)} targets",
                          "Pass one target for each input")


def _replace(folder: str, new: str) -> None:
    """Replaces `folder` by `new`, and deletes the old folder only afterwards."""
    old = new + ".replaced"
    exists = os.path.lexists(folder)
    if exists:
        os.rename(folder, old)
    try:
        os.rename(new, folder)
    except OSError:
        if exists and not os.path.lexists(folder):
            os.rename(old, folder)
        raise
    if exists:
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


def _write(folder: str, built: Assembled, model_files: ModelFiles, references: List[Dict[str, Any]]) -> None:
    """Atomic: the package is written to a temporary folder next to the target, and renamed when complete."""
    folder = os.path.abspath(folder)
    if os.path.lexists(folder) and not _is_replaceable(folder):
        raise ExportError(f"{folder} exists and is not a package", "Choose another path, or remove it")
    partial = ""
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        partial = tempfile.mkdtemp(prefix=".", suffix=".partial", dir=os.path.dirname(folder))
        file = os.path.join(partial, "weights.safetensors")
        weights.write(file, built.tensors)
        built.package["weights"] = {"file": "weights.safetensors", "bytes": os.path.getsize(file),
                                    "sha256": weights.sha256(file)}
        built.package.update(model_files.write(partial))
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
            raise ExportError(f"{folder} cannot be written: {error.strerror or error}",
                              "Free space, or choose another path; a previous package is unchanged") from error
        raise
