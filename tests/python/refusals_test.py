"""What cannot be a package is refused by name, with the module, the line and what to do; what can be works, to the bit."""

from __future__ import annotations

import copy
import os
import unittest
from typing import Any, Callable, List, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F

from support import Folder, Function, boundary, eager, export_layers, motley, total

X = torch.randn(2, 4, generator=torch.Generator().manual_seed(1))
OUTSIDE = torch.full((4,), 0.5)
TRAINED = torch.full((4,), 0.5, requires_grad=True)


class Twice(torch.autograd.Function):
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
    ("custom autograd function", lambda: Function(Twice.apply)),
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


def between(middle: Any) -> List[Tuple[str, Any]]:
    return [("before", nn.Linear(4, 4)), ("middle", middle), ("after", Function(lambda x: x))]


class Refusals(unittest.TestCase):
    def test_is_refused(self) -> None:
        for what, make, message in REFUSED:
            with self.subTest(what), Folder() as folder:
                with self.assertRaises(motley.ExportError) as caught:
                    export_layers(folder, between(make()), X)
                text = str(caught.exception)
                self.assertIn(message, text)
                self.assertIn("middle", text)
                self.assertTrue(caught.exception.remedy)
                self.assertEqual(os.listdir(folder.path("")), [], "half a package")

    def test_names_the_line(self) -> None:
        with Folder() as folder, self.assertRaises(motley.ExportError) as caught:
            export_layers(folder, between(Function(branches)), X)
        number = branches.__code__.co_firstlineno + 1
        self.assertEqual(caught.exception.line, f"{branches.__code__.co_filename}:{number}")
        self.assertEqual(caught.exception.module, "middle")

    def test_works(self) -> None:
        for what, make in WORKS:
            with self.subTest(what), Folder() as folder:
                torch.manual_seed(0)
                layers = between(make())
                done, package = export_layers(folder, layers, X)
                self.assertEqual(done.largest_difference, 0)
                self._same(package, layers)

    def _same(self, package: Any, layers: List[Tuple[str, Any]]) -> None:
        parameters = {f"{name}.{key}": p for name, module in layers for key, p in module.named_parameters()}

        def run(x: Any) -> Any:
            for k, (_, module) in enumerate(layers):
                x = module(boundary(x) if k else x)
            return x
        input, target = torch.randn(7, 4), torch.zeros(7)
        loss, gradients = eager(run, list(parameters.values()), input, target)
        step = package.train(input, target)
        self.assertTrue(torch.equal(step.loss, loss))
        for name, gradient in zip(parameters, gradients):
            self.assertTrue(torch.equal(step.gradients[name], gradient), name)

    def test_structures_cross(self) -> None:
        for make in (lambda x: (x, x * 2), lambda x: [x.sin(), x], lambda x: {"a": x, "b": x.relu()}):
            with Folder() as folder:
                layers = [("before", nn.Linear(4, 4)), ("makes", Function(make)), ("takes", Takes()), ("after", Function(lambda x: x))]
                _, package = export_layers(folder, layers, X)
                self.assertEqual(len(package.description["layers"][1]["outputs"]), 2)
                self._same(package, layers)

    def test_what_passes_by_costs_nothing(self) -> None:
        with Folder() as folder:
            layers = [("before", Function(lambda x: (x, x * 2))), ("by", Function2()), ("after", Takes())]
            _, package = export_layers(folder, layers, X)
            forward = package.description["graphs"][package.description["layers"][1]["graph"]]["forward"]
            self.assertIn(["output:0", 0], forward["gives"])

    def test_shared_modules(self) -> None:
        shared = nn.Linear(4, 4)
        model = nn.ModuleDict({"a": shared, "b": nn.Linear(4, 4), "c": shared})
        with Folder() as folder:
            layers = [("a", shared), ("b", model["b"]), ("c", shared)]
            done, package = export_layers(folder, layers, X, model=model)
            self.assertTrue(package.description["layers"][2]["parameters"][0]["tied"])
            self.assertEqual(package.description["aliases"], {"c.weight": "a.weight", "c.bias": "a.bias"})
            with self.assertRaisesRegex(motley.ExportError, "used by layer 0 and by layer 1"):
                export_layers(folder, [("a", shared), ("c", shared), ("b", model["b"])], X, model=model)

    def test_examples(self) -> None:
        layers = [("a", nn.Linear(4, 3))]
        with Folder() as folder:
            for example, message in ((((X, X), X), "pair of two tensors"), ((X.int(), X), "int32"), ((X, X[:1]), "2 inputs and 1"),
                                     ((X[:0], X[:0]), "no samples")):
                with self.assertRaisesRegex(motley.ExportError, message):
                    motley.export(layers, total, example, folder.path("x"))

    def test_losses(self) -> None:
        layers, target = [("a", nn.Linear(4, 3))], torch.zeros(2, dtype=torch.int64)
        with Folder() as folder:
            for loss, message in ((nn.CrossEntropyLoss(weight=torch.ones(3)), "weights of classes"),
                                  (nn.CrossEntropyLoss(reduction="sum"), "reduction='sum'"), (nn.CTCLoss(), "CTCLoss is not known"),
                                  (lambda o, t: o.sum(), r"does not return \(sum, count\)"), (7, "int is no loss")):
                with self.assertRaisesRegex(motley.ExportError, message):
                    motley.export(layers, loss, (X, target), folder.path("x"))

    def test_integers_need_limits(self) -> None:
        ids = torch.tensor([[1, 2], [3, 4]])
        layers = [("a", Function(lambda x: x)), ("b", nn.Linear(2, 2))]
        with Folder() as folder:
            with self.assertRaisesRegex(motley.ExportError, "input_limit"):
                export_layers(folder, layers, ids)
            with self.assertRaisesRegex(motley.ExportError, "target_limit"):
                export_layers(folder, layers, ids, target=torch.zeros(2, dtype=torch.int64), input_limit=5)
            _, package = export_layers(folder, layers, ids, target=torch.zeros(2, dtype=torch.int64), input_limit=5, target_limit=1)
            self.assertEqual((package.description["input_limit"], package.description["target_limit"]), (5, 1))

    def test_models_are_left_as_they_were(self) -> None:
        for middle in (nn.BatchNorm1d(4), Counting()):
            middle.eval()
            before = copy.deepcopy(middle.state_dict())
            with Folder() as folder:
                try:
                    export_layers(folder, between(middle), X)
                except motley.ExportError:
                    pass
            self.assertFalse(middle.training)
            for name, value in middle.state_dict().items():
                self.assertTrue(torch.equal(value, before[name]), name)

    def test_foreign_folders_are_kept(self) -> None:
        with Folder() as folder:
            os.makedirs(folder.path("x.motley"))
            with open(folder.path("x.motley/diary.txt"), "w") as file:
                file.write("dear diary")
            with self.assertRaisesRegex(motley.ExportError, "exists and is no package"):
                export_layers(folder, between(nn.ReLU()), X)
            self.assertTrue(os.path.exists(folder.path("x.motley/diary.txt")))


class Function2(nn.Module):
    """Hands its first tensor on and works on the second."""

    def forward(self, x: Any) -> Any:
        return x[0], x[1].tanh()


if __name__ == "__main__":
    unittest.main()
