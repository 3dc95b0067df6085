"""Modules and functions of PyTorch, one at a time between two layers: the package matches autograd bit for bit."""

from __future__ import annotations

import unittest

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from support import Folder, Function, boundary, eager, export_layers

IMAGE = (2, 4, 8, 8)
LINE = (2, 4, 12)
VOLUME = (2, 2, 4, 6, 4)
ROWS = (2, 5, 8)

MODULES = {
    "Conv1d": (lambda: nn.Conv1d(4, 6, 3, padding=1, dilation=1, stride=2), LINE),
    "Conv1d circular": (lambda: nn.Conv1d(4, 6, 3, padding=1, padding_mode="circular"), LINE),
    "Conv2d": (lambda: nn.Conv2d(4, 6, 3, padding=1, stride=2), IMAGE),
    "Conv2d in groups": (lambda: nn.Conv2d(4, 8, 3, groups=2, dilation=2), IMAGE),
    "Conv2d of each channel": (lambda: nn.Conv2d(4, 4, 3, groups=4, padding="same"), IMAGE),
    "Conv2d reflected": (lambda: nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect", bias=False), IMAGE),
    "Conv3d": (lambda: nn.Conv3d(2, 3, 3, padding=1), VOLUME),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(4, 6, 3, stride=2), LINE),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1), IMAGE),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(4), LINE),
    "BatchNorm2d without affine": (lambda: nn.BatchNorm2d(4, affine=False), IMAGE),
    "BatchNorm2d without statistics": (lambda: nn.BatchNorm2d(4, track_running_stats=False), IMAGE),
    "BatchNorm3d": (lambda: nn.BatchNorm3d(2, momentum=0.3), VOLUME),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), IMAGE),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(4, affine=True), IMAGE),
    "LayerNorm": (lambda: nn.LayerNorm(8), ROWS),
    "LayerNorm without affine": (lambda: nn.LayerNorm([5, 8], elementwise_affine=False), ROWS),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(2), IMAGE),
    "AvgPool1d": (lambda: nn.AvgPool1d(2), LINE),
    "AvgPool2d": (lambda: nn.AvgPool2d(3, 2, 1), IMAGE),
    "AvgPool3d": (lambda: nn.AvgPool3d(2), VOLUME),
    "MaxPool1d": (lambda: nn.MaxPool1d(3, 2), LINE),
    "MaxPool2d": (lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True), IMAGE),
    "MaxPool3d": (lambda: nn.MaxPool3d(2), VOLUME),
    "AdaptiveAvgPool1d": (lambda: nn.AdaptiveAvgPool1d(5), LINE),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d((3, 2)), IMAGE),
    "AdaptiveAvgPool2d to one": (lambda: nn.AdaptiveAvgPool2d(1), IMAGE),
    "AdaptiveMaxPool2d": (lambda: nn.AdaptiveMaxPool2d(3), IMAGE),
    "Upsample nearest": (lambda: nn.Upsample(scale_factor=2), IMAGE),
    "Upsample bilinear": (lambda: nn.Upsample(size=(5, 7), mode="bilinear", align_corners=False), IMAGE),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), IMAGE),
    "ZeroPad2d": (lambda: nn.ZeroPad2d(2), IMAGE),
    "ReplicationPad2d": (lambda: nn.ReplicationPad2d(2), IMAGE),
    "Linear": (lambda: nn.Linear(8, 3), ROWS),
    "Linear without bias": (lambda: nn.Linear(8, 3, bias=False), ROWS),
    "PReLU": (lambda: nn.PReLU(4), IMAGE),
    "weight_norm": (lambda: nn.utils.weight_norm(nn.Linear(8, 3)), ROWS),
    "MultiheadAttention": (lambda: _Attention(need_weights=False), ROWS),
    "MultiheadAttention with weights": (lambda: _Attention(need_weights=True), ROWS),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0), ROWS),
    "TransformerEncoderLayer first norm": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True, dropout=0.0), ROWS),
}
MODULES.update({activation.__name__: (activation, ROWS) for activation in (
    nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.CELU, nn.SELU, nn.GELU, nn.SiLU, nn.Mish, nn.Sigmoid, nn.Tanh, nn.Hardswish,
    nn.Hardsigmoid, nn.Hardtanh, nn.Softplus, nn.Softsign, nn.LogSigmoid, nn.Tanhshrink, nn.Softshrink, nn.Hardshrink)})



