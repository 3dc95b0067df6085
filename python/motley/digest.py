"""Digests of a model's gradients: a few numbers each, so that two models can be compared without storing gradients."""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple

import torch

from .errors import ExportError
from .intercept import Intercept
from .kernel_layouts import ContiguousWhereNeeded

_WIDTH = 4096
PROJECTIONS = 4


class Digest(NamedTuple):
    """The norm of a tensor and its products with random vectors. Those of two tensors differ by about the norm of their
    difference."""

    norm: float
    projections: torch.Tensor


def digest(tensor: torch.Tensor) -> Digest:
    flat = tensor.detach().reshape(-1)
    rows = -(-flat.numel() // _WIDTH)
    generator = torch.Generator().manual_seed(rows)
    across = torch.randn(_WIDTH, PROJECTIONS, generator=generator)
    down = torch.randn(rows, PROJECTIONS, generator=generator)
    full = flat.numel() // _WIDTH
    sums = flat[:full * _WIDTH].view(full, _WIDTH) @ across
    if full < rows:
        rest = flat[full * _WIDTH:]
        sums = torch.cat([sums, (rest @ across[:rest.numel()]).unsqueeze(0)])
    return Digest(float(flat.norm()), (sums * down).sum(0).double())


def gradients(outputs: List[torch.Tensor], grads: List[torch.Tensor], parameters: Mapping[str, torch.Tensor],
              retain_graph: bool = False, scale: float = 1.0) -> Dict[str, Digest]:
    """Digests of all non-zero parameter gradients for `grads` times `scale`; holds one gradient at a time."""
    found: Dict[str, Digest] = {}
    own = {name: tensor.grad for name, tensor in parameters.items()}
    done: List[torch.Tensor] = []

    def taken(name: str, tensor: torch.Tensor, grad: torch.Tensor) -> None:
        for earlier in done:
            earlier.grad = None
        done[:] = [tensor]
        found[name] = digest(grad)

    handles = [tensor.register_hook(lambda grad, name=name, tensor=tensor: taken(name, tensor, grad))
               for name, tensor in parameters.items()]
    try:
        for tensor in parameters.values():
            tensor.grad = None
        reached = [k for k, output in enumerate(outputs) if output.requires_grad]
        with Intercept() as intercept, ContiguousWhereNeeded():  # Intercept: activation checkpointing recomputes the forward
            if reached:
                torch.autograd.backward([outputs[k] for k in reached], [grads[k] * scale for k in reached], retain_graph=retain_graph)
        if any(draw.placed for draw in intercept.draws.drawn) or intercept.observed:
            raise ExportError("dropout, a random draw or batch normalization is recomputed in the backward pass, as by "
                              "activation checkpointing",
                              "Disable activation checkpointing: Motley recomputes activations itself if memory is short")
    finally:
        for handle in handles:
            handle.remove()
        for name, tensor in parameters.items():
            tensor.grad = own[name]
    return {name: seen for name, seen in found.items() if seen.norm != 0}


def differs(a: Digest, b: Digest, floor: float) -> float:
    """The difference of two tensors relative to the larger norm, or to `floor` if that is larger."""
    if a.norm != a.norm or b.norm != b.norm:
        return 0.0 if a.norm != a.norm and b.norm != b.norm else float("inf")
    return float((a.projections - b.projections).norm()) / 2 / max(a.norm, b.norm, floor)
