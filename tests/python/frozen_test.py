"""Frozen weights in their own type or quantised: the content, results, saved tensors and memory of packages."""

from __future__ import annotations

import copy
import json
import os
import unittest
import warnings
from typing import Any, Dict, List, Optional, Tuple

import torch
import torch.nn as nn
from support import Folder

import motley
from motley import frozen, weights
from motley.graph import Batch, uses
from motley.interpret import Package, read_graph

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
BASES = ("bf16", "fp16", "int8", "int4", "nf4")
CONVERSIONS = {"bf16": ["_to_copy"], "fp16": ["_to_copy"], "int8": ["_to_copy", "mul"],
               "int4": ["_to_copy", "embedding", "view", "mul", "view"], "nf4": ["_to_copy", "embedding", "view", "mul", "view"]}


class Lora(nn.Module):
    def __init__(self, base: nn.Linear, rank: int = 4):
        super().__init__()
        self.base = base
        self.a = nn.Parameter(torch.randn(rank, base.in_features) * 0.1)
        self.b = nn.Parameter(torch.randn(base.out_features, rank) * 0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + (x @ self.a.t()) @ self.b.t()


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = Lora(nn.Linear(width, 2 * width)), Lora(nn.Linear(2 * width, width, bias=False))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Model(nn.Module):
    """A language model with a frozen embedding that is tied to its head."""

    def __init__(self, words: int = 90, width: int = 64, blocks: int = 2):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def layers(self) -> List[Tuple[str, Any]]:
        return [("words", self.words), *((f"blocks.{k}", block) for k, block in enumerate(self.blocks)), ("head", lambda x: self.head(self.norm(x)))]


def model_of(kind: str, seed: int = 0) -> Model:
    torch.manual_seed(seed)
    model = Model()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.endswith((".a", ".b")))
        if kind in DTYPES and not parameter.requires_grad:
            parameter.data = parameter.data.to(DTYPES[kind])
    return model


IDS = torch.randint(90, (2, 10), generator=torch.Generator().manual_seed(4))


def exported(folder: Folder, model: Model, kind: Optional[str], name: str = "x", layers: Any = None) -> motley.Exported:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", motley.ExportWarning)
        return motley.export(layers or model.layers(), nn.CrossEntropyLoss(), (IDS, IDS), folder.path(name), model=model,
                             base=kind if kind not in DTYPES else None)


def widened(model: Model, package: Package) -> Model:
    """The model in float32, with the values that the package computes with."""
    plain = copy.deepcopy(model).float()
    held = {name: tensor for name, tensor in package.tensors.items() if not name.startswith(frozen.PREFIX)}
    held.update({name: frozen.dequantised(entry, dict(package.tensors)) for name, entry in package.description.get("quantised", {}).items()})
    with torch.no_grad():
        for name, parameter in plain.named_parameters():
            parameter.copy_(held[name].float())
    return plain


def step(model: Model, ids: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten(), reduction="sum")
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    return loss.detach(), dict(zip(trained, torch.autograd.grad(loss, list(trained.values()))))


class Training(unittest.TestCase):
    def test_is_that_of_the_dequantised_model_in_float32(self) -> None:
        for kind in BASES:
            model = model_of(kind)
            before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
            with Folder() as folder, self.subTest(kind):
                done = exported(folder, model, kind)
                self.assertEqual(done.largest_difference, 0.0)
                self.assertEqual(len(done.notices), 0 if kind in DTYPES else 1)
                package = Package.open(done.path)
                plain = widened(model, package)
                for turn in range(4):
                    ids = torch.randint(90, (3, 10), generator=torch.Generator().manual_seed(turn))
                    loss, gradients = step(plain, ids)
                    found = package.train(ids, ids)
                    self.assertLessEqual(abs(float(found.loss) - float(loss)), 1e-6 * abs(float(loss)))
                    for name, right in gradients.items():
                        self.assertLessEqual(float((found.gradients[name] - right).abs().max()), 1e-6 * float(right.abs().max()), name)
                        package.tensors[name].data -= 0.01 * found.gradients[name]
                        plain.get_parameter(name).data -= 0.01 * right
                written = weights.read(os.path.join(done.path, "weights.safetensors"))
                for name, tensor in written.items():
                    if name not in gradients:
                        self.assertTrue(torch.equal(package.tensors[name], tensor), name)
                for name, tensor in model.state_dict().items():
                    self.assertEqual((tensor.dtype, torch.equal(tensor, before[name])), (before[name].dtype, True), name)

    def test_by_a_trace_of_the_whole_is_the_same(self) -> None:
        for kind in ("bf16", "nf4"):
            model = model_of(kind)
            with Folder() as folder, self.subTest(kind):
                package = Package.open(exported(folder, model, kind, layers=motley.split(model, IDS)).path)
                self.assertGreater(len(package.description["layers"]), 1)
                loss, gradients = step(widened(model, package), IDS)
                found = package.train(IDS, IDS)
                self.assertLessEqual(abs(float(found.loss) - float(loss)), 1e-6 * abs(float(loss)))
                for name, right in gradients.items():
                    self.assertLessEqual(float((found.gradients[name] - right).abs().max()), 1e-6 * float(right.abs().max()), name)


