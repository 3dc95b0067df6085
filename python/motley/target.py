"""A package's description of its target and of the units that its loss counts."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import torch

from .errors import ExportError
from .graph import Role
from .graph_json import TYPES
from .losses import Loss, class_count, compares_samples
from .trace_layers import TracedLayer


def tensor_json(sizes: Any, dtype: torch.dtype, layer: str) -> Dict[str, Any]:
    if any(type(size) is not int for size in sizes):
        raise ExportError("an output has a dimension after the first that depends on the batch size",
                          "Return one row for each sample", layer)
    return {"type": TYPES[dtype], "shape": list(sizes)}


def described_target(traced: List[TracedLayer], loss: Loss, target_limit: Optional[int], unit: Optional[str],
                     units_per_sample: Optional[int]) -> Dict[str, Any]:
    """The package's description of its target."""
    first, last = traced[0], traced[-1]
    target = last.target
    assert target is not None
    integers = target.dtype == torch.int64
    _check_rows(last)
    if integers and target_limit is None:
        target_limit = _classes(last) if loss.classes else None
        if target_limit is None:
            raise ExportError("the target consists of integers, and the loss does not determine their limit",
                              "Pass target_limit=", last.name)
    per_sample = 1
    for size in target.shape[1:]:
        per_sample *= size
    if loss.classes and not integers:
        per_sample //= target.size(1)
    ids = [x for x in first.inputs if x.dtype == torch.int64 and (len(first.inputs) == 1 or x.shape == target.shape)]
    tokens = integers and loss.classes and target.dim() > 1 and bool(ids)
    return {"target": tensor_json(target.shape[1:], target.dtype, last.name),
            "target_limit": target_limit if integers else 0,
            "ignored": loss.ignored if integers else None,
            "units_per_sample": units_per_sample or per_sample,
            "unit": unit or ("token" if tokens else "sample")}


def _classes(last: TracedLayer) -> Optional[int]:
    """The number of classes in the model's output, if the target is a class."""
    assert last.target is not None
    return class_count(torch.empty(_output_shape(last, last.target.size(0)), device="meta"), last.target)


def _output_shape(last: TracedLayer, samples: int) -> List[int]:
    """The shape of the first output of the last layer."""
    assert last.score is not None
    sizes = last.score.recorder.shapes[last.score.results[Role("output", 0)]].sizes
    return [size.at(samples) if not isinstance(size, int) else size for size in sizes]


def _check_rows(last: TracedLayer) -> None:
    """Refuses an output whose samples have as many values as there are samples: micro-batches would change it."""
    assert last.score is not None
    two, three = _output_shape(last, 2), _output_shape(last, 3)
    if two[1:] != three[1:] and Role("output", 1) not in last.score.results:
        raise compares_samples(2, two, 3, three, last.name)
