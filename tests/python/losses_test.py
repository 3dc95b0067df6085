"""Losses: their sum and count against PyTorch's means, and their description in a package."""

from __future__ import annotations

import unittest
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from support import Folder, motley
from motley.interpret import Package

CLASSES = 5
WEIGHTS = torch.tensor([0.5, 2.0, 1.0, 0.25, 3.0])

BEFORE_THE_LOSS = {"probabilities of yes": nn.Sigmoid, "divergence": lambda: nn.LogSoftmax(1), "divergence, by element": lambda: nn.LogSoftmax(1),
                   "log probabilities": lambda: nn.LogSoftmax(1), "weighted log probabilities": lambda: nn.LogSoftmax(1)}


def some_ignored(shape: tuple, ignored: int) -> torch.Tensor:
    target = torch.randint(CLASSES, shape)
    target.view(-1)[:2] = ignored
    return target


def mean_of_last(loss: nn.Module) -> Any:
    return lambda output, target: loss(output.transpose(1, 2), target)


def own(output: torch.Tensor, target: torch.Tensor) -> Any:
    return F.smooth_l1_loss(output, target, reduction="sum"), torch.full((), target.numel())


CASES = {
    # what: loss, PyTorch's call, output shape per sample, target of n samples
    "classes": (nn.CrossEntropyLoss(), nn.CrossEntropyLoss(), (CLASSES,), lambda n: torch.randint(CLASSES, (n,))),
    "classes, a function": (F.cross_entropy, F.cross_entropy, (CLASSES,), lambda n: torch.randint(CLASSES, (n,))),
    "ignored": (nn.CrossEntropyLoss(ignore_index=2), nn.CrossEntropyLoss(ignore_index=2), (CLASSES,), lambda n: some_ignored((n,), 2)),
    "smoothed": (nn.CrossEntropyLoss(label_smoothing=0.1), nn.CrossEntropyLoss(label_smoothing=0.1), (CLASSES,),
                 lambda n: torch.randint(CLASSES, (n,))),
    "pixels": (nn.CrossEntropyLoss(), nn.CrossEntropyLoss(), (CLASSES, 3, 4), lambda n: some_ignored((n, 3, 4), -100)),
    "tokens": (nn.CrossEntropyLoss(), mean_of_last(nn.CrossEntropyLoss()), (7, CLASSES), lambda n: some_ignored((n, 7), -100)),
    "probabilities": (nn.CrossEntropyLoss(), nn.CrossEntropyLoss(), (CLASSES,), lambda n: torch.rand(n, CLASSES).softmax(1)),
    "squares": (nn.MSELoss(), nn.MSELoss(), (4, 2), lambda n: torch.randn(n, 4, 2)),
    "squares, a function": (F.mse_loss, F.mse_loss, (4,), lambda n: torch.randn(n, 4)),
    "distances": (nn.L1Loss(), nn.L1Loss(), (4,), lambda n: torch.randn(n, 4)),
    "yes or no": (nn.BCEWithLogitsLoss(), nn.BCEWithLogitsLoss(), (4,), lambda n: torch.rand(n, 4).round()),
    "yes or no, weighted": (nn.BCEWithLogitsLoss(weight=torch.rand(4), pos_weight=torch.rand(4) * 3), None, (4,), lambda n: torch.rand(n, 4).round()),
    "smooth distances": (nn.SmoothL1Loss(beta=0.5), None, (4,), lambda n: torch.randn(n, 4)),
    "Huber": (nn.HuberLoss(delta=0.3), None, (4, 2), lambda n: torch.randn(n, 4, 2)),
    "Huber, a function": (F.huber_loss, F.huber_loss, (4,), lambda n: torch.randn(n, 4)),
    "probabilities of yes": (nn.BCELoss(), None, (4,), lambda n: torch.rand(n, 4).round()),
    "divergence": (nn.KLDivLoss(reduction="batchmean"), None, (4,), lambda n: torch.rand(n, 4).softmax(1)),
    "divergence, by element": (nn.KLDivLoss(log_target=True), None, (4,), lambda n: torch.rand(n, 4).log_softmax(1)),
    "counts": (nn.PoissonNLLLoss(), None, (4,), lambda n: torch.randint(9, (n, 4)).float()),
    "margins": (nn.SoftMarginLoss(), None, (4,), lambda n: torch.randint(2, (n, 4)).float() * 2 - 1),
    "log probabilities": (nn.NLLLoss(ignore_index=2), None, (CLASSES,), lambda n: some_ignored((n,), 2)),
    "weighted classes": (nn.CrossEntropyLoss(weight=WEIGHTS), None, (CLASSES,), lambda n: some_ignored((n,), -100)),
    "weighted classes, smoothed": (nn.CrossEntropyLoss(weight=WEIGHTS.double(), label_smoothing=0.2), nn.CrossEntropyLoss(WEIGHTS, label_smoothing=0.2),
                                   (CLASSES,), lambda n: torch.randint(CLASSES, (n,))),
    "weighted pixels": (nn.CrossEntropyLoss(weight=WEIGHTS), None, (CLASSES, 3, 4), lambda n: some_ignored((n, 3, 4), -100)),
    "weighted tokens": (nn.CrossEntropyLoss(weight=WEIGHTS), mean_of_last(nn.CrossEntropyLoss(weight=WEIGHTS)), (7, CLASSES),
                        lambda n: some_ignored((n, 7), -100)),
    "weighted probabilities": (nn.CrossEntropyLoss(weight=WEIGHTS), None, (CLASSES,), lambda n: torch.rand(n, CLASSES).softmax(1)),
    "weighted log probabilities": (nn.NLLLoss(weight=WEIGHTS), None, (CLASSES,), lambda n: torch.randint(CLASSES, (n,))),
    "own": (own, nn.SmoothL1Loss(), (4,), lambda n: torch.randn(n, 4)),
}
UNITS = {"pixels": 12, "tokens": 7, "squares": 8, "squares, a function": 4, "distances": 4, "yes or no": 4, "own": 4, "yes or no, weighted": 4,
         "smooth distances": 4, "Huber": 8, "Huber, a function": 4, "probabilities of yes": 4, "divergence": 4, "divergence, by element": 4,
         "counts": 4, "margins": 4, "weighted pixels": 12, "weighted tokens": 7}


