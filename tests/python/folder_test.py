"""Packages of models whose weights are in a folder of safetensors files, and traces without values."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import unittest
import unittest.mock
import warnings
from typing import Any, Dict, Iterator, List, Optional

import torch
import torch.nn as nn

from support import Folder, motley
from traced_models import LENGTH, VOCABULARY, Language

from motley import activations, check, folder_model, layer_values, reference, weights
from motley.interpret import Package
from motley.virtual import Virtual, address, virtual, without_values

IDS = torch.randint(3, VOCABULARY, (2, LENGTH), generator=torch.Generator().manual_seed(1))


class Positions(nn.Module):
    """Blocks of one kind with a tied head, a computed buffer outside the state_dict, and one in it."""

    def __init__(self, width: int = 16, blocks: int = 3):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
                                    for _ in range(blocks))
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("angles", torch.arange(400) / 7, persistent=False)
        self.register_buffer("factor", torch.full((width,), 0.5))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids) * self.factor + torch.sin(self.angles[:ids.size(1)])[:, None]
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


class Masked(Positions):
    """Two inputs by name."""

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return super().forward(ids) * mask.float()[:, :, None]


def written(folder: Folder, state: Dict[str, torch.Tensor], shards: int = 2) -> str:
    """A folder of shards with an index."""
    path = folder.path("weights")
    os.makedirs(path, exist_ok=True)
    names = list(state)
    files = {name: f"model-{k % shards + 1}.safetensors" for k, name in enumerate(names)}
    for file in set(files.values()):
        weights.write(os.path.join(path, file), {name: state[name] for name in names if files[name] == file})
    with open(os.path.join(path, "model.safetensors.index.json"), "w") as out:
        json.dump({"weight_map": files}, out)
    return path


def trained(model: nn.Module) -> Dict[str, torch.Tensor]:
    """The content of a model's folder: bf16, without the tied head. The model gets these values."""
    for tensor in model.state_dict().values():
        tensor.copy_(tensor.bfloat16())
    return {name: tensor.bfloat16() for name, tensor in model.state_dict().items() if name not in ("head.weight",)}


