"""Runs a layer in eager PyTorch with autograd, as the expected result for packages."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Tuple

import torch
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

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


def gradients(outputs: List[torch.Tensor], grads: List[Optional[torch.Tensor]], wanted: List[torch.Tensor]
              ) -> List[Optional[torch.Tensor]]:
    """Gradients by autograd. `grads`: of the outputs that have one; not for a loss. None for tensors without influence."""
    if not wanted:
        return []
    reached = [k for k, output in enumerate(outputs) if output.requires_grad and (not grads or grads[k] is not None)]
    with ContiguousWhereNeeded():
        return list(torch.autograd.grad([outputs[k] for k in reached], wanted, [grads[k] for k in reached] if grads else None,
                                        allow_unused=True))