def _baddbmm_of_nothing(x: torch.Tensor) -> torch.Tensor:
    """For matrices of this size PyTorch 1.13 multiplies uninitialized memory by beta = 0. A NaN in that memory makes
    the result of the model itself wrong."""
    long = x.repeat(1, 2, 1)
    return torch.baddbmm(torch.full((1, 10, 10), float("nan")), long, long.transpose(1, 2), beta=0, alpha=0.5)


FUNCTIONS = {
    "softmax": lambda x: x.softmax(-1), "log_softmax": lambda x: x.log_softmax(1), "glu": F.glu,
    "einsum": lambda x: torch.einsum("btc,bsc->bts", x, x), "matmul": lambda x: x @ x.transpose(1, 2),
    "cumsum": lambda x: x.cumsum(1), "logsumexp": lambda x: x.logsumexp(-1), "norm": lambda x: x.norm(dim=-1),
    "normalize": lambda x: F.normalize(x, dim=-1), "var": lambda x: x.var(-1), "std": lambda x: x.std(1, unbiased=False),
    "amax": lambda x: x.amax(1), "max": lambda x: x.max(dim=1)[0], "sort": lambda x: x.sort(dim=1)[0],
    "topk": lambda x: x.topk(2, dim=-1)[0], "gather": lambda x: x.gather(2, x.argmax(-1, keepdim=True)),
    "index": lambda x: x[:, torch.tensor([2, 0, 2])], "index_select": lambda x: x.index_select(1, torch.tensor([3, 1])),
    "flip": lambda x: x.flip(1), "roll": lambda x: x.roll(2, 1), "chunk": lambda x: x.chunk(2, -1)[1] * 2,
    "unbind": lambda x: x.unbind(1)[2], "stack": lambda x: torch.stack([x, x * 2], 1), "repeat": lambda x: x.repeat(1, 2, 1),
    "repeat_interleave": lambda x: x.repeat_interleave(3, 1), "expand": lambda x: x[:, None].expand(-1, 4, -1, -1) * 2,
    "where": lambda x: torch.where(x > 0, x, x * 0.1), "masked_fill": lambda x: x.masked_fill(x > 0.5, -1.0),
    "clamp": lambda x: x.clamp(-0.5, 0.5), "tril": lambda x: x.tril(), "pow": lambda x: x.abs() ** 1.5,
    "sqrt": lambda x: (x * x + 1).sqrt(), "erf": torch.erf, "atan2": lambda x: torch.atan2(x, x.flip(1)),
    "minimum": lambda x: torch.minimum(x, x.flip(-1)), "lerp": lambda x: torch.lerp(x, x.flip(1), 0.3),
    "addcmul": lambda x: torch.addcmul(x, x, x, value=0.5), "baddbmm": lambda x: torch.baddbmm(x[:, :, :5], x, x.transpose(1, 2)),
    "baddbmm of nothing": _baddbmm_of_nothing,
    "equal constants": lambda x: x * (torch.arange(8.0) + 1) + torch.arange(2, 18, 2, dtype=torch.int32) / 2
    + x * torch.arange(2, 18, 2),
    "cat with nothing": lambda x: torch.cat([torch.zeros(0), x, x * 2], -2),
    "full of truth": lambda x: torch.where(~torch.full((8,), True), x, x * 2), "mean": lambda x: x.mean((1, 2)), "prod": lambda x: x.prod(-1), "sum keeping": lambda x: x / x.sum(1, keepdim=True),
    "unfold": lambda x: x.unfold(1, 3, 1), "F.unfold": lambda x: F.unfold(x[:, None], 3), "diagonal": lambda x: x.diagonal(0, 1, 2),
    "movedim": lambda x: x.movedim(1, 2) + 1, "squeeze": lambda x: x[:, :1].squeeze(1), "squeeze several": lambda x: x[:, :1].sum((1, 2), keepdim=True).mean((1, 2)), "pad": lambda x: F.pad(x, (1, 2)),
    "one_hot of constants": lambda x: x + F.one_hot(torch.arange(5), 8), "scatter_add": lambda x: torch.zeros(
        x.size(0), 3, 8).scatter_add(1, torch.tensor([0, 2, 1, 1, 0])[None, :, None].expand(x.size(0), 5, 8), x),
    "grid_sample": lambda x: F.grid_sample(x[:, None], torch.linspace(-1, 1, 18).view(1, 3, 3, 2).expand(x.size(0), 3, 3, 2),
                                           align_corners=False),
    "interpolate": lambda x: F.interpolate(x, scale_factor=2.0, mode="linear"),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x.flip(1), dim=-1),
}
if not torch.__version__.startswith("1."):  # it cannot run hooks on saved tensors under a mode
    FUNCTIONS["checkpoint"] = lambda x: checkpoint(lambda y: (y * 2).tanh(), x, use_reentrant=False)
