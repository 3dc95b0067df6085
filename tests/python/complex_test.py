"""Models with complex numbers and Fourier transforms are exported as real operations, with the results of PyTorch."""

from __future__ import annotations

import unittest
from typing import Any, Callable, Dict

import torch
import torch.nn as nn
import torch.nn.functional as F

from support import Folder, Function, eager, export_layers, motley, total
from motley.interpret import Package

WIDTH, LENGTH, VOCABULARY = 16, 6, 20


class RotaryBlock(nn.Module):
    """Attention whose positions are complex factors, as in Meta's Llama."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.q, self.k, self.v, self.o = nn.LayerNorm(WIDTH), *(nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        q, k, v = (each(y).view(*x.shape[:2], 2, -1) for each in (self.q, self.k, self.v))
        q, k = (self.turned(each, factors) for each in (q, k))
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        x = x + self.o((torch.softmax(q @ k.transpose(2, 3), -1) @ v).transpose(1, 2).flatten(2))
        return x + self.mlp(x)

    @staticmethod
    def turned(x: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * factors.view(1, factors.size(0), 1, -1)).flatten(3).type_as(x)


class Rotary(nn.Module):
    def __init__(self, is_buffer: bool) -> None:
        super().__init__()
        self.embed, self.blocks, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.ModuleList(RotaryBlock() for _ in range(2)), nn.Linear(WIDTH, VOCABULARY)
        self.is_buffer = is_buffer
        self.register_buffer("factors", self.computed(), persistent=False)

    @staticmethod
    def computed() -> torch.Tensor:
        angles = torch.outer(torch.arange(8.0), 1 / 100 ** (torch.arange(0, WIDTH // 2, 2) / (WIDTH // 2)))
        return torch.polar(torch.ones_like(angles), angles)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        factors = (self.factors if self.is_buffer else self.computed())[:ids.size(1)]
        for block in self.blocks:
            x = block(x, factors)
        return self.head(x)


class Mixer(nn.Module):
    """Blocks that mix positions by a Fourier transform; `mix` has its call."""

    def __init__(self, mix: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.begin, self.end = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 3)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(2))
        self.mix = mix

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.begin(x)
        for block in self.blocks:
            x = x + block(self.mix(x))
        return self.end(x)


FILTER = torch.randn(LENGTH // 2 + 1, WIDTH, dtype=torch.complex64, generator=torch.Generator().manual_seed(3))

MIXES: Dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "two dimensions": lambda x: torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real,
    "fft2": lambda x: torch.fft.fft2(x, norm="ortho").imag,
    "a filter": lambda x: torch.fft.irfft(torch.fft.rfft(x, dim=1) * FILTER, n=x.size(1), dim=1),
    "a filter of an odd length": lambda x: torch.fft.irfft(torch.fft.rfft(x[:, 1:], dim=1) * FILTER[:3], n=x.size(1) - 1, dim=1).repeat(1, 2, 1)[:, :x.size(1)],
    "inverse": lambda x: torch.fft.ifft(torch.fft.fft(x, dim=1).roll(1, 1), dim=1).real,
    "absolute values": lambda x: torch.fft.fft(x, dim=1).abs(),
}


def pairs(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))


def real(z: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(z.resolve_conj()).flatten(1)


OPERATIONS: Dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "products": lambda x: real(pairs(x) * pairs(x).conj() * (0.5 + 2j) * 3.0 * x[..., ::2]),
    "quotients": lambda x: real((pairs(x) / (pairs(x).conj() * 0.5 + 4) / 2.0).reciprocal() / (2 + 1j)),
    "sums": lambda x: real(pairs(x) + x[..., ::2] - 2.0 * pairs(x).conj() + (1 - 1j) - x[..., 1::2] + (1.0 - pairs(x))),
    "exponential": lambda x: real(torch.exp(pairs(x) * 0.3)),
    "polar": lambda x: real(torch.polar(x.abs() + 0.5, x)),
    "made of parts": lambda x: real(torch.complex(x, x.sin())),
    "angles": lambda x: pairs(x).angle() + pairs(x).abs() + real(torch.sgn(pairs(x)))[:, ::2].reshape(pairs(x).shape),
    "turned": lambda x: real(pairs(x).transpose(-1, 0).unsqueeze(-1).transpose(0, 1).squeeze(-1).contiguous()),
    "parts": lambda x: real(torch.cat([pairs(x)[:, :1] * 2j, pairs(x)[..., 1:], torch.stack(list(pairs(x).unbind(1)), 1)], 1)),
    "reduced": lambda x: real(pairs(x) - pairs(x).mean(-1, keepdim=True)) + pairs(x).sum(-1, keepdim=True).real,
    "matrices": lambda x: real(pairs(x).unsqueeze(1).transpose(1, 2) @ pairs(x).conj().unsqueeze(1)),
    "selected": lambda x: real(torch.where(x[..., ::2] > 0, pairs(x), pairs(x) * 1j)) + pairs(x).flip(-1).imag[:, :1],
}


def apart(found: torch.Tensor, right: torch.Tensor) -> float:
    return float((found - right).abs().max() / right.abs().max().clamp_min(1e-3))


class ComplexModels(unittest.TestCase):
    def compare(self, package: Package, model: nn.Module, input: torch.Tensor, target: torch.Tensor, loss: Any = total) -> None:
        names = dict(model.named_parameters())
        value, gradients = eager(model, list(names.values()), input, target, loss)
        step = package.train(input, target)
        self.assertLessEqual(apart(step.loss, value), 1e-5)
        for name, right in zip(names, gradients):
            self.assertLessEqual(apart(step.gradients[name], right), 1e-5, name)

    def test_rotary_positions(self) -> None:
        def loss(output: torch.Tensor, target: torch.Tensor) -> Any:
            return F.cross_entropy(output.flatten(0, 1), target.flatten(), reduction="sum"), torch.full((), target.numel(), dtype=torch.int64)

        for is_buffer in (False, True):
            with self.subTest(is_buffer=is_buffer), Folder() as folder:
                torch.manual_seed(1)
                model, ids = Rotary(is_buffer), torch.randint(VOCABULARY, (2, LENGTH))
                done, package = export_layers(folder, motley.split(model, ids), ids, loss, ids, target_limit=VOCABULARY)
                self.assertGreaterEqual(done.layers, 2)
                more = torch.randint(VOCABULARY, (5, LENGTH))
                self.compare(package, model, more, more, loss)

    def test_fourier_transforms(self) -> None:
        for what, mix in MIXES.items():
            with self.subTest(what), Folder() as folder:
                torch.manual_seed(1)
                model, input = Mixer(mix), torch.randn(2, LENGTH, WIDTH)
                done, package = export_layers(folder, motley.split(model, input), input)
                self.assertGreaterEqual(done.layers, 2)
                self.compare(package, model, torch.randn(3, LENGTH, WIDTH), torch.zeros(3))

    def test_operations_of_a_layer_by_hand(self) -> None:
        for what, operation in OPERATIONS.items():
            with self.subTest(what), Folder() as folder:
                torch.manual_seed(1)
                model, input = Function(operation), torch.randn(2, 4)
                done, package = export_layers(folder, [("all", model)], input)
                value, (gradient,) = eager(model, [model.weight], input, torch.zeros(2))
                step = package.train(input, torch.zeros(2))
                self.assertLessEqual(apart(step.loss, value), 1e-5)
                self.assertLessEqual(apart(step.gradients["all.weight"], gradient), 1e-5)

    def test_the_gradient_of_an_absolute_value_at_0_is_0(self) -> None:
        class Length(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.line = nn.Linear(4, 4, bias=False)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return pairs(self.line(x) * (x > 0)).abs()

        with Folder() as folder:
            torch.manual_seed(1)
            model, input = Length(), torch.tensor([[1.0, 1.0, -1.0, -1.0], [1.0, -1.0, -1.0, -1.0]])
            _, package = export_layers(folder, motley.split(model, input), input)
            self.compare(package, model, input, torch.zeros(2))


if __name__ == "__main__":
    unittest.main()
