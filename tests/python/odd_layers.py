"""Layers that cannot be in a package, with what their refusal says, and odd ones that can."""

from __future__ import annotations

from typing import Any, Callable, List, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F

from support import Function

X = torch.randn(2, 4, generator=torch.Generator().manual_seed(1))
OUTSIDE = torch.full((4,), 0.5)
TRAINED = torch.full((4,), 0.5, requires_grad=True)


class Rounds(torch.autograd.Function):
    """A straight-through estimator, as people write it."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.round()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return grad * (x.abs() < 2)


def branches(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:  # data-dependent
        return x * 2
    return x


class Changing(nn.Module):
    """Does something else every other time."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.linear(x) if self.calls % 2 else self.linear(x).relu()


class Counting(nn.Module):
    """Writes to a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += 1
        return self.linear(x) + self.seen


class SameTwice(nn.Module):
    """One parameter, used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.linear(x).tanh())


class NormTwice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.norm(x))


def in_place_on_input(x: torch.Tensor) -> torch.Tensor:
    return F.relu(x, inplace=True)


def in_place_on_parts(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    whole = y.view(-1, 2, 2)
    y[:, 0] = 0
    y[:, 1:3] *= 3
    whole[:, 1].add_(1)
    y[:, 2:].mul_(y[:, :2].clone())
    return whole.sum(1) + y[:, :2]


def in_place_on_turned_parts(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    whole = y.view(-1, 2, 2)
    y[:, 1:3] *= 3
    whole.transpose(1, 2)[:, 0].add_(1)
    y[:, 2:].mul_(y[:, :2].clone())
    return whole.sum(1) + y[:, :2]


def in_place_on_every_third(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y[:, ::3] *= 3
    return y


def in_place_masked(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[y > 0.3] = 0.25
    y.masked_fill_(y < -1, -1.0)
    out = torch.empty_like(y)
    out[:, ::2] = y[:, :2]
    out[:, 1::2] = y[:, 2:]
    return out


def with_no_grad(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return x * 2


class _To(nn.Module):
    def __init__(self, dtype: torch.dtype):
        super().__init__()
        self.dtype = dtype

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.to(self.dtype)


class Takes(nn.Module):
    """Adds up whatever structure it gets."""

    def forward(self, x: Any) -> torch.Tensor:
        parts = list(x.values()) if isinstance(x, dict) else list(x)
        return parts[0] * 2 + parts[1]


class PassesBy(nn.Module):
    """Hands its first tensor on and works on the second."""

    def forward(self, x: Any) -> Any:
        return x[0], x[1].tanh()


REFUSED: List[Tuple[str, Callable[[], Any], str]] = [
    # what, the layers between two others, a part of the message
    ("a branch on data", lambda: Function(branches), "depend on the values of a tensor"),
    (".item()", lambda: Function(lambda x: x * x.max().item()), "depend on the values of a tensor"),
    ("nonzero", lambda: Function(lambda x: x[x > 0]), "depend on the values of a tensor"),
    ("tolist", lambda: Function(lambda x: x * x.detach()[0, 0].numpy().tolist()), "on other data than was traced"),
    ("numpy", lambda: Function(lambda x: x + torch.from_numpy(x.detach().numpy().copy())), "differs between calls"),
    ("random numbers", lambda: Function(lambda x: x + torch.randn_like(x)), "random numbers"),
    ("rrelu", lambda: nn.RReLU(), "random numbers"),
    ("changes between calls", Changing, "with 2 samples"),
    ("writes to a buffer", Counting, "writes to middle.seen"),
    ("writes to a tensor outside", lambda: Function(lambda x: OUTSIDE.add_(0) + x), "writes to a tensor from outside"),
    ("closes over a trained tensor", lambda: Function(lambda x: x * TRAINED), "is no parameter of its modules"),
    ("weights of float16", lambda: nn.Linear(4, 4).half(), "the parameter middle.weight is float16"),
    ("activations of bfloat16", lambda: nn.Sequential(_To(torch.bfloat16), nn.Tanh(), _To(torch.float32)), "bfloat16"),
    ("activations of float64", lambda: nn.Sequential(_To(torch.float64), nn.Tanh(), _To(torch.float32)), "float64"),
    ("returns integers", lambda: Function(lambda x: (x, x.argmax(1))), "only float32 crosses"),
    ("returns a number", lambda: Function(lambda x: (x, 3)), "returns a int besides tensors"),
    ("no_grad", lambda: Function(with_no_grad), "depends on its inputs or parameters by a gradient"),
    ("a batch of a square", lambda: Function(lambda x: x / float(len(x) ** 2)), "not linear in the number of samples"),
    ("an operation outside the list", lambda: Function(lambda x: torch.linalg.svd(x[:, :, None] * x[:, None])[1]), "linalg_svd"),
    ("in place on every third", lambda: Function(in_place_on_every_third), "Clone a tensor before you write"),
    ("momentum=None", lambda: nn.BatchNorm1d(4, momentum=None), "momentum=None"),
    ("a normalization twice", NormTwice, "runs twice"),
    ("what raises by itself", lambda: nn.Linear(5, 5), "RuntimeError"),
    ("rows that mix", lambda: Function(lambda x: x.flatten().unsqueeze(0)), "first dimension is that of the samples"),
]

WORKS: List[Tuple[str, Callable[[], nn.Module]]] = [
    ("custom autograd function", lambda: Function(Rounds.apply)),
    ("a parameter used twice", SameTwice),
    ("in place on the input", lambda: Function(in_place_on_input)),
    ("in place on what came in", lambda: nn.ReLU(inplace=True)),
    ("in place on parts", lambda: Function(in_place_on_parts)),
    ("in place on turned parts", lambda: Function(in_place_on_turned_parts)),
    ("in place under masks", lambda: Function(in_place_masked)),
    ("closes over a tensor", lambda: Function(lambda x: x * OUTSIDE)),
    ("makes tensors", lambda: Function(lambda x: x + torch.tensor([1.0, 2.0, 3.0, 4.0]) * torch.arange(4))),
    ("mean over the batch", lambda: Function(lambda x: x - x.mean(0))),
    ("a number of the batch", lambda: Function(lambda x: x / float(len(x)))),
    ("matrix of the batch", lambda: Function(lambda x: (x @ x.t()) @ x)),
    (".item() of a constant", lambda: Function(lambda x: x * OUTSIDE.max().item())),
    ("inner layers in place", lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4), nn.SiLU(inplace=True))),
]
