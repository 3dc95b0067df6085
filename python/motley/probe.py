"""Determines the input limits of a model by a forward of two samples, so that unsuitable data is refused before the export."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import outputs
from .errors import MotleyError
from .layers import Layers
from .losses import Loss, class_count, compares_samples
from .modules import preserved_state
from .half_precision import as_float32
from .named import Input, Limit, by_name, count, each, take, tensors
from .trace_layers import memory_of


class Limits(NamedTuple):
    """Integers are from 0 to below these limits; None if unknown. Of named inputs a dictionary."""

    inputs: Limit
    targets: Optional[int]


class _Lookups(TorchDispatchMode):
    """Records the rows of embeddings that are indexed by each input or a view of it."""

    def __init__(self, input: Input):
        super().__init__()
        self._memory = {memory_of(tensor): name for name, tensor in by_name(input).items()}
        self._rows: Dict[str, List[int]] = {name: [] for name in self._memory.values()}
        self._named = isinstance(input, Mapping)
        self.input = input

    def limits(self) -> Limit:
        found = {name: min(rows, default=None) for name, rows in self._rows.items()}
        return found if self._named else found[""]

    def __torch_dispatch__(self, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.embedding.default and memory_of(args[1]) in self._memory:
            self._rows[self._memory[memory_of(args[1])]].append(args[0].size(0))
        return func(*args, **(kwargs or {}))


def limits(described: Layers, loss: Loss, example: Tuple[Input, torch.Tensor]) -> Limits:
    """The limits of the model. If it raises, they are unknown, and `export` reports the error. Refuses inputs if the model
    raises for them but runs with the other type or another common shape."""
    few = list(range(min(2, count(example[0]))))
    input, target = take(example[0], few), example[1][few]
    described = described.taking(input)
    ids = each(lambda tensor: tensor.clone() if tensor.is_floating_point() else torch.zeros_like(tensor), input)
    lookups = _Lookups(ids)
    roots = [root for _, root in described.roots]
    owned = [tensor for root in roots for tensor in (*root.parameters(), *root.buffers())]
    if any(tensor.device.type != "cpu" for tensor in owned):
        return Limits(None, None)
    with preserved_state(roots), as_float32(owned), torch.random.fork_rng(devices=[]):
        for root in roots:
            root.eval()
        output = _run(described, ids, lookups)
        if output is None and isinstance(input, Mapping):  # zeros may not be values of a mask, or lengths
            lookups = _Lookups(input)
            output = _run(described, input, lookups)
        if output is None and described.by != "forward":  # with it, the layers take other inputs than the model
            _refuse_others(described, ids, input, target)
        if output is None:
            return Limits(None, None)
        scores = outputs.main(output)
        if scores is not None and described.by != "forward":
            _check_rows(described, lookups.input, scores)
    classes = None
    if loss.classes and not target.is_floating_point() and scores is not None:
        classes = class_count(scores, target)
    return Limits(lookups.limits(), classes)


def _refuse_others(described: Layers, ids: Input, input: Input, target: torch.Tensor) -> None:
    """Refuses inputs for which the model raises if it runs with samples of batches, or with a common conversion of one input."""
    inner = {tensor.size(1) if tensor.dim() > 1 else None for tensor in (*tensors(input), target)}
    alike = len(inner) == 1 and None not in inner and any(tensor.dim() > 2 for tensor in tensors(input))
    if alike and _run(described, each(lambda tensor: tensor[:, 0], input), None) is not None:
        raise MotleyError(f"the model raises for samples that are batches of {inner.pop()}, but runs with one sample of them. Pass "
                          "samples, not batches: the loader's .dataset, or torch.cat of the batches")
    for name, tensor in by_name(ids).items():
        what = f"inputs[{name!r}]" if name else "inputs"
        for other, words in _variants(tensor) if not name else _other_types(tensor):
            if _run(described, {**by_name(input), name: other} if name else other, None) is not None:
                raise MotleyError(f"the model raises for {what} that are {_described(tensor)}, but runs with {what}{words}. Pass "
                                  "these inputs")


def _check_rows(described: Layers, input: Input, scores: torch.Tensor) -> None:
    """Refuses scores for a sample whose number depends on the number of samples."""
    samples, few = count(input), 1 if count(input) > 1 else 2
    other = outputs.main(_run(described, take(input, [0] * few), None))
    if other is not None and scores.size(0) * few == other.size(0) * samples and other.shape[1:] != scores.shape[1:]:
        raise compares_samples(samples, scores.shape, few, other.shape)


def _described(input: torch.Tensor) -> str:
    return f"{'floats' if input.is_floating_point() else 'integers'} {list(input.shape[1:])} for each sample"


def _variants(input: torch.Tensor) -> Iterator[Tuple[torch.Tensor, str]]:
    """Common conversions of an input, as tensors and as code."""
    yield from _other_types(input)
    if input.dim() == 4 and input.size(3) in (1, 3, 4):
        yield input.permute(0, 3, 1, 2), ".permute(0, 3, 1, 2)"
    yield input.unsqueeze(1), ".unsqueeze(1)"
    if input.dim() > 2 and input.is_floating_point():  # flattening packed ids would mix them
        yield input.flatten(1), ".flatten(1)"


def _other_types(input: torch.Tensor) -> Iterator[Tuple[torch.Tensor, str]]:
    if input.is_floating_point():
        yield torch.zeros_like(input, dtype=torch.int64), ".long()"
        return
    yield input.float(), ".float()"
    if input.dtype == torch.bool:
        yield input.long(), ".long()"


def _run(described: Layers, value: Input, lookups: Optional[_Lookups]) -> Any:
    try:
        with torch.no_grad():
            x: Any = value
            if lookups is None:
                for _, call in described.layers:
                    x = call(x)
            else:
                with lookups:
                    for _, call in described.layers:
                        x = call(x)
    except Exception:  # any error of the user's model; export runs it again and reports it
        return None
    return x
