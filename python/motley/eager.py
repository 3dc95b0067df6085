"""A layer as PyTorch and its autograd compute it: what packages are compared with."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Tuple

import torch
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from .intercept import Intercept, Observed
from .kernel_layouts import ContiguousWhereNeeded
from .losses import Loss


class EagerLayer(NamedTuple):
    """A layer to call; `loss` and `target` are of the last one."""

    call: Any
    structure: TreeSpec
    loss: Optional[Loss] = None
    target: Optional[torch.Tensor] = None

    def run(self, inputs: List[torch.Tensor]) -> Tuple[List[torch.Tensor], List[Observed]]:
        """What it returns, or the sum of its loss, and what batch normalizations saw. Inputs may be written to."""
        with Intercept() as intercept, ContiguousWhereNeeded():
            value = self.call(tree_unflatten(inputs, self.structure))
            if self.loss is not None:
                assert self.target is not None
                value = self.loss.terms(value, self.target)[0]
        return tree_flatten(value)[0], intercept.observed


def gradients(outputs: List[torch.Tensor], grads: List[Optional[torch.Tensor]], wanted: List[torch.Tensor]
              ) -> List[Optional[torch.Tensor]]:
    """By autograd. `grads` come in to the outputs that have one; a loss has none. None where nothing depends on a tensor."""
    if not wanted:
        return []
    reached = [k for k, output in enumerate(outputs) if output.requires_grad and (not grads or grads[k] is not None)]
    with ContiguousWhereNeeded():
        return list(torch.autograd.grad([outputs[k] for k in reached], wanted, [grads[k] for k in reached] if grads else None,
                                        allow_unused=True))
