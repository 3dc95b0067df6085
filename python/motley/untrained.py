"""Values that a model computes in addition to the trained result, such as auxiliary losses of experts: no loss receives them."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Set, Tuple

import torch

from . import outputs
from .calls import RunResult


def auxiliary_losses(model: RunResult, trained: List[torch.Tensor], layers: RunResult) -> Tuple[List[str], List[str]]:
    """The names of scalars with a gradient that the model returned, and of those that it stored in attributes, if neither
    `trained` nor the result of the layers' own run is computed from them."""
    used, layer_results = _edges_behind(trained), _edges_behind(outputs.floats(layers.value))
    stored_by_layers = {name for name, tensor in layers.stored if _edge(tensor) in layer_results}

    def unused(parts: Iterable[outputs.Part]) -> Dict[int, str]:
        return {id(tensor): name for name, tensor in parts if _is_loss(name, tensor) and _edge(tensor) not in used}
    returned = {**unused(outputs.parts(model.value)), **unused((r.name, r.tensor) for r in model.returned)}
    stored = {key: name for key, name in unused(model.stored).items() if key not in returned and name not in stored_by_layers}
    return list(dict.fromkeys(returned.values())), list(dict.fromkeys(stored.values()))


def learning_by(others: List[torch.Tensor], trained: List[torch.Tensor], parameters: Mapping[str, torch.Tensor]) -> List[str]:
    """The parameters to which the untrained outputs `others` give a gradient, and from which no path leads to `trained`. A path
    counts even if the gradient along it is zero for these samples."""
    if not others or not parameters:
        return []
    behind = _edges_behind(trained)
    parameters = {name: tensor for name, tensor in parameters.items() if _edge(tensor) not in behind}
    if not parameters:
        return []
    reached = torch.autograd.grad([t.sum() for t in others], list(parameters.values()), allow_unused=True)
    return [name for name, grad in zip(parameters, reached) if grad is not None]


def _is_loss(name: str, tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and tensor.requires_grad and (tensor.numel() == 1 or "loss" in name.rpartition(".")[2])


def _edge(tensor: torch.Tensor) -> Tuple[Any, int]:
    """The autograd edge of a tensor that requires a gradient; parameters have one too."""
    with torch.enable_grad():
        return tensor.view_as(tensor).grad_fn.next_functions[0]


def _edges_behind(tensors: List[torch.Tensor]) -> Set[Tuple[Any, int]]:
    """All autograd edges from which `tensors` are computed, and their own."""
    pending = [_edge(tensor) for tensor in tensors if tensor.requires_grad]
    found = set(pending)
    while pending:
        for edge in pending.pop()[0].next_functions:
            if edge[0] is not None and edge not in found:
                found.add(edge)
                pending.append(edge)
    return found
