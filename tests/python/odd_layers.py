"""Layers that a package cannot contain, with their error messages, and unusual ones that it can."""

from __future__ import annotations

from typing import Any, Callable, List, Tuple

import random

import numpy
import torch
import torch.nn as nn
import torch.nn.functional as F

from torch.utils.checkpoint import checkpoint

from support import Function

X = torch.randn(2, 4, generator=torch.Generator().manual_seed(1))
OUTSIDE = torch.full((4,), 0.5)
TRAINED = torch.full((4,), 0.5, requires_grad=True)


class Rounds(torch.autograd.Function):
    """A straight-through estimator in common form."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.round()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return grad * (x.abs() < 2)


class Linears(nn.Linear):
    """A linear layer with a given forward function."""

    def __init__(self, function: Callable[[nn.Module, torch.Tensor], Any]):
        super().__init__(4, 4)
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        self.forward = super().forward  # so that the function can call it
        try:
            return self.function(self, x)
        finally:
            del self.forward


class Complex(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c = nn.Parameter(torch.ones(4, dtype=torch.complex64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.c).real


def branches(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:  # data-dependent
        return x * 2
    return x


class Changing(nn.Module):
    """Alternates between two computations."""

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


def dropped_in_place(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    return y + F.dropout(y, 0.5, True, True)


def saved_is_written(x: torch.Tensor) -> torch.Tensor:
    y = x.exp()
    z = y * 2
    y.add_(1)
    return y + z


def recomputes(x: torch.Tensor) -> torch.Tensor:
    return checkpoint(lambda y: F.dropout(y.tanh(), 0.5, True), x, use_reentrant=False)


class Reads(nn.Module):
    """A BatchNorm, and code that reads one of its buffers."""

    def __init__(self, read: Callable[[torch.Tensor, nn.BatchNorm1d], torch.Tensor]):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.read = read

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.read(self.norm(x), self.norm)


def hooked() -> nn.Module:
    module = nn.Linear(4, 4)
    module.weight.register_hook(lambda gradient: gradient * 2)
    return module


def same_memory() -> nn.Module:
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    module[1].weight.data = module[0].weight.data
    return module


def on_meta() -> nn.Module:
    module = nn.Linear(4, 4)
    module.register_buffer("unseen", torch.zeros(4, device="meta"), persistent=False)
    return module


def frozen(module: nn.Module) -> nn.Module:
    return module.requires_grad_(False)


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
    """Combines the tensors of a dict or a sequence."""

    def forward(self, x: Any) -> torch.Tensor:
        parts = list(x.values()) if isinstance(x, dict) else list(x)
        return parts[0] * 2 + parts[1]


class PassesBy(nn.Module):
    """Forwards its first tensor and computes with the second."""

    def forward(self, x: Any) -> Any:
        return x[0], x[1].tanh()


REFUSED: List[Tuple[str, Callable[[], Any], str]] = [
    # what, the layers between two others, a part of the message
    ("a branch on data", lambda: Function(branches), "depend on the values of a tensor"),
    (".item()", lambda: Function(lambda x: x * x.max().item()), "depend on the values of a tensor"),
    ("nonzero", lambda: Function(lambda x: x[x > 0]), "depend on the values of a tensor"),
    ("tolist", lambda: Function(lambda x: x * x.detach()[0, 0].numpy().tolist()), "Tensor.numpy converts the values"),
    ("numpy", lambda: Function(lambda x: x + torch.from_numpy(x.detach().numpy().copy())), "Tensor.numpy converts the values"),
    ("a branch by tolist", lambda: Function(lambda x: x * (2 if x.tolist()[0][0] > -100 else 1)), "Tensor.tolist converts the values"),
    ("a branch by NumPy", lambda: Function(lambda x: x * (2 if numpy.asarray(x.detach()).max() > -100 else 1)), "converts the values"),
    ("Python's random", lambda: Function(lambda x: x * 2 if random.random() < 2 else x), "random numbers from Python's random"),
    ("NumPy's random", lambda: Function(lambda x: x * 2 if numpy.random.rand() < 2 else x), "random numbers from NumPy"),
    ("a gamma distribution", lambda: Function(lambda x: x * torch._standard_gamma(torch.ones(4))), "random numbers"),
    ("masked_select", lambda: Function(lambda x: torch.masked_select(x, x > 0).sum() + x), "depend on the values of a tensor"),
    ("nonzero's size", lambda: Function(lambda x: x + torch.nonzero(x).size(0)), "depend on the values of a tensor"),
    ("unique", lambda: Function(lambda x: x + torch.unique(x).sum()), "depend on the values of a tensor"),
    ("a probability of 2", lambda: Function(lambda x: F.dropout(x, 2.0, True)), "the dropout probability is 2.0"),
    ("dropout that is recomputed", lambda: Function(recomputes), "Disable activation checkpointing"),
    ("a saved value is written to", lambda: Function(saved_is_written), "modified by an inplace operation"),
    ("a parameter is written to", lambda: Linears(lambda m, x: (m.weight.data.clamp_(-1, 1), m(x))[1]), "writes to middle.weight"),
    ("spectral norm", lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)), "writes to a given tensor"),
    ("instance norm that tracks", lambda: nn.Sequential(nn.Unflatten(1, (2, 2)), nn.InstanceNorm1d(2, track_running_stats=True), nn.Flatten()),
     "running_mean"),
    ("reads a running mean", lambda: Reads(lambda x, norm: x - norm.running_mean), "uses the running statistic middle.norm.running_mean"),
    ("a hook on a parameter", hooked, "the parameter weight has a hook"),
    ("two parameters in one memory", same_memory, "different parameters in the same memory"),
    ("TorchScript", lambda: torch.jit.script(nn.Linear(4, 4)), "is TorchScript"),
    ("DataParallel", lambda: nn.DataParallel(nn.Linear(4, 4)), "which wraps the model"),
    ("on the device meta", lambda: nn.Linear(4, 4, device="meta"), "is on meta"),
    ("a buffer on meta", on_meta, "is on meta"),
    ("other outputs in evaluation", lambda: Linears(lambda m, x: (m(x), x) if m.training else m(x)), "other outputs in evaluation"),
    ("a complex logarithm", lambda: Function(lambda x: torch.view_as_complex(x.view(-1, 2, 2)).log().imag), "log computes with complex numbers"),
    ("a long FFT", lambda: Function(lambda x: torch.fft.fft(x, 5000).real), "5000 elements, more than 4096"),
    ("complex parameters", lambda: Complex(), "middle.c is complex64"),
    ("the same up to 6 samples", lambda: Function(lambda x: x / min(len(x), 6)), "depend on the batch size"),
    ("a branch on the batch", lambda: Function(lambda x: x * 2 if len(x) > 2 else x), "samples"),
    ("rrelu", lambda: nn.RReLU(), "random numbers"),
    ("changes between calls", Changing, "with 2 samples"),
    ("writes to a buffer", Counting, "writes to middle.seen"),
    ("writes to a tensor outside", lambda: Function(lambda x: OUTSIDE.add_(0) + x), "writes to a tensor from outside"),
    ("closes over a trained tensor", lambda: Function(lambda x: x * TRAINED), "is not a parameter of its modules"),
    ("weights of float16", lambda: nn.Linear(4, 4).half(), "the parameter middle.weight is float16"),
    ("activations of bfloat16", lambda: nn.Sequential(_To(torch.bfloat16), nn.Tanh(), _To(torch.float32)), "bfloat16"),
    ("activations of float64", lambda: nn.Sequential(_To(torch.float64), nn.Tanh(), _To(torch.float32)), "float64"),
    ("returns halves", lambda: Function(lambda x: (x, x.half())), "outputs may be float32, int64 or bool"),
    ("returns a number", lambda: Function(lambda x: (x, 3)), "returns a int in addition to tensors"),
    ("no_grad", lambda: Function(with_no_grad), "depends on its inputs or parameters with a gradient"),
    ("a batch of a square", lambda: Function(lambda x: x / float(len(x) ** 2)), "not linear in the number of samples"),
    ("an operation outside the list", lambda: Function(lambda x: torch.linalg.svd(x[:, :, None] * x[:, None])[1]), "linalg_svd"),
    ("momentum=None", lambda: nn.BatchNorm1d(4, momentum=None), "momentum=None"),
    ("a normalization twice", NormTwice, "runs twice"),
    ("what raises by itself", lambda: nn.Linear(5, 5), "RuntimeError"),
    ("rows that mix", lambda: Function(lambda x: x.flatten().unsqueeze(0)), "first dimension is that of the samples"),
]

WORKS: List[Tuple[str, Callable[[], nn.Module]]] = [
    ("custom autograd function", lambda: Function(Rounds.apply)),
    ("a parameter used twice", SameTwice),
    ("a parameter used with and without gradient", lambda: Linears(lambda m, x: F.linear(x, m.weight.detach()) + m(x))),
    ("dropout in place", lambda: nn.Sequential(nn.Dropout(0.0, inplace=True), nn.Linear(4, 4))),
    ("a check of values", lambda: Function(lambda x: (torch._assert((x > -100).all(), f"too small: {x.sum()}"), x * 2)[1])),
    ("a branch on infinities", lambda: Function(lambda x: x * 2 if torch.isfinite(x).all() and not torch.isnan(x).any() else x.clamp(-1, 1))),
    ("windows by strides", lambda: Function(lambda x: (x * 1).as_strided([len(x), 3, 2], [4, 1, 1]).sum(1).repeat(1, 2))),
    ("windows of a transposed tensor", lambda: Function(lambda x: (x * 1).view(-1, 2, 2).transpose(0, 1).as_strided([len(x), 3, 2], [4, 1, 1]).sum(1).repeat(1, 2))),
    ("transposed by strides", lambda: Function(lambda x: (x * 1).as_strided([len(x), 2, 2], [4, 1, 2]).flatten(1))),
    ("a branch on shapes", lambda: Function(lambda x: x * 2 if x.size(1) > 3 else x)),
    ("frozen", lambda: frozen(nn.Linear(4, 4))),
    ("detached in part", lambda: Function(lambda x: x * x.detach().sigmoid())),
    ("no_grad in part", lambda: Function(lambda x: x + with_no_grad(x))),
    ("weight norm", lambda: nn.utils.weight_norm(nn.Linear(4, 4))),
    ("deep", lambda: nn.Sequential(*[nn.Linear(4, 4) for _ in range(100)])),
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
if torch.__version__.startswith("1."):  # its traces have such writes as views of memory
    REFUSED.append(("in place on every third", lambda: Function(in_place_on_every_third), "Clone a tensor before writing"))
else:
    WORKS.append(("in place on every third", lambda: Function(in_place_on_every_third)))
