"""What a model computes beside what is trained, such as auxiliary losses of experts: no loss sees it, and a user should know."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Set, Tuple

import torch

from . import outputs
from .calls import Ran


def untrained(right: Ran, trained: List[torch.Tensor], found: Ran) -> Tuple[List[str], List[str]]:
    """The numbers with a gradient that a training run of the model returned, and that it left in attributes, from which nothing of
    `trained` is computed, and nothing that the layers' own run gives the loss."""
    used, given = _computed_from(trained), _computed_from(outputs.floats(found.value))
    known = {name for name, tensor in found.left if _edge(tensor) in given}

    def dropped(parts: Iterable[outputs.Part]) -> Dict[int, str]:
        return {id(tensor): name for name, tensor in parts if _is_a_loss(name, tensor) and _edge(tensor) not in used}
    returned = {**dropped(outputs.parts(right.value)), **dropped((r.name, r.tensor) for r in right.returned)}
    left = {key: name for key, name in dropped(right.left).items() if key not in returned and name not in known}
    return list(dict.fromkeys(returned.values())), list(dict.fromkeys(left.values()))


def learning_by(others: List[torch.Tensor], parameters: Mapping[str, torch.Tensor]) -> List[str]:
    """The parameters that outputs which are not trained give a gradient."""
    if not others or not parameters:
        return []
    reached = torch.autograd.grad([t.sum() for t in others], list(parameters.values()), allow_unused=True)
    return [name for name, grad in zip(parameters, reached) if grad is not None]


def _is_a_loss(name: str, tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and tensor.requires_grad and (tensor.numel() == 1 or "loss" in name.rpartition(".")[2])


def _edge(tensor: torch.Tensor) -> Tuple[Any, int]:
    """Where autograd's graph has a tensor that requires a gradient, parameters too."""
    with torch.enable_grad():
        return tensor.view_as(tensor).grad_fn.next_functions[0]


def _computed_from(tensors: List[torch.Tensor]) -> Set[Tuple[Any, int]]:
    """All places in autograd's graph from which they are computed, and their own."""
    open_ = [_edge(tensor) for tensor in tensors if tensor.requires_grad]
    found = set(open_)
    while open_:
        for edge in open_.pop()[0].next_functions:
            if edge[0] is not None and edge not in found:
                found.add(edge)
                open_.append(edge)
    return found