class Packages(unittest.TestCase):
    def test_hold_each_weight_once_in_its_type(self) -> None:
        frozen_values = sum(p.numel() for p in model_of("nf4").parameters() if not p.requires_grad)
        matrices = 4 * 64 * 128  # of the linear layers; the embedding, tied to the head, is not quantised
        trained = sum(p.numel() * 4 for p in model_of("nf4").parameters() if p.requires_grad)
        scales = {"int8": 4 * (128 + 64 + 128 + 64), "int4": matrices // 16, "nf4": matrices // 16}
        for kind in BASES:
            with Folder() as folder, self.subTest(kind):
                done = exported(folder, model_of(kind), kind)
                held = weights.read(os.path.join(done.path, "weights.safetensors"))
                bytes_held = sum(tensor.numel() * tensor.element_size() for tensor in held.values())
                if kind in DTYPES:
                    right = 2 * frozen_values
                else:
                    right = 4 * (frozen_values - matrices) + matrices // (1 if kind == "int8" else 2) + scales[kind]
                # In addition, there are tables of 4-bit codes, and short vectors in float32.
                self.assertGreaterEqual(bytes_held - trained, right)
                self.assertLessEqual(bytes_held - trained, right + 256 * 2 * 4 + 4 * 64 * 10)
                description = self._description(done.path)
                self.assertEqual(description["version"], 2)
                if kind in DTYPES:
                    self.assertEqual(held["words.weight"].dtype, DTYPES[kind])
                    users = [layer["name"] for layer in description["layers"] for entry in layer["constants"] if entry["name"] == "words.weight"]
                    self.assertEqual(users, ["words", "head"])
                else:
                    self.assertEqual(sorted(description["quantised"]), [f"blocks.{k}.{part}.base.weight" for k in range(2) for part in ("down", "up")])
                    self.assertFalse(set(description["quantised"]) & set(held))

    def test_without_frozen_parts_are_as_before(self) -> None:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 3))
        with Folder() as folder:
            done = motley.export(motley.split(model), nn.CrossEntropyLoss(), (torch.randn(2, 4), torch.tensor([0, 1])), folder.path("x"))
            description = self._description(done.path)
        self.assertEqual(description["version"], 1)
        self.assertNotIn("quantised", description)
        self.assertTrue(all("converted_bytes" not in graphs["memory"] for graphs in description["graphs"]))

    def test_say_the_memory_of_conversions(self) -> None:
        largest = 64 * 128
        for kind in BASES:
            with Folder() as folder, self.subTest(kind):
                description = self._description(exported(folder, model_of(kind), kind).path)
                block = description["graphs"][description["layers"][1]["graph"]]["memory"]
                # One weight at a time in float32, and the same size again for its indices or unscaled values.
                self.assertEqual(block["converted_bytes"], largest * (4 if kind in DTYPES else 8))
                words = description["graphs"][description["layers"][0]["graph"]]["memory"]
                self.assertNotIn("converted_bytes", words)  # rows are looked up in the narrow table

    def test_convert_where_a_weight_is_used_and_save_nothing_of_it(self) -> None:
        for kind in BASES:
            with Folder() as folder, self.subTest(kind):
                description = self._description(exported(folder, model_of(kind), kind).path)
                layer = description["layers"][2]  # an earlier layer is trained
                graphs = description["graphs"][layer["graph"]]
                narrow_ones = [f"constant:{k}" for k, entry in enumerate(layer["constants"]) if entry["type"] not in ("float32", "int64", "bool")]
                self.assertEqual(len(narrow_ones), 2)
                for part in ("forward", "input_part", "evaluate"):
                    graph = read_graph(graphs[part])
                    takes = [value for value, role in graph.inputs.items() if f"{role.kind}:{role.index}" in narrow_ones]
                    self.assertEqual(len(takes), 2)
                    for value in takes:
                        self._check_chain(graph, value, kind)
                self.assertFalse([role for role in graphs["weight_part"]["takes"] if role in narrow_ones])
                self.assertEqual([role for role, _ in graphs["forward"]["gives"] if role.startswith("saved")],
                                 [f"saved:{k}" for k in range(len([t for t, _ in graphs["forward"]["gives"] if t.startswith("saved")]))])

    def _check_chain(self, graph: Any, value: int, kind: str) -> None:
        """Each node from the constant to the product uses only the result of the node directly before it."""
        found = []
        k = next(k for k, node in enumerate(graph.nodes) if value in uses(node))
        while not graph.nodes[k].op.endswith("mm"):
            node = graph.nodes[k]
            self.assertFalse(any(isinstance(arg, Batch) for arg in node.args))
            found.append(node.op.split("::")[1].split(".")[0])
            self.assertIn(node.results[0], uses(graph.nodes[k + 1]))
            self.assertEqual([n for n in graph.nodes if node.results[0] in uses(n)], [graph.nodes[k + 1]])
            k += 1
        self.assertEqual([op for op in found if op != "t"], CONVERSIONS[kind])

    def test_have_references_that_readers_agree_with(self) -> None:
        with Folder() as folder:
            done = exported(folder, model_of("nf4"), "nf4")
            with open(os.path.join(done.path, "reference.jsonl"), encoding="utf-8") as file:
                found = json.loads(file.read().splitlines()[1])
        self.assertEqual([entry["layer"] for entry in found], [0, 1, 2, 3])

    @staticmethod
    def _description(path: str) -> Dict[str, Any]:
        with open(os.path.join(path, "package.json"), encoding="utf-8") as file:
            return json.load(file)  # type: ignore[no-any-return]


