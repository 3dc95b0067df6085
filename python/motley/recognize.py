"""Recognizes the type of a script's data, and extracts inputs and targets."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Dict, Iterable, List, NoReturn, Tuple

import numpy
import torch

from .errors import MotleyError
from .padding import TARGETS, Padding
from .values import PAD, as_array

_ACCEPTED = "Pass (inputs, targets), a dataset of such pairs, or a row of tokens"

_NAME = "Several inputs are a dictionary with the names by which the model takes them, such as {'input_ids': a, 'attention_mask': b}"

_PACK_TARGETS = "A loss takes one tensor: pack several into one, and unpack it in a custom loss, a function (output, target) -> (sum, count)"

Inputs = Any
"""An array, a tensor or a list, or a dictionary of them by name."""


def is_array(part: Any) -> bool:
    return isinstance(part, (torch.Tensor, numpy.ndarray))


def pair_of(data: Any, padding: Padding) -> Tuple[Inputs, Any, bool]:
    """Inputs and targets as arrays, tensors or lists, and whether the targets were among the names of the data. Several inputs are a
    dictionary of them by name."""
    if isinstance(data, (tuple, list)) and len(data) == 2 and all(is_array(part) for part in data):
        return data[0], data[1], False
    _refuse_others(data)
    has_target = isinstance(data, Mapping)
    if has_target:
        data = _pair_in(data, f"the data is a {type(data).__name__}")
    if isinstance(data, tuple):
        if len(data) != 2:
            raise MotleyError(f"the data is a tuple of {len(data)}. {_ACCEPTED}; {_NAME[0].lower()}{_NAME[1:]}")
        return _columns(data[0], padding), _column(data[1], "targets", padding, "targets"), has_target
    return _stacked(data, padding)


def _pair_in(parts: "Mapping[Any, Any]", what: str) -> Tuple[Any, Any]:
    """Inputs by name, and the target, which has one of the usual names."""
    target = next((name for word in TARGETS for name in parts if isinstance(name, str) and name.lower() == word), None)
    if target is None or len(parts) < 2:
        refuse_keys(what, parts)
    return {name: part for name, part in parts.items() if name != target}, parts[target]


def _columns(inputs: Any, padding: Padding) -> Inputs:
    padding.check(list(inputs) if isinstance(inputs, Mapping) else [""])
    if isinstance(inputs, Mapping):
        return {name: _column(part, f"inputs[{name!r}]", padding, name) for name, part in inputs.items()}
    return _column(inputs, "inputs", padding, "")


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
    if not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
        also = "" if data is None or isinstance(data, (int, float)) else ". Convert an iterator to a list, e.g. list(data)"
        raise MotleyError(f"{kind} is not a supported type of data. {_ACCEPTED}{also}")


def refuse_keys(what: str, keys: Iterable[Any]) -> NoReturn:
    """Refuses data whose parts have names, none of which is that of a target."""
    names = [str(key) for key in keys]
    found = f"{what} with the keys {_listed(names)}" if names else f"{what} without keys"
    usual = ", ".join(repr(word) for word in TARGETS[:4])
    raise MotleyError(f"{found}, and not of inputs with a target, whose usual names are {usual}. Rename the target, or pass a "
                      "pair of the inputs by name and the targets")


def _target_and_inputs(names: List[str]) -> Tuple[str, List[str]]:
    """The likely name of the target, and those of the inputs."""
    target = next((name for word in TARGETS for name in names if name.lower() == word), names[-1] if names else "")
    return target, [name for name in names if name != target]


def _listed(names: List[str]) -> str:
    most = 8
    text = ", ".join(repr(name) for name in names[:most])
    return text + (f" and {len(names) - most} more" if len(names) > most else "")


def _stacked(dataset: Any, padding: Padding) -> Tuple[Inputs, numpy.ndarray, bool]:
    """The samples of a map-style dataset, and whether their targets are among names."""
    kind = type(dataset).__name__
    try:
        count = len(dataset)
    except Exception as error:
        raise MotleyError(f"the number of samples of the {kind} is unknown: {type(error).__name__}: {error}. {_ACCEPTED}") from error
    if count == 0:
        raise MotleyError(f"the {kind} has no samples. Pass at least one")
    inputs: Dict[Any, List[numpy.ndarray]] = {}
    targets: List[numpy.ndarray] = []
    named = has_target = False
    for k in range(count):
        try:
            sample = dataset[k]
        except Exception as error:
            raise MotleyError(f"sample {k} of the {kind} cannot be read: {type(error).__name__}: {error}. {_ACCEPTED}") from error
        if isinstance(sample, Mapping):
            has_target = True
            sample = _pair_in(sample, f"the dataset's sample {k} is a {type(sample).__name__}")
        _check_sample(sample, k)
        named = named or isinstance(sample[0], Mapping)
        parts = dict(sample[0]) if isinstance(sample[0], Mapping) else {"": sample[0]}
        if k > 0 and parts.keys() != inputs.keys():
            raise MotleyError(f"the dataset's sample {k} has {_inputs_listed(parts)}, and sample 0 {_inputs_listed(inputs)}. "
                              "Pass the same inputs in all samples")
        for name, part in parts.items():
            inputs.setdefault(name, []).append(_value(part, f"inputs[{name!r}]" if named else "inputs", k))
        targets.append(_value(sample[1], "targets", k))
    padding.check(list(inputs))
    stacked = {name: _stack(values, f"inputs[{name!r}]" if named else "inputs", padding, name) for name, values in inputs.items()}
    return stacked if named else stacked[""], _stack(targets, "targets", padding, "targets"), has_target


def _inputs_listed(inputs: Iterable[Any]) -> str:
    names = [str(name) for name in inputs if name != ""]
    return f"inputs by the names {_listed(names)}" if names else "one input without a name"


def _check_sample(sample: Any, k: int) -> None:
    if is_array(sample):
        raise MotleyError(f"the dataset's sample {k} is one {type(sample).__name__}, not a pair of input and target. "
                          "Pass pairs; for an autoencoder the target is the input")
    if not isinstance(sample, (tuple, list)):
        raise MotleyError(f"the dataset's sample {k} is a {type(sample).__name__}, not a pair of input and target. Pass pairs "
                          "of tensors")
    if len(sample) != 2:
        raise MotleyError(f"the dataset's sample {k} has {len(sample)} parts and is not a pair of input and target. Pass pairs "
                          f"of tensors. {_NAME}")


def _column(part: Any, what: str, padding: Padding, name: str) -> Any:
    """All inputs, or all targets."""
    if is_array(part):
        return part
    _refuse_several(part, what)
    if isinstance(part, list):
        if not part:
            return numpy.zeros(0, dtype=numpy.float32)
        return _stack([_value(each, what, k) for k, each in enumerate(part)], what, padding, name)
    return as_array(part, what)


def _refuse_several(part: Any, what: str) -> None:
    remedy = _PACK_TARGETS if what.startswith("targets") else _NAME
    if isinstance(part, Mapping):
        raise MotleyError(f"the {what} are a {type(part).__name__} with the keys {_listed([str(key) for key in part])}. {remedy}")
    if isinstance(part, tuple) and any(is_array(each) for each in part):
        raise MotleyError(f"the {what} are {len(part)} tensors. {remedy}")


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


def _batches(values: List[numpy.ndarray]) -> str:
    """A hint if the values may be a loader's batches, of which the last one is smaller."""
    last = values[-1].shape
    alike = {value.shape for value in values[:-1]}
    one = next(iter(alike))
    smaller = len(alike) == 1 and len(one) > 1 and one[1:] == last[1:] and last[0] < one[0]
    return "If they are the batches of a loader, pass its .dataset. " if smaller else ""


def _stack(values: List[numpy.ndarray], what: str, padding: Padding, name: str) -> numpy.ndarray:
    padded = padding.stacked(values, name)
    if padded is not None:
        return padded
    shapes = {}
    for k, value in enumerate(values):
        shapes.setdefault(value.shape, k)
    if len(shapes) > 1:
        (one, first), (other, second) = list(shapes.items())[:2]
        raise MotleyError(f"the dataset's samples differ in shape: the {what} of sample {first} are {list(one)}, and of sample "
                          f"{second} {list(other)}. {_batches(values)}{PAD}")
    return numpy.stack(values)