class Losses(unittest.TestCase):
    def test_mean_and_gradient(self) -> None:
        for what, (loss, mean, shape, target_of) in CASES.items():
            with self.subTest(what), Folder() as folder:
                torch.manual_seed(1)
                inner = shape[-1]
                model = nn.Sequential(nn.Linear(inner, inner), nn.Tanh(), nn.Linear(inner, inner), BEFORE_THE_LOSS.get(what, nn.Identity)())
                mean = mean or loss
                done = motley.export(motley.split(model), loss, (torch.randn((2,) + shape), target_of(2)), folder.path("x"))
                package = Package.open(done.path)
                input, target = torch.randn((6,) + shape), target_of(6)
                output = model(input)
                right = mean(output, target)
                right.backward()
                step = package.train(input, target)
                self.assertAlmostEqual(float(step.loss / step.count), float(right), places=6)
                for name, parameter in model.named_parameters():
                    self.assertTrue(torch.allclose(step.gradients[name] / step.count, parameter.grad, rtol=1e-5, atol=1e-7), name)
                total, count, correct = package.evaluate(input, target)
                self.assertTrue(torch.allclose(total, step.loss, rtol=1e-6))
                self.assertEqual(float(count), float(step.count))
                self.assertEqual(package.description["units_per_sample"], UNITS.get(what, 1))
                if not what.startswith("weighted"):
                    self.assertLessEqual(float(step.count), 6 * package.description["units_per_sample"])
                if target.dtype == torch.int64:
                    dim = -1 if what.endswith("tokens") else 1
                    counted = target != package.description["ignored"]
                    right_ones = target[(output.argmax(dim) == target) & counted]
                    weights = getattr(loss, "weight", None)
                    self.assertAlmostEqual(float(correct), len(right_ones) if weights is None else float(weights[right_ones].sum()), places=5)
                    self.assertEqual(package.description["target_limit"], CLASSES)
                else:
                    self.assertIsNone(correct)

    def test_what_does_not_fit_is_said(self) -> None:
        class Own(nn.CrossEntropyLoss):
            def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
                return super().forward(input, target) * 2

        class Result(dict):
            logits = torch.zeros(2)

        numbers, classes, x = torch.randn(2, 2), torch.tensor([0, 1]), torch.randn(2, 3)
        plain, whole = nn.Linear(3, 2), nn.CrossEntropyLoss()
        for call, loss, target, message in (
                (plain, nn.MSELoss(), classes[:, None].repeat(1, 2), r"compares numbers, but the target is int64.*target.float\(\)"),
                (nn.Linear(3, 1), nn.HuberLoss(), numbers[:, 0], r"target.reshape\(-1, 1\)"), (plain, whole, numbers[:, 0], r"of float32.*target.long\(\)"),
                (plain, whole, classes[:, None], "one class per row of the output"), (plain, whole, numbers.long(), r"target.argmax\(1\)"),
                (plain, nn.CrossEntropyLoss(weight=torch.ones(3)), classes, "weights of 3 classes, but the output has 2"),
                (plain, Own(), classes, "Own differs from its base class CrossEntropyLoss"), (lambda t: Result(), whole, classes, r"a Result.*model\(x\).logits"),
                (plain, nn.BCEWithLogitsLoss(weight=torch.ones(2, 2)), numbers, "the first dimension|whose first dimension")):
            with self.subTest(message), Folder() as folder, self.assertRaisesRegex(motley.ExportError, message):
                motley.export([("a", call), ("b", plain)][:1] if call is not plain else [("a", plain)], loss, (x, target), folder.path("x"), model=nn.ModuleList(
                    [plain] + ([call] if isinstance(call, nn.Linear) and call is not plain else [])))

    def test_losses_that_are_changed(self) -> None:
        class Called(nn.CrossEntropyLoss):
            def __call__(self, output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
                return super().__call__(output, target) * 2

        class Pair(nn.CrossEntropyLoss):
            def forward(self, output: torch.Tensor, target: torch.Tensor) -> Any:
                return 2 * F.cross_entropy(output, target, reduction="sum"), torch.full((), target.numel())
        replaced, after, before, behind = nn.MSELoss(), nn.CrossEntropyLoss(), nn.CrossEntropyLoss(), nn.NLLLoss()
        replaced.forward = lambda output, target: 5 * F.mse_loss(output, target)  # type: ignore[assignment]
        after.register_forward_hook(lambda module, inputs, output: output * 7)
        before.register_forward_pre_hook(lambda module, inputs: (inputs[0] * 2, inputs[1]))
        behind.register_full_backward_hook(lambda module, of_inputs, of_outputs: None)
        model, x, classes = nn.Linear(3, 2), torch.randn(2, 3), torch.tensor([0, 1])
        for loss, target, message in ((Called(), classes, "Called differs from its base class CrossEntropyLoss"),
                                      (replaced, torch.randn(2, 2), "MSELoss differs from PyTorch's: it has hooks or its own forward"),
                                      (after, classes, "it has hooks"), (before, classes, "it has hooks"), (behind, classes, "it has hooks")):
            with self.subTest(message), Folder() as folder, self.assertRaisesRegex(motley.ExportError, message):
                motley.export([("a", model)], loss, (x, target), folder.path("x"))
        with Folder() as folder:
            package = Package.open(motley.export([("a", model)], Pair(), (x, classes), folder.path("x"), target_limit=2).path)
            self.assertAlmostEqual(float(package.train(x, classes).loss), 2 * float(F.cross_entropy(model(x), classes, reduction="sum")), places=5)

    def test_classes_that_may_be_second_or_last(self) -> None:
        def last(output: torch.Tensor, target: torch.Tensor) -> Any:
            return F.cross_entropy(output.flatten(0, -2), target.flatten(), reduction="sum"), (target != -100).sum()

        def second(output: torch.Tensor, target: torch.Tensor) -> Any:
            return F.cross_entropy(output, target, reduction="sum"), (target != -100).sum()
        model, ids = nn.Sequential(nn.Embedding(8, 4), nn.Linear(4, 8)), torch.randint(8, (2, 9))
        square = ids[:, :-1], ids[:, 1:]
        for loss in (nn.CrossEntropyLoss(), F.cross_entropy, nn.CrossEntropyLoss(ignore_index=0)):
            with Folder() as folder, self.assertRaisesRegex(motley.ExportError, r"\(2, 8, 8\) and the target \(2, 8\): the classes may be the output's second"):
                motley.export(motley.split(model), loss, square, folder.path("x"))
        for own, output in ((last, lambda ids: model(ids).transpose(1, 2)), (second, model)):
            with Folder() as folder:
                package = Package.open(motley.export(motley.split(model), own, square, folder.path("x"), target_limit=8).path)
                step = package.train(*square)
                self.assertAlmostEqual(float(step.loss / step.count), float(F.cross_entropy(output(square[0]), square[1])), places=5)
        with Folder() as folder:
            motley.export(motley.split(model), nn.CrossEntropyLoss(), (ids[:, :-2], ids[:, 1:-1]), folder.path("x"))
            motley.export(motley.split(model), nn.CrossEntropyLoss(), (square[0], torch.rand(2, 8, 8).softmax(1)), folder.path("y"))

    def test_targets_and_outputs_that_do_not_fit(self) -> None:
        layers, input = [("a", nn.Linear(4, 4))], torch.randn(2, 4)
        whole_numbers = torch.ones(2, 4, dtype=torch.int64)
        for given, loss, target, message in (
                (layers, nn.MSELoss(), whole_numbers, r"compares numbers, but the target is int64. Pass target.float\(\)"),
                (layers, nn.BCEWithLogitsLoss(), whole_numbers, "compares numbers, but the target is int64"),
                (layers, nn.CrossEntropyLoss(), torch.ones(2), "the output has shape .2, 4. and the target .2,., of float32. Pass target.long"),
                ([("a", lambda x: {"scores": layers[0][1](x)})], nn.CrossEntropyLoss(), whole_numbers[:, 0], "the last layer returns a dict, but the loss takes a tensor"),
                ([("a", lambda x: (layers[0][1](x),))], nn.L1Loss(), input, "the last layer returns a tuple, but the loss takes a tensor")):
            with self.subTest(message), Folder() as folder, self.assertRaisesRegex(motley.ExportError, message):
                motley.export(given, loss, (input, target), folder.path("x"), model=layers[0][1])


if __name__ == "__main__":
    unittest.main()
