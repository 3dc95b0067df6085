"""`motley.export`: writes a model as a package."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import warnings
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple, Union

import torch

from . import empty_model, folder_model, losses, memory_limit, reference, unread, weights
from .assemble import Assembled
from .errors import ExportError
from .folder_weights import FolderWeights
from .layers import Call, Layers, Names, as_layers
from .lines import guarded
from .model_files import FOLDER, ModelFiles, collect
from .named import Input, Limit, by_name, check_names
from .split import split
from .smaller_comparison import Export, compare_smaller
from .verified_package import INTERNAL_ERROR, Options, verified_package


class Exported(NamedTuple):
    """The package that `export` wrote, and the result of its comparison with PyTorch."""

    path: str
    """The package's folder."""
    layers: int
    """The number of layers, which is the largest number of stages."""
    operations: int
    """The number of operations in the package's graphs; equal layers count once."""
    largest_difference: float
    """Largest relative difference from eager PyTorch, over loss and gradients; 0 means equal to the last bit."""
    notices: Tuple[str, ...] = ()
    """Notices about parts that were not compared with the model, are not trained or were rounded; also issued as warnings."""


class ExportWarning(UserWarning):
    """A notice about a package, e.g. that there was no model to compare it with."""


def export(layers: Union[torch.nn.Module, Layers, Iterable[Tuple[str, Call]], None] = None, loss: Any = None,
           example: Optional[Tuple[Input, torch.Tensor]] = None,
           path: Union[str, "os.PathLike[str]", None] = None, name: Optional[str] = None, *, model: Optional[torch.nn.Module] = None,
           decayed: Optional[Callable[[str, torch.Tensor], bool]] = None, input_limit: Limit = None,
           target_limit: Optional[int] = None, unit: Optional[str] = None,
           units_per_sample: Optional[int] = None, forward: Optional[Call] = None, files: Any = None, base: Optional[str] = None,
           folder: Union[str, "os.PathLike[str]", None] = None, tokens: Optional[int] = None, memory: Optional[float] = None) -> Exported:
    """Writes the package `path` (docs/formats/package.md): the forward and backward graphs of each layer, and the weights.

    layers    the model, which is split by its trace; the result of `motley.split`; or a list of (name, module or function), each
              called with the result of the previous one
    loss      `nn.CrossEntropyLoss()`, `nn.MSELoss()`, their functions, or a function (output, target) -> (sum, count)
    example   (input, target), both with a first dimension of samples; only their shapes and types matter. Several
              inputs are a dictionary by the names of the model's arguments
    model     the module whose state_dict names the parameters; by default names consist of the layer's name and the module's own
    forward   the call of the model, input -> output, if it is not model(input): the layers are compared with it
    decayed   (name, parameter) -> whether weight decay applies; by default to parameters of two or more dimensions
    input_limit, target_limit
              integers are from 0 to below these; by default an embedding or the cross entropy determines them. Of named inputs a
              dictionary
    files     further files of the trained model: a folder with its tokenizer's files, or the tokenizer or processor of
              transformers. The configuration of a transformers model is always included, and the tokenizer's files if the model
              was loaded from a folder
    base      "int8", "int4" or "nf4": the type of frozen weights of linear layers with 4,096 elements or more; the package
              computes with the quantised values. By default they keep their type
    folder    the folder with the weights of a model that was created in `motley.without_weights()`, in safetensors files, which
              are read in pieces. Without layers, the model is that of the Hugging Face folder, by its config.json
    tokens    the number of tokens of a sample, for such a folder without an example. The loss is the cross entropy by default
    memory    the limit in GiB for the comparison of one layer with PyTorch, by default 0.9 and the largest tensor, with
              `folder` 0.6 and the largest stored tensor. With `folder`, a layer that needs more is compared with fewer tokens or ids
              or not at all, with a notice; otherwise it is compared with fewer samples

    >>> motley.export(model, nn.CrossEntropyLoss(), (images[:2], labels[:2]), "digits.motley")      # [2, 1, 8, 8] and [2]

    Training is traced in `train()` mode and evaluation in `eval()` mode; the model's modes and buffers are restored.

    Returns an `Exported`; its notices are issued as `ExportWarning` too. Raises `ExportError`, with the module and the line, for
    operations and types that packages do not support, and if the package computes something else than the model.
    """
    if path is None:
        raise ExportError("the package has no path", 'Pass path=, e.g. path="model.motley"')
    memory_limit.check(memory)
    opened_notices: Tuple[str, ...] = ()
    is_opened = layers is None
    if layers is None:
        layers, loss, example, opened_notices = folder_model.open_folder(folder, loss, example, tokens)
    if example is None or loss is None:
        raise ExportError(f"there is no {'loss' if loss is None else 'example'}", "Pass the loss, and example=(input, target)")
    by_hand = not isinstance(layers, (torch.nn.Module, Layers))
    with guarded("the model cannot be read", INTERNAL_ERROR):
        _check_example(example)
    if isinstance(layers, torch.nn.Module):
        empty_model.check_buffers([layers])
        layers = split(layers, example, forward=forward)
    with guarded("the model cannot be read", INTERNAL_ERROR):
        described = as_layers(layers, model, forward).taking(example[0])
        if by_hand:
            described = unread.with_notice(described, example[0])
        names = Names(described)
        terms = losses.parse(loss)
        model_files = collect(described.model, names, files)
    stored = FolderWeights(described, names, folder, base)
    options = Options(decayed or Options().decayed, input_limit, target_limit, unit, units_per_sample, base, memory, _existing(path))
    verified = verified_package(described, terms, example, names, stored, options)
    built = verified.built
    moved = {entry["name"] for layer in built.package["layers"] for kind in ("parameters", "statistics") for entry in layer[kind]}
    model_files = model_files.for_trained(moved)
    smaller, difference = compare_smaller(verified, Export(described, terms, example, names, stored, options,
                                                           os.fspath(folder) if is_opened and folder is not None else None))
    notices = [*opened_notices, *verified.notices, *smaller, *model_files.notices]
    for notice in notices:
        warnings.warn(notice, ExportWarning, stacklevel=2)
    with guarded("the package cannot be written", "Pass the path of a folder, and a string as name="):
        written = os.fspath(path)
        built.package["name"] = name or os.path.splitext(os.path.basename(os.path.normpath(written)))[0]
        built.package["made_by"] = f"motley for Python, torch {torch.__version__}, Python {sys.version.split()[0]}"
        _write(written, built, model_files, verified.references, stored.sources)
    return Exported(written, len(built.package["layers"]), _operations(built.package), max(verified.largest_difference, difference),
                    tuple(notices))


