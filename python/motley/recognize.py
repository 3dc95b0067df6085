"""Recognizes the type of a script's data, and extracts inputs and targets."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Iterable, List, NoReturn, Sequence, Tuple

import numpy
import torch

from .errors import MotleyError
from .values import PAD, as_array

_ACCEPTED = "Pass (inputs, targets), a dataset of such pairs, or a row of tokens"

_PACK = ("A model takes one tensor: pack several into one, e.g. torch.stack([a, b], 1), and unpack it in the first layer "
         "(docs/python.md, \"What is refused\")")

_PACK_TARGETS = "A loss takes one tensor: pack several into one, and unpack it in a custom loss, a function (output, target) -> (sum, count)"

_TARGETS = ("labels", "label", "targets", "target", "y", "label_ids")
"""Common names of targets."""


def is_array(part: Any) -> bool:
    return isinstance(part, (torch.Tensor, numpy.ndarray))


def pair_of(data: Any) -> Tuple[Any, Any]:
    """Inputs and targets as arrays, tensors or lists."""
    if isinstance(data, (tuple, list)) and len(data) == 2 and all(is_array(part) for part in data):
        return data[0], data[1]
    _refuse_others(data)
    if isinstance(data, tuple):
        if len(data) != 2:
            raise MotleyError(f"the data is a tuple of {len(data)}. {_ACCEPTED}; {_PACK[0].lower()}{_PACK[1:]}")
        inputs, targets = (_column(part, what) for part, what in zip(data, ("inputs", "targets")))
        return inputs, targets
    return _stacked(data)


def _refuse_others(data: Any) -> None:
    """Refuses data with columns, batches or splits instead of samples."""
    kind = type(data).__name__
    library = type(data).__module__.partition(".")[0]
    if isinstance(data, (str, bytes, os.PathLike)):
        raise MotleyError(f"the data is a {kind}, probably a path. Pass its content: numpy.load(path, mmap_mode='r') maps an "
                          "array without reading it, and `motley train` reads files by data.path")
    if isinstance(data, torch.utils.data.DataLoader):
        batches = f", with global_batch={data.batch_size}" if data.batch_size else ""
        raise MotleyError(f"the data is a {kind}, but Motley forms its own batches, in another order each epoch. Pass "
                          f"loader.dataset{batches}; the work of a collate_fn or a sampler belongs in the dataset")
    if library in ("pandas", "polars", "pyarrow") and hasattr(data, "columns"):
        names = [str(name) for name in getattr(data, "column_names", data.columns)]
        target, inputs = _target_and_inputs(names)
        example = f", e.g. (torch.tensor(df[{inputs}].to_numpy()), torch.tensor(df[{target!r}].to_numpy()))" if inputs else ", of inputs and targets"
        raise MotleyError(f"the data is a {kind} with the columns {_listed(names)}. Pass a pair of tensors{example}")
    if isinstance(data, Mapping):
        splits = [str(key) for key, value in data.items() if not is_array(value) and hasattr(value, "column_names")]
        if splits:
            raise MotleyError(f"the data is a {kind} with the splits {_listed(splits)}. Pass pairs from one split, and from "
                              "another as eval_data=")
        refuse_keys(f"the data is a {kind}", data, "data[{!r}]", "")
    if hasattr(data, "column_names") and library == "datasets" and hasattr(data, "__len__"):
        refuse_keys(f"the data is a {kind}", data.column_names, "d[{!r}]", ", where d = data.with_format('torch')[:]")
    if not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
        also = "" if data is None or isinstance(data, (int, float)) else ". Convert an iterator to a list, e.g. list(data)"
        raise MotleyError(f"{kind} is not a supported type of data. {_ACCEPTED}{also}")


def refuse_keys(what: str, keys: Iterable[Any], access: str, where: str) -> NoReturn:
    """Refuses data whose parts have names, with an example of a pair."""
    names = [str(key) for key in keys]
    target, inputs = _target_and_inputs(names)
    found = f"{what} with the keys {_listed(names)}" if names else f"{what} without keys"
    example = f"({access.format(inputs[0])}, {access.format(target)}){where}" if inputs else "(inputs, targets)"
    more = f". {_PACK}" if len(inputs) > 1 else ""
    raise MotleyError(f"{found}. Pass a pair of input and target, e.g. {example}{more}")


def _target_and_inputs(names: List[str]) -> Tuple[str, List[str]]:
    """The likely name of the target, and those of the inputs."""
    target = next((name for word in _TARGETS for name in names if name.lower() == word), names[-1] if names else "")
    return target, [name for name in names if name != target]


def _listed(names: List[str]) -> str:
    most = 8
    text = ", ".join(repr(name) for name in names[:most])
    return text + (f" and {len(names) - most} more" if len(names) > most else "")


def _stacked(dataset: Any) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """The samples of a map-style dataset."""
    kind = type(dataset).__name__
    try:
        count = len(dataset)
    except Exception as error:
        raise MotleyError(f"the number of samples of the {kind} is unknown: {type(error).__name__}: {error}. {_ACCEPTED}") from error
    if count == 0:
        raise MotleyError(f"the {kind} has no samples. Pass at least one")
    inputs: List[numpy.ndarray] = []
    targets: List[numpy.ndarray] = []
    for k in range(count):
        try:
            sample = dataset[k]
        except Exception as error:
            raise MotleyError(f"sample {k} of the {kind} cannot be read: {type(error).__name__}: {error}. {_ACCEPTED}") from error
        _check_sample(sample, k)
        inputs.append(_value(sample[0], "inputs", k))
        targets.append(_value(sample[1], "targets", k))
    return _stack(inputs, "inputs"), _stack(targets, "targets")


def _check_sample(sample: Any, k: int) -> None:
    if isinstance(sample, Mapping):
        refuse_keys(f"the dataset's samples are not pairs: sample {k} is a {type(sample).__name__}", sample, "s[{!r}]",
                    " of each sample s: [(…, …) for s in data]")
    if is_array(sample):
        raise MotleyError(f"the dataset's sample {k} is one {type(sample).__name__}, not a pair of input and target. "
                          "Pass pairs; for an autoencoder the target is the input")
    if not isinstance(sample, (tuple, list)):
        raise MotleyError(f"the dataset's sample {k} is a {type(sample).__name__}, not a pair of input and target. Pass pairs "
                          "of tensors")
    if len(sample) != 2:
        raise MotleyError(f"the dataset's sample {k} has {len(sample)} parts and is not a pair of input and target. Pass pairs "
                          f"of tensors. {_PACK}")


def _column(part: Any, what: str) -> Any:
    """All inputs, or all targets."""
    if is_array(part):
        return part
    _refuse_several(part, what)
    if isinstance(part, list):
        if not part:
            return numpy.zeros(0, dtype=numpy.float32)
        return _stack([_value(each, what, k) for k, each in enumerate(part)], what)
    return as_array(part, what)


def _refuse_several(part: Any, what: str) -> None:
    pack = _PACK_TARGETS if what.startswith("targets") else _PACK
    if isinstance(part, Mapping):
        raise MotleyError(f"the {what} are a {type(part).__name__} with the keys {_listed([str(key) for key in part])}. {pack}")
    if isinstance(part, tuple) and any(is_array(each) for each in part):
        raise MotleyError(f"the {what} are {len(part)} tensors. {pack}")


def _value(part: Any, what: str, k: int) -> numpy.ndarray:
    """The input or the target of sample k."""
    is_list_of_arrays = isinstance(part, list) and part and all(is_array(each) for each in part)
    _refuse_several(tuple(part) if is_list_of_arrays else part, f"{what} of sample {k}")
    pil = sys.modules.get("PIL.Image")
    if pil is not None and isinstance(part, pil.Image):
        return _from_image(part, what, k)
    return as_array(part, what)


def _from_image(image: Any, what: str, k: int) -> numpy.ndarray:
    """An image as bytes in the layout of torchvision's to_tensor; Motley divides bytes of inputs by 255. A mask is integers."""
    if what == "targets":
        if image.mode in ("L", "P", "1", "I", "I;16"):
            return as_array(numpy.asarray(image).astype(numpy.int64), what)
        raise MotleyError(f"the target of sample {k} is an image of mode {image.mode}. Convert it to a tensor, or to a mask of "
                          "mode L")
    if image.mode not in ("L", "LA", "RGB", "RGBA", "YCbCr", "HSV", "LAB"):
        raise MotleyError(f"sample {k} is an image of mode {image.mode}, whose values are not colours. Pass "
                          "image.convert(\"RGB\"), or \"L\"")
    array = numpy.asarray(image)
    return array[None] if array.ndim == 2 else numpy.ascontiguousarray(array.transpose(2, 0, 1))


def _stack(values: Sequence[numpy.ndarray], what: str) -> numpy.ndarray:
    shapes = {}
    for k, value in enumerate(values):
        shapes.setdefault(value.shape, k)
    if len(shapes) > 1:
        (one, first), (other, second) = list(shapes.items())[:2]
        raise MotleyError(f"the dataset's samples differ in shape: the {what} of sample {first} are {list(one)}, and of sample {second} {list(other)}. {PAD}")
    return numpy.stack(values)
