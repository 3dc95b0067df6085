"""Data as Motley reads it (docs/formats/data.md), from what a PyTorch script has."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional, Sequence, Tuple

import numpy
import torch

from .errors import MotleyError

_INTEGERS = {"uint8", "int32", "int64"}


class Arrays:
    """Samples with a target each: a pair of arrays or tensors, or a dataset of pairs."""

    def __init__(self, data: Any, held_out: Any = None):
        self.inputs, self.targets = _pair(data)
        self.held_out = _pair(held_out) if held_out is not None else None

    def example(self) -> Tuple[torch.Tensor, torch.Tensor]:
        """A few samples as the model gets them: bytes become numbers from 0 to 1 or, for a loss of classes, integers."""
        return _as_model(self.inputs[:4], True), _as_model(self.targets[:4], False)

    def write(self, folder: str) -> Dict[str, Any]:
        """Writes the arrays and gives the keys of `[data]`."""
        os.makedirs(folder, exist_ok=True)
        parts = {"inputs": self.inputs, "targets": self.targets}
        if self.held_out is not None:
            parts.update(zip(("eval_inputs", "eval_targets"), self.held_out))
        for name, array in parts.items():
            numpy.save(os.path.join(folder, f"{name}.npy"), numpy.ascontiguousarray(array))
        return {"kind": "arrays", "path": os.path.abspath(folder)}


class Tokens:
    """One long row of tokens, of which windows of `context` are samples and the next ones their targets."""

    def __init__(self, data: Any, context: Optional[int]):
        self.tokens = _array(data)
        if self.tokens.dtype.kind not in "iu" or self.tokens.ndim != 1:
            raise MotleyError(f"the data is an array of {self.tokens.dtype} with {self.tokens.ndim} dimensions. "
                              "Give a row of tokens, or a pair (inputs, targets)")
        if context is None:
            raise MotleyError("a row of tokens needs context=, how many a sample has. Pass it")
        if not isinstance(context, int) or context < 1:
            raise MotleyError(f"context is {context}. Give how many tokens a sample has, 1 or more")
        if len(self.tokens) <= context:
            raise MotleyError(f"there are {len(self.tokens)} tokens, too few for one sample of {context} + 1. Give more, or less context=")
        self.context = context

    def example(self) -> Tuple[torch.Tensor, torch.Tensor]:
        window = torch.from_numpy(self.tokens[: self.context + 1].astype(numpy.int64))
        return window[None, :-1], window[None, 1:]

    def write(self, folder: str) -> Dict[str, Any]:
        """A file of 32-bit tokens with llm.c's header."""
        os.makedirs(folder, exist_ok=True)
        if len(self.tokens) and not 0 <= int(self.tokens.min()) <= int(self.tokens.max()) < 2 ** 31:
            raise MotleyError("a token is below 0 or above 2^31. Number tokens from 0")
        header = numpy.zeros(256, dtype="<i4")
        header[:3] = 20240801, 7, len(self.tokens)
        path = os.path.abspath(os.path.join(folder, "tokens.bin"))
        with open(path, "wb") as file:
            file.write(header.tobytes())
            file.write(self.tokens.astype("<u4").tobytes())
        return {"kind": "tokens", "path": path}


def understand(data: Any, held_out: Any, context: Optional[int]) -> Any:
    """What `train` was given as its data: `Arrays` or `Tokens`."""
    if isinstance(data, (torch.Tensor, numpy.ndarray)):
        if held_out is not None:
            raise MotleyError("held-out data of tokens is their end. Pass data__holdout=, its share, in place of eval_data=")
        return Tokens(data, context)
    return Arrays(data, held_out)


def _pair(data: Any) -> Tuple[numpy.ndarray, numpy.ndarray]:
    if not (isinstance(data, (tuple, list)) and len(data) == 2 and all(isinstance(d, (torch.Tensor, numpy.ndarray)) for d in data)):
        data = _stacked(data)
    inputs, targets = (_array(part) for part in data)
    if len(inputs) != len(targets) or len(inputs) == 0:
        raise MotleyError(f"there are {len(inputs)} inputs and {len(targets)} targets. Give as many targets as inputs, at least one")
    return inputs, targets


def _stacked(dataset: Any) -> Sequence[numpy.ndarray]:
    """The samples of a map-style dataset."""
    if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
        raise MotleyError(f"{type(dataset).__name__} is no data that can be written. Give (inputs, targets), a dataset of such pairs, "
                          "or a row of tokens")
    samples = [dataset[k] for k in range(len(dataset))]
    if not samples or any(not isinstance(s, (tuple, list)) or len(s) != 2 for s in samples):
        raise MotleyError("the dataset has no samples, or one that is no pair of input and target. Give pairs of tensors")
    try:
        return [numpy.stack([_array(sample[k]) for sample in samples]) for k in (0, 1)]
    except ValueError as error:
        raise MotleyError(f"the dataset's samples differ in shape: {error}. Give all the same") from error


def _array(part: Any) -> numpy.ndarray:
    array = part.detach().cpu().numpy() if isinstance(part, torch.Tensor) else numpy.asarray(part)
    if array.dtype == numpy.float64:
        array = array.astype(numpy.float32)
    elif array.dtype.kind in "biu" and array.dtype.name not in _INTEGERS:
        array = array.astype(numpy.int64)
    if array.dtype.name not in _INTEGERS | {"float32"}:
        raise MotleyError(f"the data has the type {array.dtype}. Give float32, uint8, int32 or int64")
    return array


def _as_model(array: numpy.ndarray, input: bool) -> torch.Tensor:
    tensor = torch.from_numpy(numpy.ascontiguousarray(array))
    if tensor.dtype == torch.uint8 and input:
        return tensor.float() / 255
    return tensor if tensor.dtype == torch.float32 else tensor.long()