def widened(state: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
    return {name: tensor.float() for name, tensor in state.items()}


def described(package: str) -> Any:
    """The content of package.json, and the references."""
    return (json.loads(pathlib.Path(package, "package.json").read_text()),
            json.loads(pathlib.Path(package, "reference.jsonl").read_text().splitlines()[1]))


def empty(make: Any = Positions) -> nn.Module:
    with motley.without_weights():
        return make()  # type: ignore[no-any-return]


def export(work: Folder, model: Optional[nn.Module], name: str, ids: torch.Tensor = IDS, inputs: Any = None, **options: Any
           ) -> motley.Exported:
    """`inputs`: by name, instead of `ids`, which are the targets too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return motley.export(model, nn.CrossEntropyLoss(), (inputs or ids, ids), work.path(name), name="x", **options)


@contextlib.contextmanager
def weights_in_memory() -> Iterator[List[int]]:
    """The bytes of the weights of each compared layer. Fails if two layers have weights at once."""
    found: List[int] = []
    original = layer_values.with_values

    @contextlib.contextmanager
    def with_values(roots: Any, values: Dict[int, torch.Tensor]) -> Iterator[None]:
        assert all(isinstance(parameter, Virtual) for root in roots for parameter in root.parameters())
        found.append(sum(4 * tensor.numel() for tensor in values.values()))
        with original(roots, values):
            yield

    with unittest.mock.patch.object(layer_values, "with_values", with_values):
        yield found


class FromFolder(unittest.TestCase):
    def test_gives_the_same_bytes_as_from_memory(self) -> None:
        for make in (Positions, Language):
            with self.subTest(make.__name__), Folder() as folder:
                torch.manual_seed(0)
                model = make()
                path = written(folder, widened(trained(model)) if make is Positions else model.state_dict())
                export(folder, model, "memory")
                export(folder, empty(make), "folder", folder=path)
                for file in ("package.json", "weights.safetensors", "reference.jsonl"):
                    memory, other = (pathlib.Path(folder.path(name), file).read_bytes() for name in ("memory", "folder"))
                    self.assertEqual(memory, other, file)

    def test_gives_the_same_bytes_for_inputs_by_name(self) -> None:
        inputs = {"ids": IDS, "mask": IDS > 5}
        with Folder() as folder:
            torch.manual_seed(0)
            model = Masked()
            path = written(folder, widened(trained(model)))
            export(folder, model, "memory", inputs=inputs)
            export(folder, empty(Masked), "folder", inputs=inputs, folder=path)
            for file in ("package.json", "weights.safetensors", "reference.jsonl"):
                memory, other = (pathlib.Path(folder.path(name), file).read_bytes() for name in ("memory", "folder"))
                self.assertEqual(memory, other, file)
            score = Package.open(folder.path("folder")).score(inputs)
            self.assertTrue(torch.allclose(score, model(**inputs), atol=1e-6))

    def test_trained_weights_keep_their_type(self) -> None:
        with Folder() as folder:
            torch.manual_seed(0)
            model = Positions()
            path = written(folder, trained(model))
            export(folder, model, "memory")
            export(folder, empty(), "folder", folder=path)
            (memory, references), (other, others) = (described(folder.path(name)) for name in ("memory", "folder"))
            self.assertEqual(memory.pop("weights")["bytes"], os.path.getsize(folder.path("memory/weights.safetensors")))
            self.assertLess(other.pop("weights")["bytes"], 0.6 * os.path.getsize(folder.path("memory/weights.safetensors")))
            self.assertEqual(memory, other)
            self.assertEqual(references, others)
            moved = {entry["name"] for layer in other["layers"] for entry in layer["parameters"]}
            for name, stored in weights.stored(folder.path("folder/weights.safetensors")).items():
                self.assertEqual(stored.dtype, torch.bfloat16 if name in moved else torch.float32, name)

    def test_converts_bf16_exactly_and_keeps_buffers(self) -> None:
        with Folder() as folder:
            torch.manual_seed(0)
            model = Positions()
            done = export(folder, empty(), "x", folder=written(folder, trained(model)))
            package = Package.open(done.path)
            for name, tensor in model.state_dict().items():
                if name != "head.weight":
                    self.assertTrue(torch.equal(package.tensors[name], tensor), name)
            step = package.train(IDS, IDS)
            loss = nn.functional.cross_entropy(model(IDS).flatten(0, 1), IDS.flatten(), reduction="sum")
            self.assertAlmostEqual(float(step.loss), float(loss), places=3)
            right, = torch.autograd.grad(loss, [model.embed.weight])
            self.assertLess(float((step.gradients["embed.weight"] - right).abs().max()), 1e-5 * float(right.abs().max()))

    def test_reads_one_layer_at_a_time(self) -> None:
        with Folder() as folder, unittest.mock.patch("motley.folder_weights._SMALL_MODEL_BYTES", 0):
            path = written(folder, trained(Positions(width=64, blocks=6)))
            with weights_in_memory() as found, unittest.mock.patch("motley.layer_values.SMALL_MODEL_FLOPS", 0):
                done = export(folder, empty(lambda: Positions(width=64, blocks=6)), "x", folder=path)
            block, embedding = 4 * (2 * 64 + 2 * 64 * 128 + 128 + 64), 4 * VOCABULARY * 64
            self.assertLessEqual(max(found), block + embedding)
            self.assertLess(len(found), done.layers)  # equal blocks are read once
            self.assertIn("not compared with the whole model", done.notices[0])

    def test_leaves_the_model_without_weights(self) -> None:
        with Folder() as folder:
            path = written(folder, trained(Positions()))
            model = empty()
            export(folder, model, "x", folder=path)
            self.assertTrue(all(isinstance(parameter, Virtual) for parameter in model.parameters()))

    def test_names_of_a_model_without_its_head_are_found(self) -> None:
        class Whole(nn.Module):
            base_model_prefix = "model"

            def __init__(self) -> None:
                super().__init__()
                self.model = Positions()

            def forward(self, ids: torch.Tensor) -> torch.Tensor:
                return self.model(ids)  # type: ignore[no-any-return]

        with Folder() as folder:
            done = export(folder, empty(Whole), "x", folder=written(folder, trained(Positions())))
            self.assertIn("model.embed.weight", Package.open(done.path).tensors)

    def test_frozen_parameters_are_read_too(self) -> None:
        def frozen() -> nn.Module:
            model = Positions()
            model.blocks[0].requires_grad_(False)
            return model

        with Folder() as folder:
            model = frozen()
            done = export(folder, empty(frozen), "x", folder=written(folder, trained(model)))
            package = Package.open(done.path)
            self.assertTrue(torch.equal(package.tensors["blocks.0.1.weight"], model.state_dict()["blocks.0.1.weight"]))
            self.assertNotIn("blocks.0.1.weight", [p["name"] for layer in package.description["layers"] for p in layer["parameters"]])


class Memory(unittest.TestCase):
    def test_layers_that_need_more_are_named_and_have_no_reference(self) -> None:
        with Folder() as folder:
            done = export(folder, empty(), "x", folder=written(folder, trained(Positions())), memory=1e-5)
            self.assertIn("the package has no reference for them", done.notices[-1])
            self.assertIn("blocks.0", done.notices[-1])
            lines = pathlib.Path(done.path, "reference.jsonl").read_text().splitlines()
            self.assertEqual(json.loads(lines[1]), [])

    def test_long_texts_are_compared_with_shorter_ones(self) -> None:
        ids = torch.randint(VOCABULARY, (2, 300))
        with Folder() as folder:
            path = written(folder, trained(Positions()))
            compared: List[int] = []
            original = check.EagerComparison.compare

            def compare(own: Any, values: Any) -> bool:
                compared.append(values.traced.inputs[0].size(1))
                return original(own, values)

            with unittest.mock.patch.object(check.EagerComparison, "compare", compare):
                done = export(folder, empty(), "x", ids, folder=path, memory=3e-4)
            self.assertIn(128, compared)
            self.assertIn("They were compared with 128 tokens", done.notices[-1])
            with unittest.mock.patch.object(check.EagerComparison, "compare", compare):
                compared.clear()
                inputs = {"ids": ids, "mask": ids > 5}
                done = export(folder, empty(Masked), "y", ids, inputs, folder=path, memory=3e-4)
            self.assertIn(128, compared)
            self.assertIn("They were compared with 128 tokens", done.notices[-1])

    def test_of_a_model_in_memory_decides_the_number_of_samples_only(self) -> None:
        with Folder() as folder:
            counts: List[int] = []
            original = reference._Layer.reference

            def count(own: Any) -> Any:
                counts.append(own._samples)
                return original(own)

            with unittest.mock.patch.object(reference._Layer, "reference", count):
                self.assertEqual(export(folder, Positions(), "x", memory=1e-6).notices, ())
                self.assertEqual(set(counts), {1})
                export(folder, Positions(), "y")
                self.assertEqual(set(counts), {1, 2})

    def test_one_sample_is_compared_where_activations_are_large(self) -> None:
        model = Positions()
        with unittest.mock.patch("motley.activations._LARGE_BYTES", 1 << 12):
            self.assertEqual(activations.sample_count(model, model, IDS), 1)
        self.assertEqual(activations.sample_count(model, model, IDS), 2)
        few, many = (activations.saved_bytes(model, model, IDS[:count]) for count in (1, 2))
        self.assertTrue(1.9 * few < many <= 2 * few, (few, many))


class Refused(unittest.TestCase):
    def refused(self, words: str, state: Optional[Dict[str, torch.Tensor]], model: Optional[nn.Module] = None, **options: Any) -> None:
        with Folder() as folder:
            path = written(folder, trained(Positions()) if state is None else state)
            with self.assertRaisesRegex(motley.ExportError, words):
                export(folder, empty() if model is None else model, "x", **{"folder": path, **options})
            self.assertFalse(os.path.exists(folder.path("x")))

    def test_tensors_that_only_the_model_or_only_the_folder_has(self) -> None:
        state = trained(Positions())
        self.refused("has no values for blocks.1.1.weight", {name: t for name, t in state.items() if name != "blocks.1.1.weight"})
        self.refused("has no tensor classifier.weight", {**state, "classifier.weight": torch.zeros(2)})

    def test_other_shapes_and_types(self) -> None:
        state = trained(Positions())
        self.refused(r"blocks.0.1.bias has the shape \[31\] in the folder and \[32\]", {**state, "blocks.0.1.bias": torch.zeros(31)})
        self.refused("blocks.0.1.weight is int8 in the folder and float32 in the model", {**state, "blocks.0.1.weight": torch.zeros(32, 16, dtype=torch.int8)})

    def test_weights_in_memory_and_none_at_all(self) -> None:
        self.refused("both the model and folder= have weights", None, Positions())
        self.refused("embed.weight has no values", None, folder=None)
        self.refused("base= quantises weights in memory", None, base="int8")

    def test_folders_without_such_files(self) -> None:
        with Folder() as folder:
            os.mkdir(folder.path("f"))
            with self.assertRaisesRegex(motley.ExportError, "has no model.safetensors"):
                export(folder, empty(), "x", folder=folder.path("f"))
            pathlib.Path(folder.path("f"), "pytorch_model.bin").touch()
            with self.assertRaisesRegex(motley.ExportError, "It has pytorch_model.bin: open the model with transformers"):
                export(folder, empty(), "x", folder=folder.path("f"))

    def test_an_incomplete_shard(self) -> None:
        with Folder() as folder:
            path = written(folder, trained(Positions()))
            os.truncate(os.path.join(path, "model-1.safetensors"), os.path.getsize(os.path.join(path, "model-1.safetensors")) - 1)
            with self.assertRaisesRegex(motley.ExportError, "is incomplete"):
                export(folder, empty(), "x", folder=path)
            os.remove(os.path.join(path, "model-2.safetensors"))
            with self.assertRaisesRegex(motley.ExportError, "lacks model-2.safetensors"):
                export(folder, empty(), "x", folder=path)

    def test_branches_and_buffers_that_depend_on_weights(self) -> None:
        class Branch(Positions):
            def forward(self, ids: torch.Tensor) -> torch.Tensor:
                return super().forward(ids) * (2 if self.embed.weight.sum() > 0 else 1)

        self.refused("depend on the values of a tensor", None, empty(Branch))

        class Own(Positions):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("mean", self.embed.weight.detach().mean(0))

        self.refused("the buffer mean is computed from weights", None, empty(Own))

    def test_configurations_of_hugging_face_that_are_not_supported(self) -> None:
        for described, words in (({"auto_map": {"AutoModel": "x.Y"}}, "has its own code"),
                                 ({"quantization_config": {"bits": 4}}, "are quantised"),
                                 ({}, "names 0 architectures"), ([], "is not a JSON object")):
            with self.subTest(words), Folder() as folder:
                os.mkdir(folder.path("f"))
                pathlib.Path(folder.path("f"), "config.json").write_text(json.dumps(described))
                with self.assertRaisesRegex(motley.ExportError, words):
                    folder_model.create(folder.path("f"))
        with Folder() as folder, self.assertRaisesRegex(motley.ExportError, "cannot be read: FileNotFoundError"):
            motley.export(folder=folder.path("f"), tokens=8, path=folder.path("x"))

    def test_calls_without_model_path_or_loss(self) -> None:
        with self.assertRaisesRegex(motley.ExportError, "there is no model"):
            motley.export(path="x")
        with self.assertRaisesRegex(motley.ExportError, "the package has no path"):
            motley.export(Positions(), nn.CrossEntropyLoss(), (IDS, IDS))
        with self.assertRaisesRegex(motley.ExportError, "there is no loss"):
            motley.export(Positions(), None, (IDS, IDS), "x")


class WithoutValues(unittest.TestCase):
    def test_shapes_types_and_layouts_are_those_of_tensors(self) -> None:
        x = torch.randn(2, 6, 4)
        for function in (lambda t: t.transpose(1, 2), lambda t: t.softmax(-1), lambda t: (t > 0).sum(1), lambda t: t[:, 1:3] * 2.0,
                         lambda t: t.permute(2, 0, 1).reshape(4, 12), lambda t: t.to(torch.int64) + 1, lambda t: torch.cat([t, x], 1)):
            right, found = function(x), function(without_values(x))
            self.assertEqual((found.shape, found.dtype, found.stride()), (right.shape, right.dtype, right.stride()))
            self.assertIsInstance(found, Virtual)

    def test_views_share_memory_and_copies_do_not(self) -> None:
        x = virtual((4, 6), torch.float32)
        self.assertEqual(address(x.t()), address(x))
        self.assertEqual(address(x[:1]), address(x.detach()))
        self.assertNotEqual(address(x[1:]), address(x))
        self.assertNotEqual(address(x.clone()), address(x))

    def test_operations_that_need_values_are_refused(self) -> None:
        with self.assertRaisesRegex(motley.ExportError, "needs the values of a tensor"):
            bool(virtual((), torch.float32) > 0)

    def test_tables_that_depend_on_sizes_alone_have_values(self) -> None:
        x = virtual((2, 5), torch.float32)
        table = torch.arange(x.size(1)) / 5
        self.assertNotIsInstance(table, Virtual)
        self.assertEqual(float(table.sum()), 2.0)

    def test_models_contain_no_tensors_without_values_afterwards(self) -> None:
        class Keeps(Positions):
            last = None

            def forward(self, ids: torch.Tensor) -> torch.Tensor:
                self.last = super().forward(ids)
                return self.last

        model = Keeps()
        motley.split(model, IDS)
        self.assertIsNone(model.last)

    def test_discarded_masks_are_computed_again_if_needed(self) -> None:
        class Asks(Positions):
            def forward(self, ids: torch.Tensor) -> torch.Tensor:
                mask = torch.ones(1100, 1000).tril()
                return super().forward(ids) * (2 if mask[:, 0].sum() == 1100 else 3)

        with Folder() as folder:
            torch.manual_seed(0)
            model = Asks()
            export(folder, empty(Asks), "x", folder=written(folder, trained(model)))
            self.assertTrue(torch.allclose(Package.open(folder.path("x")).score(IDS), model(IDS)))

    def test_a_model_is_traced_without_values(self) -> None:
        seen: List[bool] = []

        class Seen(Positions):
            def forward(self, ids: torch.Tensor) -> torch.Tensor:
                seen.append(isinstance(ids, Virtual))
                return super().forward(ids)

        motley.split(Seen(), IDS)
        self.assertEqual(set(seen), {True})


if __name__ == "__main__":
    unittest.main()
