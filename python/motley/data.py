"""Converts the data of a PyTorch script to the formats of docs/formats/data.md."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional, Tuple, Union

import numpy
import torch

from .errors import MotleyError
from .losses import Loss
from .recognize import is_array, pair_of
from .values import as_array, as_input, as_target, check_finite, check_integers, naming


class Arrays:
    """Samples with one target each: a pair of arrays or tensors, or a dataset of pairs."""

    def __init__(self, data: Any, held_out: Any = None, loss: Optional[Loss] = None):
        self._loss = loss
        self.inputs, self.targets = self._pair(data)
        self.held_out: Optional[Tuple[numpy.ndarray, numpy.ndarray]] = None
        if held_out is not None:
            with naming("eval_data"):
                self.held_out = self._pair(held_out)
                self._check_alike(self.held_out)

    def _pair(self, data: Any) -> Tuple[numpy.ndarray, numpy.ndarray]:
        parts = []
        for part, what in zip(pair_of(data), ("inputs", "targets")):
            parts.append(as_array(part, what))
            if parts[-1].ndim == 0:
                raise MotleyError(f"the {what} are a single number. Pass an array whose first dimension is that of the samples")
        inputs, targets = parts
        if len(inputs) != len(targets) or len(inputs) == 0:
            raise MotleyError(f"there are {len(inputs)} inputs and {len(targets)} targets. Pass one target for each input, and "
                              "at least one sample")
        for array, what in ((inputs, "inputs"), (targets, "targets")):
            if array.size == 0:
                raise MotleyError(f"the {what} have the shape {list(array.shape)} and no elements. Pass samples that are not "
                                  "empty")
        numbers, classes = (self._loss.numbers, self._loss.classes) if self._loss is not None else (False, False)
        return as_input(inputs), as_target(targets, numbers, classes)

    def _check_alike(self, held_out: Tuple[numpy.ndarray, numpy.ndarray]) -> None:
        for what, own, other in zip(("inputs", "targets"), (self.inputs, self.targets), held_out):
            if own.shape[1:] != other.shape[1:] or own.dtype != other.dtype:
                raise MotleyError(f"its {what} have shape {list(other.shape[1:])} and type {other.dtype} per sample, but the "
                                  f"training data has {list(own.shape[1:])} and {own.dtype}. Use the same shape and type")

    def __len__(self) -> int:
        return len(self.inputs)

    def example(self) -> Tuple[torch.Tensor, torch.Tensor]:
        """The first four samples as the model receives them: bytes of inputs are divided by 255, those of targets become
        integers."""
        return _as_model(self.inputs[:4], True), _as_model(self.targets[:4], False)

    def check(self, input_limit: Optional[int], target_limit: Optional[int], ignored: Optional[int], finite: bool) -> None:
        """Refuses integers beyond the known limits of the model and, with `finite`, NaN and infinity."""
        for pair, prefix in ((self._both(), ""), (self.held_out, "eval_")):
            for what, array, limit, left_out in zip(("inputs", "targets"), pair or (), (input_limit, target_limit), (None, ignored)):
                if finite:
                    check_finite(array, prefix + what)
                if limit is not None:
                    check_integers(array, prefix + what, limit, left_out)

    def _both(self) -> Tuple[numpy.ndarray, numpy.ndarray]:
        return self.inputs, self.targets

    def write(self, folder: str) -> Dict[str, Any]:
        """Writes the arrays and returns the keys of `[data]`."""
        os.makedirs(folder, exist_ok=True)
        parts = {"inputs": self.inputs, "targets": self.targets}
        if self.held_out is not None:
            parts.update(zip(("eval_inputs", "eval_targets"), self.held_out))
        for name, array in parts.items():
            numpy.save(os.path.join(folder, f"{name}.npy"), numpy.ascontiguousarray(array))
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

    def check(self, input_limit: Optional[int], target_limit: Optional[int], ignored: Optional[int], finite: bool) -> None:
        """As `Arrays.check`; a token is input and target."""
        limits = [limit for limit in (input_limit, target_limit) if limit is not None]
        if limits:
            check_integers(self.tokens, "tokens", min(limits))

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


def parse(data: Any, held_out: Any, context: Optional[int], loss: Optional[Loss] = None) -> Union[Arrays, Tokens]:
    """The data that was passed to `train`."""
    if is_array(data):
        if held_out is not None:
            raise MotleyError("eval_data= was given for a row of tokens, which are held out at their end. Pass data__holdout=, "
                              "the held-out share, instead")
        return Tokens(data, context)
    if context is not None:
        raise MotleyError("context= applies only to a row of tokens, but the data are pairs. Leave it out")
    return Arrays(data, held_out, loss)


def _as_model(array: numpy.ndarray, input: bool) -> torch.Tensor:
    tensor = torch.from_numpy(numpy.array(array, order="C"))  # mapped files are read-only
    if tensor.dtype == torch.uint8 and input:
        return tensor.float() / 255
    return tensor if tensor.dtype == torch.float32 else tensor.long()