if "enable_gqa" in (getattr(F, "scaled_dot_product_attention", lambda: None).__doc__ or ""):
    FUNCTIONS["attention of grouped heads"] = lambda x: F.scaled_dot_product_attention(
        x.view(-1, 5, 4, 2).transpose(1, 2), x[..., :4].reshape(-1, 5, 2, 2).transpose(1, 2),
        x[..., 4:].reshape(-1, 5, 2, 2).transpose(1, 2), is_causal=True, enable_gqa=True)
    FUNCTIONS["attention where rows see nothing"] = lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=x[..., :5] > 1)
    FUNCTIONS["attention with a fully masked row"] = lambda x: F.scaled_dot_product_attention(
        x, x, x, attn_mask=torch.ones(5, 5).tril(-1).bool())
    FUNCTIONS["attention with a mask"] = lambda x: F.scaled_dot_product_attention(
        x, x, x, attn_mask=torch.zeros(5, 5).masked_fill(torch.ones(5, 5).triu(1).bool(), float("-inf")))

if hasattr(nn, "RMSNorm"):
    MODULES["RMSNorm"] = (lambda: nn.RMSNorm(8), ROWS)

ROUNDED = {**{name: 1e-5 for name in FUNCTIONS if name.startswith("attention")}, "attention with a mask": 2e-5, "baddbmm of nothing": 1e-6, "PReLU": 1e-5, "prod": 1e-6, "RMSNorm": 1e-5, "MultiheadAttention": 1e-5, "TransformerEncoderLayer": 1e-5,
           "TransformerEncoderLayer first norm": 1e-5}
"""Operations with PyTorch kernels of their own that packages decompose into plain operations."""


class _Attention(nn.Module):
    def __init__(self, need_weights: bool):
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 2, batch_first=True)
        self.need_weights = need_weights

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x, x, x, need_weights=self.need_weights)[0]


class Operations(unittest.TestCase):
    def check(self, module: nn.Module, shape: tuple, rounding: float) -> None:
        before = Function(lambda x: x)
        with Folder() as folder:
            torch.manual_seed(3)
            done, package = export_layers(folder, [("before", before), ("tested", module), ("after", Function(lambda x: x))],
                                          torch.randn(shape))
        for part in (part for graph in package.description["graphs"] for part in graph.values() if "takes" in part):
            self.assertEqual(len(part["takes"]), len(set(part["takes"])), "a value is used once")
        after = Function(lambda x: x)
        names = [p["name"] for layer in package.description["layers"] for p in layer["parameters"]]
        all_of = dict([(f"before.{n}", p) for n, p in before.named_parameters()] + [
            (f"tested.{n}", p) for n, p in module.named_parameters()] + [(f"after.{n}", p) for n, p in after.named_parameters()])
        input = torch.randn((7,) + shape[1:])
        target = torch.zeros(7)
        module.train()
        loss, gradients = eager(lambda x: after(boundary(module(boundary(before(x))))), [all_of[name] for name in names], input, target)
        step = package.train(input, target)
        self.assertLessEqual(done.largest_difference, rounding)
        if rounding == 0:
            self.assertTrue(torch.equal(step.loss, loss), (step.loss, loss))
        for name, gradient in zip(names, gradients):
            scale = gradient.abs().max().clamp(min=1e-30)
            worst = ((step.gradients[name] - gradient).abs().max() / scale).item()
            self.assertLessEqual(worst, rounding, name)

    def test_modules(self) -> None:
        for name, (make, shape) in MODULES.items():
            with self.subTest(name):
                torch.manual_seed(1)
                self.check(make(), shape, ROUNDED.get(name, 0))

    def test_functions(self) -> None:
        for name, function in FUNCTIONS.items():
            with self.subTest(name):
                torch.manual_seed(1)
                self.check(Function(function), ROWS, ROUNDED.get(name, 0))


if __name__ == "__main__":
    unittest.main()
