"""Results of models, and their comparison."""

from __future__ import annotations

import dataclasses
from typing import Any, Iterable, List, Optional, Tuple

import torch
from torch.utils._pytree import tree_flatten

_LISTED = 4

Part = Tuple[str, torch.Tensor]
"""A tensor in a result, with its name there."""


def parts(value: Any, name: str = "") -> List[Part]:
    """The tensors in dictionaries, dataclasses, tuples and other pytrees."""
    if isinstance(value, torch.Tensor):
        return [(name or "its output", value)]
    if value is None or isinstance(value, (str, int, float, torch.nn.Module)):
        return []
    inner: Iterable[Tuple[Any, Any]]
    if hasattr(value, "items"):
        inner = value.items()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        inner = [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    elif isinstance(value, (tuple, list)):
        inner = zip(getattr(value, "_fields", None) or [k if name else f"output {k}" for k in range(len(value))], value)
    else:
        return [(name, tensor) for tensor in tree_flatten(value)[0] if isinstance(tensor, torch.Tensor)]
    return [part for key, one in inner for part in parts(one, f"{name}.{key}" if name else str(key))]


def floats(value: Any) -> List[torch.Tensor]:
    """The floating-point tensors in a result."""
    return [tensor for _, tensor in parts(value) if tensor.is_floating_point()]


def main(value: Any) -> Optional[torch.Tensor]:
    """The main output of a result with several parts."""
    if isinstance(value, torch.Tensor):
        return value
    named = dict(parts(value))
    chosen = named.get("logits", named.get("out"))
    return chosen if chosen is not None else next(iter(floats(value)), None)


def pairs(right: Any, found: Any) -> List[Tuple[torch.Tensor, torch.Tensor]]:
    """The pairs to compare: all tensors of equal structures, else the layers' output with the model's most similar one."""
    whole, layers = floats(right), floats(found)
    if type(right) is type(found) and [t.shape for t in whole] == [t.shape for t in layers]:
        return list(zip(whole, layers))
    given, expected = main(found), main(right)
    if given is None:
        return []
    alike = [view for t in ([expected] if expected is not None and expected.shape == given.shape else whole) for view in _views(t, given.shape)]
    return [(min(alike, key=lambda t: difference(given.detach(), t.detach())), given)] if alike else []


def _views(tensor: torch.Tensor, shape: torch.Size) -> List[torch.Tensor]:
    """Views of a tensor in a shape with as many elements: its rows joined, or its classes second instead of last."""
    if tensor.shape == shape:
        return [tensor]
    if tensor.numel() != shape.numel():
        return []
    turned = [tensor.transpose(1, -1), tensor.movedim(-1, 1)] if tensor.dim() > 2 else []
    return [tensor.reshape(shape)] + [t for t in turned if t.shape == shape]


def difference(found: torch.Tensor, right: torch.Tensor) -> float:
    """The difference relative to the largest finite element. NaN and infinity equal themselves."""
    if found.shape != right.shape:
        return float("inf")
    if found.numel() == 0 or equal(found, right):
        return 0.0
    found, right = found.float(), right.float()
    same = (found == right) | (found.isnan() & right.isnan())
    largest = float(right.abs().masked_fill_(~right.isfinite(), 0.0).max())
    return float((found - right).abs_().masked_fill_(same, 0.0).max()) / (largest or 1.0)


def select(positions: torch.Tensor, output: torch.Tensor) -> Optional[torch.Tensor]:
    """The elements of each sample at `positions`, if classes are the last dimension or the second; None if neither fits."""
    many = positions.dim()
    if output.dim() > many and output.shape[1:1 + many] == positions.shape:
        return output[:, positions]
    if output.dim() > many + 1 and output.shape[2:2 + many] == positions.shape:
        return output[:, :, positions]
    return None


def equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and bool(torch.equal(a, b))


def shapes(value: Any) -> str:
    """The shapes of a result's tensors, for messages."""
    found = [str(tuple(tensor.shape)) for _, tensor in parts(value)]
    return ", ".join(found) or f"a {type(value).__name__}"


def listed(names: List[str]) -> str:
    """At most four names and the number of the others, for messages."""
    return ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