def _existing(path: Any) -> Optional[str]:
    """The nearest existing folder above the package, whose disk has space for the weights of a layer."""
    with contextlib.suppress(TypeError, ValueError):
        folder = os.path.dirname(os.path.abspath(os.fspath(path)))
        while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
            folder = os.path.dirname(folder)
        return folder if os.access(folder, os.W_OK) else None
    return None


def _operations(package: Dict[str, Any]) -> int:
    return sum(len(graph["nodes"]) for graphs in package["graphs"] for key, graph in graphs.items() if key != "memory")


def _check_example(example: Tuple[Input, torch.Tensor]) -> None:
    if not (isinstance(example, (tuple, list)) and len(example) == 2
            and all(isinstance(t, torch.Tensor) for t in (*by_name(example[0]).values(), example[1]))):
        raise ExportError("the example is not a pair of tensors",
                          "Pass (input, target), each with a first dimension of samples; several inputs are a dictionary of "
                          "tensors by name")
    named = isinstance(example[0], Mapping)
    if named:
        check_names(list(example[0]))
    inputs = {f"input{f' {name!r}' if named else ''}": tensor for name, tensor in by_name(example[0]).items()}
    for what, tensor in {**inputs, "target": example[1]}.items():
        may_be_bool = named and what != "target"
        if tensor.dtype not in (torch.float32, torch.int64) and not (may_be_bool and tensor.dtype == torch.bool):
            raise ExportError(f"the example's {what} is {str(tensor.dtype)[6:]}", "Pass float32 or int64" + (", or bool" if may_be_bool else ""))
        if tensor.dim() < 1 or tensor.size(0) < 1:
            raise ExportError(f"the example's {what} has no samples",
                              "Pass a tensor whose first dimension is that of the samples, with at least one")
    for tensor in inputs.values():
        if tensor.size(0) != example[1].size(0):
            raise ExportError(f"the example has {tensor.size(0)} inputs and {example[1].size(0)} targets",
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


def _as_stored(built: Assembled, sources: Mapping[str, weights.Stored]) -> Dict[str, torch.Tensor]:
    """Trained parameters in the types of their files, which readers convert to float32."""
    trained = {entry["name"] for layer in built.package["layers"] for entry in layer["parameters"]}
    return {name: torch.empty(source.shape, dtype=source.dtype, device="meta") for name, source in sources.items() if name in trained}


def _write(folder: str, built: Assembled, model_files: ModelFiles, references: List[Dict[str, Any]],
           sources: Mapping[str, weights.Stored]) -> None:
    """Atomic: the package is written to a temporary folder next to the target, and renamed when complete. `sources`: [name] the
    stored values of tensors that have none."""
    folder = os.path.abspath(folder)
    if os.path.lexists(folder) and not _is_replaceable(folder):
        raise ExportError(f"{folder} exists and is not a package", "Choose another path, or remove it")
    partial = ""
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        partial = tempfile.mkdtemp(prefix=".", suffix=".partial", dir=os.path.dirname(folder))
        file = os.path.join(partial, "weights.safetensors")
        written_hash = weights.write(file, {**built.tensors, **_as_stored(built, sources)}, sources=sources)
        built.package["weights"] = {"file": "weights.safetensors", "bytes": os.path.getsize(file), "sha256": written_hash}
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
