"""Converts the data of a PyTorch script to the formats of docs/formats/data.md."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple, Union

import numpy
import torch

from .errors import MotleyError
from .losses import Loss
from .named import Input, Limit, by_name, check_names, limits
from .padding import Padding
from .recognize import is_array, pair_of
from .values import as_array, as_input, as_target, check_finite, check_integers, check_width, naming


Inputs = Union[numpy.ndarray, Dict[str, numpy.ndarray]]
"""Of all samples: one array, or several by name."""

Pair = Tuple[Inputs, numpy.ndarray]
"""Inputs and targets."""


class Arrays:
    """Samples with one target each: a pair of arrays or tensors, or a dataset of pairs. Several inputs have names."""

    def __init__(self, data: Any, held_out: Any = None, loss: Optional[Loss] = None, pad: Optional[Mapping[str, Any]] = None):
        self._loss = loss
        self._padding = Padding(pad)
        self.inputs, self.targets = self._pair(data)
        self.held_out: Optional[Pair] = None
        if held_out is not None:
            with naming("eval_data"):
                self.held_out = self._in_order(self._pair(held_out))
                self._check_alike(self.held_out)

    def _pair(self, data: Any) -> Pair:
        given, target, has_target = pair_of(data, self._padding)
        if isinstance(given, Mapping):
            check_names(list(given))
        self._padding.check(list(by_name(given)))
        parts = {what: as_array(part, what) for what, part in _named((given, target))}
        for what, array in parts.items():
            if array.ndim == 0:
                raise MotleyError(f"the {what} are a single number. Pass an array whose first dimension is that of the samples")
        *inputs, targets = parts.values()
        for what, array in parts.items():
            if len(array) != len(targets) or len(array) == 0:
                raise MotleyError(f"there are {len(array)} {what} and {len(targets)} targets. Pass one target for each input, and "
                                  "at least one sample")
        for what, array in parts.items():
            if array.size == 0:
                raise MotleyError(f"the {what} have the shape {list(array.shape)} and no elements. Pass samples that are not "
                                  "empty")
        numbers, classes = (self._loss.numbers, self._loss.classes) if self._loss is not None else (False, False)
        made = dict(zip(given, inputs)) if isinstance(given, Mapping) else as_input(inputs[0])
        if isinstance(made, dict) and has_target:
            _check_shifted(made, targets, self._loss.ignored if self._loss is not None else None)
        return made, as_target(targets, numbers, classes)

    def _in_order(self, held_out: Pair) -> Pair:
        """With the inputs in the order of the training data, if they have the same names."""
        inputs, targets = held_out
        if isinstance(self.inputs, dict) and isinstance(inputs, dict) and inputs.keys() == self.inputs.keys():
            return {name: inputs[name] for name in self.inputs}, targets
        return held_out

    def _check_alike(self, held_out: Pair) -> None:
        own_parts, others = dict(_named(self._both())), dict(_named(held_out))
        if list(own_parts) != list(others):
            raise MotleyError(f"it has {', '.join(others)}, and the training data {', '.join(own_parts)}. Use the same inputs")
        for what, own, other in ((what, own, others[what]) for what, own in own_parts.items()):
            if own.shape[1:] != other.shape[1:] or own.dtype != other.dtype:
                raise MotleyError(f"its {what} have shape {list(other.shape[1:])} and type {other.dtype} per sample, but the "
                                  f"training data has {list(own.shape[1:])} and {own.dtype}. Use the same shape and type")

    def __len__(self) -> int:
        return len(self.targets)

    def example(self) -> Tuple[Input, torch.Tensor]:
        """The first four samples as the model receives them: pixels are divided by 255, bytes of targets become integers."""
        if isinstance(self.inputs, dict):
            inputs: Input = {name: _as_named(array[:4]) for name, array in self.inputs.items()}
        else:
            inputs = _as_model(self.inputs[:4], True)
        return inputs, _as_model(self.targets[:4], False)

    def forward(self, model: torch.nn.Module) -> Optional[Callable[[Any], Any]]:
        """The call of the model for these inputs, if the data determines it."""
        return None

    def check(self, input_limit: Limit, target_limit: Optional[int], ignored: Optional[int], finite: bool) -> None:
        """Refuses integers beyond the known limits of the model and, with `finite`, NaN and infinity."""
        known: List[Tuple[str, Optional[int], Optional[int]]] = [
            (name, limit, None) for name, limit in zip(by_name(self.inputs), limits(input_limit, self.inputs))]
        known.append(("targets", target_limit, ignored))
        for pair, prefix in ((self._both(), ""), (self.held_out, "eval_")):
            for (what, array), (name, limit, left_out) in zip(_named(pair) if pair else (), known):
                if finite:
                    check_finite(array, prefix + what)
                if limit is not None:
                    check_integers(array, prefix + what, limit, left_out, self._padding.value(name))
                elif isinstance(self.inputs, dict) and array is not pair[1]:
                    check_width(array, prefix + what)

    def _both(self) -> Pair:
        return self.inputs, self.targets

    def write(self, folder: str) -> Dict[str, Any]:
        """Writes the arrays and returns the keys of `[data]`."""
        os.makedirs(folder, exist_ok=True)
        for name in os.listdir(folder):  # of an earlier call, whose other names or held-out data would be read too
            if name.endswith(".npy"):
                os.remove(os.path.join(folder, name))
        for pair, prefix in ((self._both(), ""), (self.held_out, "eval_")):
            if pair is None:
                continue
            for name, array in by_name(pair[0]).items():
                _save(folder, prefix + (f"inputs.{name}" if name else "inputs"), array)
            _save(folder, prefix + "targets", pair[1])
        return {"kind": "arrays", "path": os.path.abspath(folder)}


class Tokens:
    """A row of tokens: each window of `context` tokens is a sample, and the window shifted by one its target."""

    def __init__(self, data: Any, context: Optional[int]):
        self.tokens = as_array(data, "tokens")
        if self.tokens.dtype.kind not in "iu" or self.tokens.ndim != 1:
            raise MotleyError(f"the data is an array of {self.tokens.dtype} with {self.tokens.ndim} dimensions. "
                              "Pass a one-dimensional array of tokens, or a pair (inputs, targets)")
        if context is None:
            raise MotleyError("a row of tokens needs context=, the number of tokens per sample. Pass it")
        if not isinstance(context, int) or context < 1:
            raise MotleyError(f"context is {context}. Pass the number of tokens per sample, 1 or more")
        if len(self.tokens) <= context:
            raise MotleyError(f"{len(self.tokens)} tokens are too few for one sample of {context} + 1. Pass more tokens, or a "
                              "smaller context=")
        self.context = context

    def __len__(self) -> int:
        return (len(self.tokens) - 1) // self.context

    def example(self) -> Tuple[torch.Tensor, torch.Tensor]:
        window = torch.from_numpy(self.tokens[: self.context + 1].astype(numpy.int64))
        return window[None, :-1], window[None, 1:]

    def forward(self, model: torch.nn.Module) -> Optional[Callable[[Any], Any]]:
        return None

    def check(self, input_limit: Limit, target_limit: Optional[int], ignored: Optional[int], finite: bool) -> None:
        """As `Arrays.check`; a token is input and target."""
        known = [limit for limit in (*limits(input_limit, self.tokens), target_limit) if limit is not None]
        if known:
            check_integers(self.tokens, "tokens", min(known))

    def write(self, folder: str) -> Dict[str, Any]:
        """A file of 32-bit tokens with llm.c's header."""
        os.makedirs(folder, exist_ok=True)
        if len(self.tokens) and not 0 <= int(self.tokens.min()) <= int(self.tokens.max()) < 2 ** 31:
            raise MotleyError("a token is negative or at least 2^31. Number tokens from 0")
        header = numpy.zeros(256, dtype="<i4")
        header[:3] = 20240801, 7, len(self.tokens)
        path = os.path.abspath(os.path.join(folder, "tokens.bin"))
        with open(path, "wb") as file:
            file.write(header.tobytes())
            file.write(self.tokens.astype("<u4").tobytes())
        return {"kind": "tokens", "path": path}


