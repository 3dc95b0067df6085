"""Mixtures of experts of transformers, whose implementations depend on the routing, are exported as their authors wrote them."""

from __future__ import annotations

import types
import unittest
import warnings
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from support import Folder, eager, export_layers, motley

WIDTH, INNER, EXPERTS, CHOICES = 8, 12, 4, 2


class Experts(nn.Module):
    """As transformers' `use_experts_implementation` leaves a class, with a forward that loops over the experts that have tokens."""

    def __init__(self, has_gate: bool, has_bias: bool, is_transposed: bool, has_post_expert_norm: bool, implementation: str):
        super().__init__()
        self.config = types.SimpleNamespace(_experts_implementation=implementation)
        self.has_gate, self.has_bias, self.is_transposed, self.has_post_expert_norm = has_gate, has_bias, is_transposed, has_post_expert_norm
        self.num_experts = EXPERTS
        if not has_gate:  # those with a gate of their own, as of GPT-OSS, have no act_fn
            self.act_fn = nn.SiLU()
        self._is_expert_parallel = False

        def weight(inputs: int, outputs: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(EXPERTS, *((inputs, outputs) if is_transposed else (outputs, inputs))) / inputs ** 0.5)

        name = "gate_up_proj" if has_gate else "up_proj"
        outputs = 2 * INNER if has_gate else INNER
        setattr(self, name, weight(WIDTH, outputs))
        self.down_proj = weight(INNER, WIDTH)
        if has_bias:
            setattr(self, name + "_bias", nn.Parameter(torch.randn(EXPERTS, outputs)))
            self.down_proj_bias = nn.Parameter(torch.randn(EXPERTS, WIDTH))
        if has_post_expert_norm:
            self.post_expert_norm = nn.LayerNorm(WIDTH)

    def _apply_gate(self, both: torch.Tensor) -> torch.Tensor:
        gate, up = both.chunk(2, -1)
        return F.silu(gate) * up

    def forward(self, tokens: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        name = "gate_up_proj" if self.has_gate else "up_proj"
        total = torch.zeros_like(tokens)
        for k in range(EXPERTS):
            token, choice = torch.where(experts == k)
            if len(token) == 0:
                continue

            def linear(x: torch.Tensor, name: str) -> torch.Tensor:
                weight = getattr(self, name)[k]
                return F.linear(x, weight.t() if self.is_transposed else weight, getattr(self, name + "_bias")[k] if self.has_bias else None)

            hidden = linear(tokens[token], name)
            result = linear(self._apply_gate(hidden) if self.has_gate else self.act_fn(hidden), "down_proj")
            if self.has_post_expert_norm:
                result = self.post_expert_norm(result)
            total = total.index_add(0, token, result * weights[token, choice, None])
        return total


class Block(nn.Module):
    def __init__(self, **options: Any):
        super().__init__()
        self.norm, self.router, self.experts = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, EXPERTS), Experts(**options)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.norm(x).flatten(0, 1)
        weights, chosen = self.router(tokens).softmax(-1).topk(CHOICES, -1)
        return x + self.experts(tokens, chosen, weights / weights.sum(-1, keepdim=True)).view(x.shape)


class Model(nn.Module):
    def __init__(self, **options: Any):
        super().__init__()
        self.blocks, self.head = nn.ModuleList(Block(**options) for _ in range(2)), nn.Linear(WIDTH, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class MixturesOfExperts(unittest.TestCase):
    def test_are_computed_for_all_tokens(self) -> None:
        for has_gate, has_bias, is_transposed, has_norm in ((True, False, False, False), (True, True, True, False), (False, True, False, True)):
            with self.subTest(has_gate=has_gate, is_transposed=is_transposed), Folder() as folder, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.manual_seed(1)
                model = Model(has_gate=has_gate, has_bias=has_bias, is_transposed=is_transposed, has_post_expert_norm=has_norm,
                              implementation="grouped_mm")
                input = torch.randn(2, 5, WIDTH)
                done, package = export_layers(folder, motley.split(model, input), input)
                self.assertGreaterEqual(done.layers, 2)
                self.assertEqual([notice for notice in done.notices if "experts" in notice],
                                 ["each of the 4 experts of Experts computes all tokens, since the operations of a package do not depend on the "
                                  "routing: more products than in transformers, for the same results"])
                self.assertTrue(all("forward" not in vars(block.experts) for block in model.blocks))
                more, names = torch.randn(3, 5, WIDTH), dict(model.named_parameters())
                value, gradients = eager(model, list(names.values()), more, torch.zeros(3))
                step = package.train(more, torch.zeros(3))
                self.assertLessEqual(float((step.loss - value).abs() / value.abs()), 1e-5)
                for name, right in zip(names, gradients):
                    self.assertLessEqual(float((step.gradients[name] - right).abs().max() / right.abs().max()), 1e-5, name)

    def test_a_list_by_hand_works_too(self) -> None:
        with Folder() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(1)
            model = Model(has_gate=True, has_bias=False, is_transposed=False, has_post_expert_norm=False, implementation="eager")
            done, _ = export_layers(folder, [*((f"blocks.{k}", block) for k, block in enumerate(model.blocks)), ("head", model.head)],
                                    torch.randn(2, 5, WIDTH), model=model)
            self.assertEqual(done.layers, 3)

    def test_an_implementation_that_packages_support_stays(self) -> None:
        model = Model(has_gate=True, has_bias=False, is_transposed=False, has_post_expert_norm=False, implementation="batched_mm")
        with self.assertRaisesRegex(motley.ExportError, "aten::nonzero"):
            motley.split(model, torch.randn(2, 5, WIDTH))


if __name__ == "__main__":
    unittest.main()
