"""Computations outside the trained path: auxiliary losses that a model returns or stores in its modules, and further
outputs."""

from __future__ import annotations

import dataclasses
import unittest
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from support import exported, motley, total


@dataclasses.dataclass
class Scores:
    logits: torch.Tensor
    balance: torch.Tensor


class Experts(nn.Module):
    """Experts with an auxiliary loss."""

    def __init__(self, kind: str):
        super().__init__()
        self.gate, self.kind, self.aux = nn.Linear(8, 4), kind, None

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        p = self.gate(h).softmax(-1)
        if self.kind == "none":
            return h * p.amax(-1, keepdim=True)
        aux = (p.mean(0) ** 2).sum()
        self.aux = aux.detach() if self.kind == "detached" else [aux] if self.kind == "list" else aux
        return h * aux if self.kind.startswith("used") else h * p.amax(-1, keepdim=True)


class WithExperts(nn.Module):
    def __init__(self, kind: str):
        super().__init__()
        self.a, self.mid, self.b = nn.Linear(6, 8), Experts(kind), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> Any:
        logits = self.b(self.mid(self.a(x)))
        kind, aux = self.mid.kind, self.mid.aux
        if not isinstance(aux, torch.Tensor):
            return logits
        if kind == "train":
            return (logits, aux) if self.training else logits
        several = {"tuple": (logits, aux), "dict": {"logits": logits, "balance": aux}, "data": Scores(logits, aux), "used and returned": (logits, aux)}
        self.mid.aux = aux if kind not in several else None
        return several.get(kind, logits)


class Untrained(unittest.TestCase):
    def test_other_outputs(self) -> None:
        class Aux(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.main, self.aux = nn.Linear(4, 4), nn.Linear(4, 2)

            def forward(self, x: torch.Tensor) -> Any:
                return (self.main(x), self.aux(x)) if self.training else self.main(x)
        model = Aux()
        done = exported([("main", model.main)], torch.randn(2, 4), total, torch.zeros(2), model=model)
        self.assertRegex(done.notices[0], "only they give a gradient to aux.weight, aux.bias")

    def test_auxiliary_losses(self) -> None:
        x, classes = torch.randn(4, 6), torch.randint(3, (4,))
        for kind, message in (("tuple", "also returns output 1, which is not trained"), ("train", "also returns output 1"), ("dict", "also returns balance"),
                              ("data", "also returns balance"), ("attribute", "computes mid.aux, which is not trained"), ("list", "computes mid.aux")):
            model = WithExperts(kind)
            mid: Any = model.mid
            done = exported([("a", model.a), ("mid", mid), ("b", model.b)], x, None, classes, model=model)
            self.assertRegex(done.notices[0], message)
            self.assertEqual(len(done.notices), 1)
            forward = (lambda x: model(x).logits) if kind == "data" else (lambda x: model(x)["logits"]) if kind == "dict" else (lambda x: model(x)[0])
            if kind in ("dict", "tuple", "data"):
                for options in ({"model": model}, {"model": model, "forward": forward}):
                    self.assertRegex(exported([("all", forward)], x, None, classes, **options).notices[0], message)
        model = WithExperts("attribute")
        for layers, options in (([("all", model)], {}), ([("all", model)], {"model": model}), (motley.split(nn.Sequential(model.a, model.mid, model.b)), {})):
            self.assertRegex(exported(layers, x, None, classes, **options).notices[-1], r"computes .*\.aux, which is not trained")

    def test_numbers_that_are_trained(self) -> None:
        x = torch.randn(4, 6)
        for kind in ("none", "used", "detached", "used and returned"):
            model = WithExperts(kind)
            self.assertEqual(exported([("a", model.a), ("mid", model.mid), ("b", model.b)], x, None, torch.randint(3, (4,)), model=model).notices, (), kind)

        def loss(output: Any, target: torch.Tensor) -> Any:
            return F.cross_entropy(output[0], target, reduction="sum"), torch.full((), target.numel())
        model = WithExperts("attribute")

        def last(x: torch.Tensor) -> Any:
            middle: Any = model.mid
            return model.b(middle(x)), middle.aux.expand(len(x))
        self.assertEqual(exported([("a", model.a), ("last", last)], x, loss, torch.randint(3, (4,)), model=model, target_limit=3).notices, ())


if __name__ == "__main__":
    unittest.main()
