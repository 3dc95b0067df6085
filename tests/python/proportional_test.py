"""Backward passes that are not linear in the incoming gradient are rejected; linear ones work."""

from __future__ import annotations

import unittest
from typing import Any, List

import torch
import torch.nn as nn

from support import exported, motley


class Bounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad.clamp(-1e-3, 1e-3)


class Reversed(Bounded):
    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return -grad


class OnlyOnce(Bounded):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.factor = 2.0
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        factor = ctx.factor
        del ctx.factor
        return grad * factor


class Hooked(nn.Module):
    """Modifies a gradient in the backward pass, by a hook or an autograd function."""

    def __init__(self, bound: Any):
        super().__init__()
        self.a, self.b, self.bound = nn.Linear(6, 8), nn.Linear(8, 3), bound

    def hidden(self, x: torch.Tensor) -> torch.Tensor:
        h = self.a(x).relu()
        if isinstance(self.bound, type):
            return self.bound.apply(h)
        if h.requires_grad:
            h.register_hook(self.bound)
        return h

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(self.hidden(x))


class Proportional(unittest.TestCase):
    def test_gradients_that_are_bounded(self) -> None:
        def normalized(grad: torch.Tensor) -> torch.Tensor:
            return grad / (grad.norm() + 1e-9)
        rest = (torch.randn(4, 6), None, torch.randint(3, (4,)))
        for what, bound in (("bound", lambda g: g.clamp(-1e-3, 1e-3)), ("in place", lambda g: g.clamp_(-1e-3, 1e-3)), ("a large bound", lambda g: g.clamp(-1, 1)),
                            ("norm", normalized), ("function", Bounded), ("noise", lambda g: g + 1e-3), ("only once", OnlyOnce), ("factor", lambda g: g * 0.3),
                            ("factor, in place", lambda g: g.mul_(0.3)), ("reversed", Reversed)):
            model = Hooked(bound)
            lists: List[Any] = [([("all", model)], {}), ([("a", model.hidden), ("b", model.b)], {"model": model}), ([("all", model)], {"model": model}),
                                ([("a", model.hidden), ("b", model.b)], {}), ([("all", model)], {"forward": model})]
            for layers, options in lists if what == "bound" else lists[:2]:
                with self.subTest(what):
                    if what == "only once":
                        self.assertRegex(exported(layers, *rest, **options).notices[-1], "the backward pass runs only once")
                    elif what in ("factor", "factor, in place", "reversed"):
                        self.assertFalse([notice for notice in exported(layers, *rest, **options).notices if "not compared" not in notice])
                    else:
                        with self.assertRaisesRegex(motley.ExportError, r"not proportional to its incoming gradient: the gradient of (\w+\.)?a\..*clip="):
                            exported(layers, *rest, **options)


if __name__ == "__main__":
    unittest.main()