class OwnConversions(unittest.TestCase):
    """Models with their own quantisation, and constants of narrow types in general."""

    def test_of_a_model_are_kept(self) -> None:
        class Int8Linear(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("codes", torch.randint(-127, 128, (64, 32), dtype=torch.int8))
                self.register_buffer("scales", torch.rand(64, 1) * 0.01)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return nn.functional.linear(x, self.codes.float() * self.scales)

        model = nn.Sequential(nn.Linear(8, 32), Int8Linear(), nn.Linear(64, 3))
        types = self._types(model)
        self.assertEqual(types["1.codes"], "int8")
        self.assertFalse([name for name in types if name.startswith("motley.constant")])

    def test_that_are_smaller_become_constants(self) -> None:
        class Masked(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("mask", torch.tril(torch.ones(32, 32, dtype=torch.uint8)))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return torch.where(self.mask[3].bool(), x, torch.zeros(()))

        types = self._types(nn.Sequential(nn.Linear(8, 32), Masked(), nn.Linear(32, 3)))
        self.assertEqual([type_ for name, type_ in types.items() if name.startswith("motley.constant")].count("bool"), 1)
        self.assertNotIn("1.mask", types)

    def test_that_are_missing_are_an_error(self) -> None:
        class Adds(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("codes", torch.ones(32, dtype=torch.int8))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x + self.codes

        with self.assertRaisesRegex(motley.ExportError, r"aten::add.Tensor computes with a constant of int8.*\.float\(\)"):
            self._types(nn.Sequential(nn.Linear(8, 32), Adds(), nn.Linear(32, 3)))

    @staticmethod
    def _types(model: nn.Sequential) -> Dict[str, str]:
        with Folder() as folder:
            done = motley.export([(f"{k}", part) for k, part in enumerate(model)], nn.CrossEntropyLoss(),
                                 (torch.randn(2, 8), torch.tensor([0, 1])), folder.path("x"), model=model)
            with open(os.path.join(done.path, "package.json"), encoding="utf-8") as file:
                layers = json.load(file)["layers"]
        return {entry["name"]: entry["type"] for layer in layers for entry in layer["constants"]}


class Base(unittest.TestCase):
    def test_is_refused_where_it_cannot_be(self) -> None:
        trained = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 3))
        example = (torch.randn(2, 64), torch.tensor([0, 1]))
        with Folder() as folder:
            with self.assertRaisesRegex(motley.ExportError, "base='fp4' is not a type of frozen weights.*'int8', 'int4', 'nf4'"):
                motley.export(motley.split(trained), nn.CrossEntropyLoss(), example, folder.path("x"), base="fp4")
            with self.assertRaisesRegex(motley.ExportError, "no linear layer has a frozen weight"):
                motley.export(motley.split(trained), nn.CrossEntropyLoss(), example, folder.path("x"), base="nf4")
            trained[0].weight.requires_grad_(False)[3, 3] = float("inf")
            with self.assertRaisesRegex(motley.ExportError, "0.weight has NaN or infinite values"):
                motley.export(motley.split(trained), nn.CrossEntropyLoss(), example, folder.path("x"), base="nf4")

    def test_leaves_embeddings_and_small_weights(self) -> None:
        model = model_of("nf4")
        found = frozen._linear_weights([model])
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        self.assertEqual(sorted(names[key] for key in found), [f"blocks.{k}.{part}.base.weight" for k in range(2) for part in ("down", "up")])
        small = nn.Linear(8, 8).requires_grad_(False)
        self.assertFalse(frozen._linear_weights([small]))

    def test_error_is_reported(self) -> None:
        with Folder() as folder:
            for kind, most in (("int8", 0.01), ("int4", 0.15), ("nf4", 0.15)):
                (notice,) = exported(folder, model_of(kind), kind).notices
                self.assertRegex(notice, rf"4 frozen weights are quantised to {kind}: the relative error is at most [0-9.]+% of a weight's norm")
                self.assertLess(float(notice.split("at most ")[1].split("%")[0]) / 100, most)


class Loading(unittest.TestCase):
    def test_gives_frozen_weights_in_the_type_of_the_model(self) -> None:
        for kind in BASES:
            model = model_of(kind)
            with Folder() as folder, self.subTest(kind):
                package = exported(folder, model, kind).path
                state = motley.load(self._checkpoint(folder, package, model))
                right = dict(model.state_dict())
                self.assertEqual(set(state), set(right))
                for name, tensor in state.items():
                    self.assertEqual((tensor.dtype, tensor.shape), (right[name].dtype, right[name].shape), name)
                    if kind in DTYPES and not name.endswith((".a", ".b")):
                        self.assertTrue(torch.equal(tensor, right[name]), name)
                model.load_state_dict(state)
                if kind not in DTYPES:
                    quantised = widened(model, Package.open(package)).get_parameter("blocks.0.up.base.weight")
                    self.assertTrue(torch.equal(state["blocks.0.up.base.weight"], quantised.detach()))

    def test_gives_quantised_weights_of_bf16_as_bf16(self) -> None:
        model = model_of("bf16")
        with Folder() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            package = motley.export(model.layers(), nn.CrossEntropyLoss(), (IDS, IDS), folder.path("x"), model=model, base="int8").path
            state = motley.load(self._checkpoint(folder, package, model))
        self.assertEqual({tensor.dtype for name, tensor in state.items() if not name.endswith((".a", ".b"))}, {torch.bfloat16})
        apart = state["blocks.0.up.base.weight"].float() - model.blocks[0].up.base.weight.float()
        self.assertLess(float(apart.abs().max()), 0.01)

    @staticmethod
    def _checkpoint(folder: Folder, package: str, model: Model) -> str:
        os.makedirs(folder.path("step-000003"))
        file = folder.path("step-000003/model-00001-of-00001.safetensors")
        weights.write(file, {name: p + 1 for name, p in model.named_parameters() if p.requires_grad})
        manifest = {"step": 3, "config": {"model": {"kind": "package", "path": package}},
                    "files": [{"name": os.path.basename(file), "bytes": os.path.getsize(file)}]}
        with open(folder.path("step-000003/manifest.json"), "w", encoding="utf-8") as out:
            json.dump(manifest, out)
        return folder.path("step-000003")


if __name__ == "__main__":
    unittest.main()