def parse(data: Any, held_out: Any, context: Optional[int], loss: Optional[Loss] = None, pad: Optional[Mapping[str, Any]] = None
          ) -> Union[Arrays, Tokens]:
    """The data that was passed to `train`."""
    if is_array(data) and pad is not None:
        raise MotleyError("pad= is for samples of unequal length, and the data is one array. Leave it out")
    if is_array(data):
        if held_out is not None:
            raise MotleyError("eval_data= was given for a row of tokens, which are held out at their end. Pass data__holdout=, "
                              "the held-out share, instead")
        return Tokens(data, context)
    if context is not None:
        raise MotleyError("context= applies only to a row of tokens, but the data are pairs. Leave it out")
    return Arrays(data, held_out, loss, pad)


def _named(pair: Tuple[Any, Any]) -> Iterator[Tuple[str, Any]]:
    """Inputs and targets with their names in messages."""
    inputs, targets = pair
    for name, part in by_name(inputs).items():
        yield f"inputs[{name!r}]" if isinstance(inputs, Mapping) else "inputs", part
    yield "targets", targets


def _check_shifted(inputs: Dict[str, numpy.ndarray], targets: numpy.ndarray, ignored: Optional[int]) -> None:
    """Refuses labels that are an input's own integers, as transformers takes them, which shifts them itself. Looks at some samples."""
    some = targets[:_COMPARED]
    counted = some != ignored
    if some.dtype.kind not in "iu" or some.ndim < 2 or counted.sum() < _SIGNIFICANT:
        return
    for name, array in inputs.items():
        if array.dtype.kind in "iu" and array.shape == targets.shape and bool((array[:_COMPARED] == some)[counted].all()):
            raise MotleyError(f"the labels equal inputs[{name!r}]: transformers shifts labels by one token, and Motley does not. "
                              "Pass the inputs without their last token, such as {'input_ids': ids[:, :-1]}, and the labels "
                              "without their first; for an autoencoder, pass a pair of inputs and targets")


_COMPARED, _SIGNIFICANT = 256, 16
"""Samples that are compared, and the least labels that are no accident."""


def _save(folder: str, name: str, array: numpy.ndarray) -> None:
    numpy.save(os.path.join(folder, f"{name}.npy"), numpy.ascontiguousarray(array))


def _as_named(array: numpy.ndarray) -> torch.Tensor:
    """An input that has a name keeps its type. Bytes are pixels where a sample has three dimensions, else integers."""
    if array.dtype.kind == "b":
        return torch.from_numpy(numpy.array(array, order="C"))
    return _as_model(array, array.ndim == 4)


def _as_model(array: numpy.ndarray, input: bool) -> torch.Tensor:
    tensor = torch.from_numpy(numpy.array(array, order="C"))  # mapped files are read-only
    if tensor.dtype == torch.uint8 and input:
        return tensor.float() / 255
    return tensor if tensor.dtype == torch.float32 else tensor.long()
