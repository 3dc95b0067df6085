"""Models that are created without weights, whose initialisers and constructors ask for values."""

from __future__ import annotations

import unittest

import torch
import torch.nn as nn

from support import motley

from motley.virtual import Virtual

_FUNCTIONS = ("uniform_", "normal_", "trunc_normal_", "ones_", "zeros_", "eye_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_",
              "kaiming_normal_", "orthogonal_")


def drawn_within_bounds_(tensor: torch.Tensor, bound: float) -> torch.Tensor:
    """As `trunc_normal_` of PyTorch 2.15, whose loops are of both kinds."""
    with torch.no_grad():
        tensor.normal_()
        while not (tensor.abs() <= bound).all():
            tensor.normal_()
        while True:
            outside = tensor.abs() > bound
            if not outside.any():
                return tensor
            tensor.copy_(torch.where(outside, torch.empty_like(tensor).normal_(), tensor))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(3, 5))
        self.further = nn.Conv2d(3, 4, 3)
        self.register_buffer("table", torch.empty(64))
        nn.init.trunc_normal_(self.table, std=0.5, a=-0.5, b=0.5)
        drawn_within_bounds_(self.weight, 1.0)
        for name in _FUNCTIONS:
            getattr(nn.init, name)(tensor=self.weight)
        nn.init.trunc_normal_(self.weight, mean=3.0, std=0.1, a=-1.0, b=1.0)
        nn.init.constant_(self.weight, 2.0)
        nn.init.sparse_(self.weight, 0.5)
        nn.init.dirac_(self.further.weight)


class WithoutWeights(unittest.TestCase):
    def test_initialisers_have_no_effect_on_parameters_and_compute_buffers(self) -> None:
        code = nn.init.trunc_normal_.__code__
        with motley.without_weights():
            with motley.without_weights():
                nn.Linear(2, 3)
            model = Net()
        self.assertTrue(all(isinstance(parameter, Virtual) for parameter in model.parameters()))
        self.assertLessEqual(float(model.table.abs().max()), 0.5)
        self.assertGreater(float(model.table.std()), 0.1)
        self.assertIs(nn.init.trunc_normal_.__code__, code)
        values = nn.init.constant_(torch.empty(4), 3.0)
        self.assertEqual(values.tolist(), [3.0] * 4)

    def test_initialisers_that_were_imported_by_name(self) -> None:
        imported = nn.init.orthogonal_

        class Wide(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.weight = nn.Parameter(torch.empty(3, 5))
                imported(self.weight, 2.0)

        with motley.without_weights():
            self.assertEqual(Wide().weight.shape, (3, 5))

    def test_an_error_in_a_constructor_restores_the_initialisers(self) -> None:
        with self.assertRaises(ZeroDivisionError), motley.without_weights():
            1 / 0
        self.assertEqual(nn.init.ones_(torch.empty(2)).tolist(), [1.0, 1.0])
        self.assertNotIsInstance(nn.Linear(2, 2).weight, Virtual)

    def test_constructors_that_depend_on_weights_are_refused(self) -> None:
        class Branch(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = nn.Linear(3, 3)
                if (self.layer.weight > 0).any():
                    self.more = nn.Linear(3, 3)

        class Number(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = nn.Linear(3, 3)
                self.init_scale()

            def init_scale(self) -> None:
                self.register_buffer("scale", torch.tensor(self.layer.weight.max().item()))

        def init(make: type) -> None:
            with motley.without_weights():
                make()

        for make in (Branch, Number):
            with self.assertRaisesRegex(motley.ExportError, "a constructor needs the values of weights.*export it from memory, without folder="):
                init(make)

    def test_values_for_parameters_without_values_are_refused(self) -> None:
        with motley.without_weights():
            model = nn.Linear(3, 4)
        for strict in (True, False):
            with self.assertRaisesRegex(RuntimeError, "created in motley.without_weights.* and has no values"):
                model.load_state_dict(nn.Linear(3, 4).state_dict(), strict=strict)
        with self.assertRaisesRegex(motley.ExportError, "writes into a parameter .* pass folder= with the weights"):
            nn.init.zeros_(model.weight)
        with self.assertRaisesRegex(motley.ExportError, "writes into a parameter"):
            model.weight.data[0] = torch.ones(3)

    def test_models_of_torchvision(self) -> None:
        try:
            import torchvision
        except ImportError:
            self.skipTest("needs torchvision")
        for make in (torchvision.models.vit_b_16, torchvision.models.convnext_tiny, torchvision.models.swin_t):
            with motley.without_weights():
                model = make()
            self.assertTrue(all(isinstance(parameter, Virtual) for parameter in model.parameters()), make.__name__)


if __name__ == "__main__":
    unittest.main()
