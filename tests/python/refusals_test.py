"""Unsupported models are rejected by name, with the module, the line and a remedy; supported ones work bit-exactly."""

from __future__ import annotations

import copy
import os
import unittest
from typing import Any, List, Tuple
from unittest import mock

import torch
import torch.nn as nn


from odd_layers import REFUSED, WORKS, Counting, PassesBy, Takes, X, branches, dropped_in_place
from support import Folder, Function, boundary, eager, export_layers, motley, total
from motley import dropout
import vision_models


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
        parameters = {f"{name}.{key}": p for name, module in layers for key, p in module.named_parameters() if p.requires_grad}

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
            layers = [("before", Function(lambda x: (x, x * 2))), ("by", PassesBy()), ("after", Takes())]
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
            with self.assertRaisesRegex(motley.ExportError, "used by the layers a and c"):
                export_layers(folder, [("a", shared), ("c", shared), ("b", model["b"])], X, model=model)

    def test_what_trains_elsewhere_is_no_constant(self) -> None:
        first = nn.Linear(4, 4)
        model = nn.ModuleDict({"a": first, "b": nn.Linear(4, 4), "norm": nn.BatchNorm1d(4)})
        whole = first.weight.data

        def without_gradient(x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                more = first(x)
            return x + more
        for last, message in ((lambda x: x @ first.weight.detach(), "a.weight is trained by the layer a and used here without a gradient"),
                              (without_gradient, "used here without a gradient"), (lambda x: x @ whole, "without autograd"),
                              (lambda x: x - model["norm"].running_mean, "running_mean is trained by the layer norm")):
            with Folder() as folder, self.assertRaisesRegex(motley.ExportError, f"in last.*{message}"):
                layers = [("a", first), ("b", model["b"]), ("norm", model["norm"]), ("last", last)]
                export_layers(folder, layers, X, model=model)

    def test_outputs_of_one_memory_are_not_written_to(self) -> None:
        with Folder() as folder, self.assertRaisesRegex(motley.ExportError, "in writes.*the same memory twice"):
            export_layers(folder, [("a", nn.Linear(4, 4)), ("twice", Function(lambda x: (x, x))),
                                   ("writes", lambda x: x[0].add_(1) * x[1])], X)

    def test_each_of_equal_layers_is_checked(self) -> None:
        layers = [("a", nn.Linear(4, 4)), ("by length", Function(lambda x: x / len(x))), ("by two", Function(lambda x: x / 2)),
                  ("after", Function(lambda x: x))]
        with Folder() as folder, self.assertRaisesRegex(motley.ExportError, "in by two: output 0 in evaluation differs"):
            export_layers(folder, layers, X)

    def test_nothing_to_train(self) -> None:
        for module in (nn.Tanh(), nn.Linear(4, 4).requires_grad_(False)):
            with Folder() as folder, self.assertRaisesRegex(motley.ExportError, "no parameter that requires a gradient"):
                export_layers(folder, [("a", module)], X)

    def test_embeddings(self) -> None:
        ids = torch.tensor([[1, 2, 3], [4, 5, 6]])
        for options, message in (({"sparse": True}, "_sparse_coo"), ({"max_norm": 1.0}, "writes to a.weight"),
                                 ({"scale_grad_by_freq": True}, "Leave scale_grad_by_freq out")):
            with Folder() as folder, self.assertRaisesRegex(motley.ExportError, message):
                export_layers(folder, [("a", nn.Embedding(9, 4, **options)), ("b", nn.Linear(4, 4))], ids)

    def test_dropout_in_place_changes_what_it_got(self) -> None:
        with Folder() as folder:
            layers = between(Function(dropped_in_place))
            _, package = export_layers(folder, layers, X)
            x = torch.randn(7, 4)
            h = boundary(layers[0][1](x))
            y = h * layers[1][1].weight * 2
            mask = dropout.mask(y, 0.5, 0)
            right = total(boundary(2 * y * mask) * layers[2][1].weight, x)[0]
            self.assertTrue(torch.allclose(package.train(x, torch.zeros(7)).loss, right.detach()))

    def test_examples(self) -> None:
        layers = [("a", nn.Linear(4, 3))]
        with Folder() as folder:
            for example, message in ((((X, X), X), "not a pair of tensors"), ((X.int(), X), "int32"), ((X, X[:1]), "2 inputs and 1"),
                                     ((X[:0], X[:0]), "no samples")):
                with self.assertRaisesRegex(motley.ExportError, message):
                    motley.export(layers, total, example, folder.path("x"))

    def test_nothing_is_raised_bare(self) -> None:
        class Turns(nn.Linear):
            def __init__(self) -> None:
                super().__init__(4, 4)
                self.register_buffer("turn", torch.ones(4, dtype=torch.complex64))

        class Breaks(nn.Linear):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return {}[x.size(0)]
        layers, example = [("a", nn.Linear(4, 4))], (X, X)
        with Folder() as folder:
            for given, loss, batch, path, message in (
                    (None, total, example, "x", "there is no model"), (7, total, example, "x", "the layers are a int"),
                    (layers, None, example, "x", "there is no loss"), (layers, total, None, "x", "there is no example"),
                    (layers, total, example, None, "the package has no path"),
                    ([("a", Turns())], total, example, "x", "the buffer a.turn is complex64.*persistent=False"),
                    ([("a", nn.LazyLinear(4))], total, example, "x", "has no shape yet. Call the model once"),
                    ([("a", nn.Linear(4, 4)), ("b", Breaks(4, 4))], total, example, "x", f"in b at {__file__}:[0-9]+: the layer, or the loss after it, raises: KeyError: 2"),
                    (layers, lambda o, t: o.nothing, example, "x", "in a at .*the loss after it, raises: AttributeError")):
                with self.subTest(message), self.assertRaisesRegex(motley.ExportError, message):
                    motley.export(given, loss, batch, path and folder.path(path))
            with self.assertRaisesRegex(motley.ExportError, "model= is a str"):
                motley.export(layers, total, example, folder.path("x"), model="net")

    def test_constants_have_values(self) -> None:
        empty = torch.zeros(0, 4)
        with Folder() as folder, self.assertRaisesRegex(motley.ExportError, r"a constant has the shape \[0, 4\] and no elements.*use_cache=False"):
            export_layers(folder, between(Function(lambda x: torch.cat([empty, x * 2]))), X)

    def test_losses(self) -> None:
        layers, target = [("a", nn.Linear(4, 3))], torch.zeros(2, dtype=torch.int64)
        with Folder() as folder:
            for loss, message in ((nn.CrossEntropyLoss(reduction="sum"), "reduction='sum'"), (nn.CTCLoss(), "unknown loss CTCLoss"),
                                  (lambda o, t: o.sum(), r"does not return \(sum, count\)"), (7, "int is not a loss")):
                with self.assertRaisesRegex(motley.ExportError, message):
                    motley.export(layers, loss, (X, target), folder.path("x"))

    def test_losses_that_do_not_add_up(self) -> None:
        def mean(output: torch.Tensor, target: torch.Tensor) -> Any:
            return (output - target).square().mean(), torch.full((), target.numel())

        def one_term(output: torch.Tensor, target: torch.Tensor) -> Any:
            return (output - target).square().sum(), torch.full((), 1)

        def of_pairs(output: torch.Tensor, target: torch.Tensor) -> Any:
            return (output @ target.t()).logsumexp(1).sum(), torch.full((), output.size(0))

        for loss, what in ((mean, "the loss of 5 samples"), (one_term, "the count of 5 samples"), (of_pairs, "the loss of 5 samples")):
            with self.subTest(loss.__name__), Folder() as folder:
                with self.assertRaisesRegex(motley.ExportError, what):
                    motley.export([("only", nn.Linear(3, 3))], loss, (torch.randn(2, 3), torch.randn(2, 3)), folder.path("x"))

    def test_modules_that_stand_twice(self) -> None:
        act = nn.Tanh()
        model = nn.Sequential(nn.Linear(3, 4), act, nn.Linear(4, 4), act, nn.Linear(4, 3))
        with Folder() as folder:
            package = motley.export(motley.split(model), nn.MSELoss(), (torch.randn(2, 3), torch.randn(2, 3)), folder.path("x")).path
            with open(os.path.join(package, "package.json"), encoding="utf-8") as file:
                self.assertEqual(file.read().count('"aten::tanh"'), 4, "two in forward, two in evaluation")

    def test_models_that_do_more_than_their_parts(self) -> None:
        class Scaled(vision_models.ResNet):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return 2 * super().forward(x)

        hooked = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
        hooked.register_forward_hook(lambda module, inputs, output: 2 * output)
        for model, loss, example in ((Scaled(), nn.CrossEntropyLoss(), (torch.randn(2, 3, 32, 32), torch.randint(10, (2,)))),
                                     (hooked, nn.MSELoss(), (torch.randn(2, 3), torch.randn(2, 3)))):
            with Folder() as folder, self.assertRaisesRegex(motley.ExportError, "differ from the model: outputs of the layers differ from the model's"):
                motley.export(motley.split(model), loss, example, folder.path("x"))

    def test_views_of_one_memory_are_not_written_to(self) -> None:
        def halves(x: torch.Tensor) -> Any:
            x = x * 2
            return x, x[:, 1:]

        def passes(both: Any) -> Any:
            return both[0].clone(), both[1], both[0]

        def writes(three: Any) -> torch.Tensor:
            return three[0] + three[2].relu_().sum(1, keepdim=True) + three[1].sum(1, keepdim=True)

        layers = [("a", nn.Linear(3, 3)), ("halves", halves), ("passes", passes), ("writes", writes), ("b", nn.Linear(3, 3))]
        with Folder() as folder, self.assertRaisesRegex(motley.ExportError, "returned the same memory twice"):
            motley.export(layers, nn.MSELoss(), (torch.randn(2, 3), torch.randn(2, 3)), folder.path("x"))

    def test_statistics_are_no_constants(self) -> None:
        class Folded(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.bn = nn.BatchNorm1d(3)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                if self.training:
                    return self.bn(x)
                scale = self.bn.weight * torch.rsqrt(self.bn.running_var + self.bn.eps)
                return (x - self.bn.running_mean) * scale + self.bn.bias

        with Folder() as folder:
            package = motley.export([("a", Folded()), ("b", nn.Linear(3, 3))], nn.MSELoss(), (torch.randn(2, 3), torch.randn(2, 3)),
                                    folder.path("x")).path
            with open(os.path.join(package, "package.json"), encoding="utf-8") as file:
                self.assertIn('"aten::rsqrt"', file.read())

    def test_other_folders_are_not_replaced(self) -> None:
        with Folder() as folder:
            os.mkdir(folder.path("x"))
            for name in ("package.json", "mine.txt"):
                with open(os.path.join(folder.path("x"), name), "w") as file:
                    file.write("{}")
            with self.assertRaisesRegex(motley.ExportError, "is not a package"):
                motley.export([("a", nn.Linear(3, 3))], nn.MSELoss(), (torch.randn(2, 3), torch.randn(2, 3)), folder.path("x"))
            self.assertTrue(os.path.isfile(os.path.join(folder.path("x"), "mine.txt")))

    def test_what_cannot_be_replaced_stays(self) -> None:
        layers, example = [("a", nn.Linear(3, 3))], (torch.randn(2, 3), torch.randn(2, 3))
        with Folder() as folder:
            motley.export(layers, nn.MSELoss(), example, folder.path("x"))
            before = sorted(os.listdir(folder.path("x")))
            real = os.rename

            def rename(source: str, target: str) -> None:
                if source.endswith(".partial") and target == folder.path("x"):
                    raise OSError("no more room")
                real(source, target)

            with mock.patch("os.rename", rename), self.assertRaisesRegex(motley.ExportError, "cannot be written: no more room"):
                motley.export(layers, nn.MSELoss(), example, folder.path("x"))
            self.assertEqual(sorted(os.listdir(folder.path("x"))), before)
            self.assertEqual(os.listdir(folder.path("")), ["x"])

    def test_losses_of_several_outputs(self) -> None:
        def loss(outputs: Any, target: torch.Tensor) -> Any:
            return (outputs["a"] - target).square().sum() + outputs["b"].square().sum(), torch.full((), target.numel())

        linear = nn.Linear(3, 3)
        with Folder() as folder:
            motley.export([("a", nn.Linear(3, 3)), ("b", lambda x: {"a": linear(x), "b": x})], loss, (torch.randn(2, 3), torch.randn(2, 3)),
                          folder.path("x"))

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

    def test_unknown_models_are_split_by_hand(self) -> None:
        with self.assertRaisesRegex(motley.MotleyError, r'ModuleDict.*\[\("all", model\)\].*into functions'):
            motley.split(nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.ReLU()}))
        with self.assertRaisesRegex(motley.ExportError, r"Its repeated parts are model.a \(3 × Linear\): use a layer for each"):
            motley.split(nn.ModuleDict({"a": nn.ModuleList(nn.Linear(2, 2) for _ in range(3)), "b": nn.ReLU()}))
        with self.assertRaisesRegex(motley.ExportError, "a str was given instead of a model"):
            motley.split("gpt2")  # type: ignore[arg-type]
        with Folder() as folder:
            self.assertEqual(export_layers(folder, nn.Linear(4, 4), X)[0].layers, 1)

    def test_layers_have_a_largest_size(self) -> None:
        with Folder() as folder, mock.patch("motley.graph_json.MAX_NODES", 3):
            with self.assertRaisesRegex(motley.ExportError, "in before: the layer has 4 operations, more than 3"):
                export_layers(folder, between(Function(lambda x: x.sin().cos())), X)

    def test_foreign_folders_are_kept(self) -> None:
        with Folder() as folder:
            os.makedirs(folder.path("x.motley"))
            with open(folder.path("x.motley/diary.txt"), "w") as file:
                file.write("dear diary")
            with self.assertRaisesRegex(motley.ExportError, "exists and is not a package"):
                export_layers(folder, between(nn.ReLU()), X)
            self.assertTrue(os.path.exists(folder.path("x.motley/diary.txt")))


if __name__ == "__main__":
    unittest.main()
