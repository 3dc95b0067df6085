"""Five model families: the results of a package against eager PyTorch, and the structure of its graphs."""

from __future__ import annotations

import os
import unittest
from typing import Any, Callable, Dict, List

import torch
import torch.nn as nn

import language_models
import vision_models
from support import Folder, motley
from make_packages import MODELS, reference
from motley import operations
from motley.interpret import Package, read_graph
from motley.graph import uses

LARGEST_DIFFERENCE = 1e-5
"""Relative to the largest element, against autograd through the whole model, whose tensors may have other memory
layouts."""


def difference(found: torch.Tensor, right: torch.Tensor) -> float:
    return float((found - right).abs().max()) / max(float(right.abs().max()), 1e-30)


def graphs_of(package: Package) -> List[Any]:
    return [(kind, graph) for graphs in package.description["graphs"] for kind, graph in graphs.items() if kind != "memory"]


def of_each(test: Callable[..., None]) -> Callable[[Any], None]:
    """A test of each of the models."""
    def run(self: Any) -> None:
        for made in self.made:
            with self.subTest(made[0]):
                test(self, *made)
    return run


class Truth(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Folder().__enter__()
        cls.addClassCleanup(cls.folder.__exit__)
        cls.made = []
        for name, make in MODELS.items():
            torch.manual_seed(7)
            model, loss, batch = make()
            done = motley.export(motley.split(model), loss, batch(2), cls.folder.path(f"{name}.motley"))
            cls.made.append((name, model, loss, batch, done, Package.open(done.path)))

    @of_each
    def test_equals_eager_at_other_batch_sizes(self, name: str, model: Any, loss: Any, batch: Any, done: Any, package: Package) -> None:
        self.assertEqual(done.largest_difference, 0, "layer by layer the bits are PyTorch's")
        for size in (1, 5, 7):
            if size == 1 and any(isinstance(m, nn.BatchNorm2d) for m in model.modules()):
                continue
            right = reference(model, loss, *batch(size))
            step = package.train(right["input"], right["target"])
            self.assertEqual(int(step.count), int(right["count"]))
            self.assertLessEqual(difference(step.loss, right["loss"]), LARGEST_DIFFERENCE)
            for key, value in right.items():
                kind, _, name = key.partition("/")
                if kind == "grad":
                    self.assertLessEqual(difference(step.gradients[name], value), LARGEST_DIFFERENCE, name)
                if kind == "observed":
                    self.assertLessEqual(difference(step.observed[name], value), LARGEST_DIFFERENCE, name)
            evaluated, _, _ = package.evaluate(right["input"], right["target"])
            self.assertLessEqual(difference(evaluated, right["evaluated_loss"]), LARGEST_DIFFERENCE)
            self.assertLessEqual(difference(package.score(right["input"]), right["score"]), LARGEST_DIFFERENCE)

    @of_each
    def test_accuracy(self, name: str, model: Any, loss: Any, batch: Any, done: Any, package: Package) -> None:
        if isinstance(loss, nn.MSELoss):
            return
        input, target = batch(5)
        score = package.score(input)
        right = (score.argmax(-1) == target).sum()
        self.assertEqual(int(package.evaluate(input, target)[2]), int(right))

    @of_each
    def test_is_the_same_each_time(self, name: str, model: Any, loss: Any, batch: Any, done: Any, package: Package) -> None:
        again = motley.export(motley.split(model), loss, batch(3), done.path + "2", name=name)
        for file in ("package.json", "weights.safetensors"):
            with open(os.path.join(done.path, file), "rb") as a, open(os.path.join(again.path, file), "rb") as b:
                self.assertEqual(a.read(), b.read(), file)

    @of_each
    def test_equal_layers_share_their_graphs(self, name: str, model: Any, loss: Any, batch: Any, done: Any, package: Package) -> None:
        layers = package.description["layers"]
        if name in ("vit-tiny", "gpt2-tiny", "llama-tiny"):
            self.assertEqual([layer["graph"] for layer in layers], [0, 1, 2, 1, 2, 3])

    def test_equal_layers_run_with_more_samples_once(self) -> None:
        sizes: List[List[int]] = []

        def layer() -> nn.Module:
            module = nn.Linear(4, 4)
            sizes.append([])
            module.register_forward_pre_hook(lambda _, x, seen=sizes[-1]: seen.append(len(x[0])))
            return module
        layers = [(f"layer{k}", layer()) for k in range(4)] + [("head", nn.Linear(4, 2))]
        with Folder() as folder:
            motley.export(layers, nn.MSELoss(), (torch.randn(2, 4), torch.randn(2, 2)), folder.path("x.motley"))
        # First, each graph runs to provide the gradients of all of them. The second graph is the first to return an
        # input gradient; in evaluation it equals the first. Then each distinct graph runs for its reference, once
        # if evaluation equals training: the second, third and fourth are equal. At the end each layer computes the inputs of the next one.
        self.assertEqual(sizes, [[2, 2, 3, 4, 2, 3, 4, 33, 5, 2, 2], [2, 2, 3, 4, 2, 33, 5, 2, 2], [2, 2, 2, 5, 2], [2, 2, 2, 5, 2]])

    @of_each
    def test_is_what_the_page_says(self, name: str, model: Any, loss: Any, batch: Any, done: Any, package: Package) -> None:
        before: List[Any] = []
        for layer in package.description["layers"]:
            graphs = package.description["graphs"][layer["graph"]]
            last = layer is package.description["layers"][-1]
            self.assertEqual("score" in graphs, last)
            gradients = [role for part in ("input_part", "weight_part") for role, _ in graphs[part]["gives"]
                         if role.startswith("parameter_grad")]
            self.assertEqual(sorted(gradients), sorted(f"parameter_grad:{k}" for k in range(len(layer["parameters"]))))
            input_grads = [role for role, _ in graphs["input_part"]["gives"] if role.startswith("input_grad")]
            followed = [k for k, output in enumerate(before) if output["type"] == "float32" and output.get("gradient", True)]
            self.assertEqual(sorted(input_grads), [f"input_grad:{k}" for k in followed])
            before = layer["outputs"]
        for kind, graph in graphs_of(package):
            read = read_graph(graph)
            made = set(read.inputs)
            for node in read.nodes:
                self.assertTrue(node.op in operations.allowed() or node.op == "motley::dropout_mask", node.op)
                self.assertLessEqual(set(uses(node)), made)
                made.update(node.results)
            self.assertLessEqual({value for _, value in read.outputs}, made)
            roles = {role.partition(":")[0] for role in graph["takes"]}
            self.assertLessEqual(roles, ROLES[kind])

    @of_each
    def test_saved_are_whole_tensors(self, name: str, model: Any, loss: Any, batch: Any, done: Any, package: Package) -> None:
        for kind, graph in graphs_of(package):
            if kind != "forward":
                continue
            maker = {value: node for node in read_graph(graph).nodes for value in node.results}
            for role, value in graph["gives"]:
                if role.startswith("saved") and value in maker:
                    self.assertFalse(operations.is_view(operations.find(maker[value].op)), maker[value].op)

    @of_each
    def test_weight_part_has_the_products_of_weights(self, name: str, model: Any, loss: Any, batch: Any, done: Any, package: Package) -> None:
        products = {"aten::mm": 0, "aten::convolution_backward": 0}
        for kind, graph in graphs_of(package):
            for node in graph["nodes"]:
                if kind == "weight_part" and node["op"] in products:
                    products[node["op"]] += 1
                if kind == "input_part" and node["op"] == "aten::convolution_backward":
                    self.assertEqual(node["args"][10], [True, False, False])
        self.assertGreater(sum(products.values()), 0)

    def test_dropout_takes_no_memory_and_repeats(self) -> None:
        for model, batch in ((language_models.GPT2LMHeadModel(dropout=0.2), MODELS["gpt2-tiny"]()[2]),
                             (vision_models.VisionTransformer(dropout=0.2), MODELS["vit-tiny"]()[2])):
            with Folder() as folder:
                done = motley.export(motley.split(model), nn.CrossEntropyLoss(), batch(2), folder.path("x.motley"))
                package = Package.open(done.path)
                self.assertEqual(done.largest_difference, 0)
                found = {"forward": [], "input_part": [], "weight_part": [], "evaluate": [], "score": []}
                for kind, graph in graphs_of(package):
                    read = read_graph(graph)
                    masks = [node for node in read.nodes if node.op == "motley::dropout_mask"]
                    found[kind] += [node.args[2] for node in masks]
                    given = {value for role, value in graph["gives"] if not role.startswith("output")}
                    self.assertFalse(given & {node.results[0] for node in masks}, "a mask is saved")
                self.assertEqual(sorted(found["input_part"] + found["weight_part"]), sorted(found["forward"]))
                self.assertGreater(len(set(found["forward"])), 1)
                self.assertEqual(found["evaluate"] + found["score"], [])

    @of_each
    def test_describes_the_ends(self, name: str, model: Any, loss: Any, batch: Any, done: Any, package: Package) -> None:
        for key, value in ENDS.get(name, {}).items():
            self.assertEqual(package.description[key], value, key)

    @of_each
    def test_counts_products(self, name: str, model: Any, loss: Any, batch: Any, done: Any, package: Package) -> None:
        if name == "mlp":
            self.assertEqual([layer["flops_per_sample"] for layer in package.description["layers"]],
                             [2 * 12 * 16, 2 * 16 * 16, 2 * 16 * 3])
        if name == "cnn":
            self.assertEqual(package.description["layers"][0]["flops_per_sample"], 2 * 9 * 6 * 64)
            self.assertEqual(package.description["layers"][0]["input_part_flops_per_sample"], 0)  # the data's gradient
            for layer in package.description["layers"][1:]:
                self.assertEqual(layer["input_part_flops_per_sample"], layer["flops_per_sample"], layer["name"])
        if name in ("mlp", "cnn"):
            for layer in package.description["layers"]:
                self.assertEqual(layer["weight_part_flops_per_sample"], layer["flops_per_sample"], layer["name"])


ENDS: Dict[str, Dict[str, Any]] = {
    "mlp": {"unit": "sample", "units_per_sample": 3, "ignored": None, "target_limit": 0, "input_limit": 0},
    "cnn": {"unit": "sample", "units_per_sample": 1, "ignored": -100, "target_limit": 10, "input_limit": 0},
    "gpt2-tiny": {"unit": "token", "units_per_sample": 8, "ignored": -100, "target_limit": 50, "input_limit": 50}}

COMMON = {"parameter", "constant"}
ROLES = {"forward": COMMON | {"input", "target"}, "input_part": COMMON | {"saved", "grad"},
         "weight_part": COMMON | {"saved", "queued"}, "evaluate": COMMON | {"input", "target", "statistic"},
         "score": COMMON | {"input", "statistic"}}


if __name__ == "__main__":
    unittest.main()
