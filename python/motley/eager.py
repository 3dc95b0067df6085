"""Runs a layer in eager PyTorch with autograd, as the expected result for packages."""

from __future__ import annotations

from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Set, Tuple

import torch
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from .graph import Role
from .intercept import Intercept, Observed
from .kernel_layouts import ContiguousWhereNeeded
from .losses import Loss


class EagerLayer(NamedTuple):
    """A layer to call; only the last one has `loss` and `target`."""

    call: Any
    structure: TreeSpec
    loss: Optional[Loss] = None
    target: Optional[torch.Tensor] = None

    def run(self, inputs: List[torch.Tensor]) -> Tuple[List[torch.Tensor], List[Observed]]:
        """Its outputs, or the sum of its loss, and the statistics that batch normalizations observed. May write to inputs."""
        with Intercept() as intercept, ContiguousWhereNeeded():
            value = self.call(tree_unflatten(inputs, self.structure))
            if self.loss is not None:
                assert self.target is not None
                value = self.loss.terms(value, self.target)[0]
        return tree_flatten(value)[0], intercept.observed


def each_gradient(outputs: List[torch.Tensor], grads: List[Optional[torch.Tensor]], wanted: Mapping[Role, torch.Tensor],
                  receive: Callable[[Role, torch.Tensor], None]) -> None:
    """Passes the gradients of leaves to `receive` as autograd computes them, one by one; each is released unless `receive` holds it.
    `grads`: of the outputs that have one; not for a loss. The gradient of a leaf without influence is 0."""
    reached = [k for k, output in enumerate(outputs) if output.requires_grad and (not grads or grads[k] is not None)]
    own = {role: tensor.grad for role, tensor in wanted.items()}
    received: Set[Role] = set()

    def taken(role: Role, grad: torch.Tensor) -> None:
        received.add(role)
        receive(role, grad.detach())

    def release(tensor: torch.Tensor) -> None:
        tensor.grad = None

    handles = [tensor.register_hook(lambda grad, role=role: taken(role, grad)) for role, tensor in wanted.items()]
    with torch.enable_grad():  # the nodes that store the gradients in the leaves
        nodes = [tensor.view_as(tensor).grad_fn.next_functions[0][0] for tensor in wanted.values()]  # type: ignore[union-attr]
    handles += [node.register_hook(lambda *_, tensor=tensor: release(tensor)) for node, tensor in zip(nodes, wanted.values())]
    try:
        for tensor in wanted.values():
            tensor.grad = None
        if wanted and reached:
            with ContiguousWhereNeeded():
                torch.autograd.backward([outputs[k] for k in reached], [grads[k] for k in reached] if grads else None,  # type: ignore[arg-type]
                                        inputs=list(wanted.values()))
    finally:
        for handle in handles:
            handle.remove()
        for role, tensor in wanted.items():
            tensor.grad = own[role]
    for role, tensor in wanted.items():
        if role not in received:
            receive(role, torch.zeros_like(tensor))
