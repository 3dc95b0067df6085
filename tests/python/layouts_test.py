"""The result of an operation does not depend on the memory layout of its arguments, in the running PyTorch version."""

from __future__ import annotations

import copy
import unittest
import warnings
from typing import List

import torch
import torch.nn as nn

import operation_cases
from support import Folder, Function, eager, export_layers  # first: it finds the package
from motley import interpret, operations

TOLERANCE = 1e-4
"""Relative to the largest element: results in other layouts may be accumulated in another order."""

LARGE = 10_000
"""Elements of a tensor that the C++ test has too."""


def call(case: operation_cases.Case, tensors: List[torch.Tensor]) -> List[torch.Tensor]:
    """The results of the exporter's interpreter."""
    results = case.results or len(operations.find(case.op)._schema.returns)
    node = interpret.read_graph(case.graph(results)).nodes[0]
    made = interpret.run_node(node, dict(enumerate(tensors)), 1)
    return [tensor for tensor in made if tensor is not None]  # a gradient that was not requested is None


def distance(found: torch.Tensor, right: torch.Tensor) -> float:
    """The largest difference, relative to the largest element or to 1 if that is larger: values that are 0 without
    rounding are noise. Infinite if only one of them is finite."""
    if found.shape != right.shape or found.dtype != right.dtype:
        return float("inf")
    if not right.numel():
        return 0.0
    if not right.is_floating_point():
        return 0.0 if torch.equal(found.contiguous(), right.contiguous()) else float("inf")
    finite = torch.isfinite(right)
    if not torch.equal(finite, torch.isfinite(found)) or not torch.equal(
            torch.nan_to_num(found[~finite], nan=7.0), torch.nan_to_num(right[~finite], nan=7.0)):
        return float("inf")
    if not finite.any():
        return 0.0
    apart = float((found.double() - right.double())[finite].abs().max())
    return apart / max(float(right[finite].double().abs().max()), 1.0)


def fault(case: operation_cases.Case, tensors: List[torch.Tensor]) -> str:
    """The mismatch of the results for tensors in this layout, or an empty text."""
    right = call(case, [tensor.contiguous().clone(memory_format=torch.contiguous_format) for tensor in tensors])
    try:
        found = call(case, tensors)
    except (RuntimeError, IndexError) as error:
        return f"refused: {str(error).splitlines()[0]}"
    worst = max((distance(a, b) for a, b in zip(found, right)), default=0.0)
    return "" if worst <= TOLERANCE else f"{worst:.2g} of the largest element off"


class _Rows(nn.Module):
    """An image layer whose result is channels-last, so that its gradient is not contiguous."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.convolution, self.layer, self.linear = nn.Conv2d(3, 16, 3, padding=1), layer, nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.layer(self.convolution(x)).flatten(2).transpose(1, 2))


class Layouts(unittest.TestCase):
    def test_every_operation_has_a_case(self) -> None:
        self.assertEqual(sorted(operations.allowed() - {case.op for case in operation_cases.read()}), [])

    def test_layouts_do_not_change_results(self) -> None:
        warnings.simplefilter("ignore")
        for case in operation_cases.read():
            tensors = [operation_cases.make(spec, seed) for seed, spec in enumerate(case.tensors)]
            if any(tensor.numel() > LARGE for tensor in tensors):
                continue
            for variant in operation_cases.variants(case, tensors):
                wrong = fault(case, variant.tensors)
                self.assertEqual(wrong, "", f"{case.name}, {variant.name}")

    def test_gradients_that_are_not_contiguous(self) -> None:
        for layer in (nn.GELU(), nn.GELU(approximate="tanh"), nn.GroupNorm(4, 16), nn.BatchNorm2d(16), nn.Hardswish()):
            with self.subTest(str(layer)), Folder() as folder:
                torch.manual_seed(3)
                module = _Rows(layer)
                input, target = torch.randn(5, 3, 6, 7), torch.zeros(5)
                _, package = export_layers(folder, [("tested", module), ("after", Function(lambda x: x))], input)
                exact, after = copy.deepcopy(module).double().train(), Function(lambda x: x).double()
                names = [name for name, _ in module.named_parameters()]
                _, gradients = eager(lambda x: after(exact(x)), list(exact.parameters()), input.double(), target)
                step = package.train(input, target)
                for name, right in zip(names, gradients):
                    self.assertLessEqual(distance(step.gradients[f"tested.{name}"].double(), right), 1e-4, name)


if __name__ == "__main__":
    unittest.main()
