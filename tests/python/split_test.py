"""`motley.split` by the trace of a whole model: its cuts, and the equality of layers and model."""

from __future__ import annotations

import unittest
import warnings
from typing import Any, Callable, List, Tuple

import torch
import torch.nn as nn

import support
from support import Folder, motley, total
from traced_models import LENGTH, VOCABULARY, Block, EncoderDecoder, Features, Images, Language, Plain, UNet

from motley.interpret import Package
from motley.split.segment import Segment


def ids(count: int, length: int = LENGTH) -> torch.Tensor:
    made = torch.randint(1, VOCABULARY, (count, length))
    made[0, -2:] = 0
    return made


def features(count: int) -> torch.Tensor:
    return torch.randn(count, 5, 8)


Case = Tuple[nn.Module, Callable[[int], torch.Tensor]]


def export(model: nn.Module, input: torch.Tensor, folder: Folder, **options: Any) -> Tuple[motley.Exported, Package]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = motley.export(model, total, (input, torch.zeros(input.size(0))), folder.path("x"), **options)
    return done, Package.open(done.path)


def names(layers: Any) -> List[str]:
    return [name for name, _ in layers.layers]


class Split(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(1)
        folder = Folder()
        self.folder = folder.__enter__()
        self.addCleanup(folder.__exit__)

    def equals_eager(self, model: nn.Module, batch: Callable[[int], torch.Tensor], **options: Any) -> Package:
        """Asserts that the package of a model without dropout has the model's loss and gradients, at a batch size that was not traced."""
        done, package = export(model, batch(2), self.folder, **options)
        self.assertLessEqual(done.largest_difference, 1e-5)
        input = batch(5)
        model.train()
        parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        value, grads = support.eager(model, list(parameters.values()), input, torch.zeros(5))
        step = package.train(input, torch.zeros(5))
        self.assertLessEqual(float((step.loss - value).abs()), 1e-5 * float(value.abs()))
        largest = max(float(grad.abs().max()) for grad in grads)
        for name, grad in zip(parameters, grads):
            apart = float((step.gradients[name] - grad).abs().max())
            self.assertLessEqual(apart, 1e-5 * max(float(grad.abs().max()), 1e-3 * largest), name)
        return package

    def test_glue_masks_rotary_tables_and_a_tied_head(self) -> None:
        package = self.equals_eager(Language(), ids)
        layers = package.description["layers"]
        self.assertEqual([layer["name"] for layer in layers], ["embed"] + [
            f"blocks.{k}.{part}" for k in range(3) for part in ("attention", "mlp")] + ["head"])
        self.assertEqual([layer["graph"] for layer in layers[1:5]], [1, 2, 1, 2])
        self.assertEqual(layers[0]["outputs"], [{"type": "bool", "shape": [LENGTH]}, {"type": "float32", "shape": [LENGTH, 16]}])
        self.assertEqual(layers[5]["outputs"], [{"type": "float32", "shape": [LENGTH, 16]}])
        self.assertEqual(package.description["version"], 2)
        self.assertTrue(layers[-1]["parameters"][-1]["tied"] or any(p["tied"] for p in layers[-1]["parameters"]))

    def test_dropout_between_blocks_is_the_models(self) -> None:
        done, package = export(Language(dropout=0.2), ids(2), self.folder)
        self.assertEqual(done.layers, 8)
        self.assertEqual(done.notices, ())
        masks = [sum(node["op"] == "motley::dropout_mask" for node in graphs["forward"]["nodes"]) for graphs in package.description["graphs"]]
        self.assertEqual([masks[layer["graph"]] for layer in package.description["layers"]], [1, 1, 2, 1, 2, 1, 2, 0])

    def test_numbers_that_are_drawn_and_not_used(self) -> None:
        class Denoiser(Language):
            def forward(self, given: torch.Tensor) -> torch.Tensor:
                out = super().forward(given)
                _, noise, level = torch.randn_like(out), torch.randn_like(out), torch.rand(out.size(0), 1, 1)
                return out * level + noise if self.training else out

        done, package = export(Denoiser(dropout=0.2), ids(2), self.folder)
        self.assertEqual((done.layers, done.notices), (8, ()))
        drawn = [node["op"] for graphs in package.description["graphs"] for node in graphs["forward"]["nodes"] if node["op"].startswith("motley::")]
        self.assertEqual([op for op in drawn if "dropout" not in op], ["motley::normal", "motley::uniform"])

    def test_numbers_of_training_alone_that_all_blocks_use(self) -> None:
        class Rescaled(Language):
            def forward(self, tokens: torch.Tensor) -> torch.Tensor:
                x = self.embed(tokens)
                scale = torch.empty(1).uniform_(-0.5, 0.5).exp() if self.training else torch.ones(1)
                for block in self.blocks:
                    x = block(x * scale)
                return self.head(self.norm(x))

        model = Rescaled()
        layers = motley.split(model, ids(2))
        self.assertGreaterEqual(len(layers.layers), 4)
        done, package = export(layers, ids(2), self.folder)
        self.assertLessEqual(done.largest_difference, 1e-5)
        input = ids(3)
        model.eval()
        self.assertLessEqual(float((package.score(input) - model(input)).abs().max()), 1e-5)

    def test_a_module_on_which_nothing_depends(self) -> None:
        class Unused(Block):
            pass

        class Pooled(Language):
            def __init__(self) -> None:
                super().__init__()
                self.pool = Unused()

            def forward(self, given: torch.Tensor) -> torch.Tensor:
                self.pool(self.embed(given))
                return super().forward(given)

        self.assertEqual(len(motley.split(Pooled(), ids(2)).layers), 8)

    def test_layers_run_as_the_model_does(self) -> None:
        model = Language(dropout=0.5)
        layers = motley.split(model, ids(2))
        model.eval()
        input = ids(3)
        value: Any = input
        for _, call in layers.layers:
            value = call(value)
        self.assertTrue(torch.equal(value, model(input)))
        model.train()
        value = input
        for _, call in layers.layers:
            value = call(value)
        self.assertFalse(torch.allclose(value, model(input)))

    def test_encoder_and_decoder(self) -> None:
        package = self.equals_eager(EncoderDecoder(), lambda n: ids(n, 2 * LENGTH))
        layers = package.description["layers"]
        self.assertGreaterEqual(len(layers), 4 + 2)
        # The decoder's lookup is in the embedding's layer, and the small bias of positions crosses instead of its product.
        self.assertEqual([layer["name"] for layer in layers if any(p["name"] == "shared.weight" for p in layer["parameters"])],
                         [layers[0]["name"], layers[-1]["name"]])
        self.assertIn([8, 2], [output["shape"] for layer in layers for output in layer["outputs"]])

    def test_skips_cross(self) -> None:
        package = self.equals_eager(UNet(), lambda n: torch.randn(n, 3, 8, 8))
        found = [layer["name"] for layer in package.description["layers"]]
        for expected in ("down.0.resnets.0", "down.1.resnets.1", "middle", "up.0.resnets.1", "up.1.resnets.0"):
            self.assertIn(expected, found)
        self.assertEqual(package.description["version"], 1)

    def test_nested_lists_of_unlike_blocks_with_stochastic_depth(self) -> None:
        done, package = export(Images(), torch.randn(2, 3, 16, 16), self.folder)
        self.assertEqual([layer["name"] for layer in package.description["layers"]],
                         ["features.0", "features.1.0", "features.1.1", "features.2.0", "features.2.1", "classifier"])
        self.assertEqual(done.notices, ())
        self.assertEqual(len(package.description["layers"][1]["statistics"]), 6)

    def test_a_model_without_blocks(self) -> None:
        done, package = export(Plain(), torch.randn(2, 3, 8, 8), self.folder)
        self.assertEqual([layer["name"] for layer in package.description["layers"]], ["conv1", "conv2", "fc1", "fc2"])

    def test_what_stands_between_blocks(self) -> None:
        for how, layers in (("", 6), ("no_grad", 6), ("folded", 6), ("in place", 6), ("length first", 6), ("small parameter", 6), ("own function", 6),
                            ("checkpoint", 6)):
            with self.subTest(how):
                package = self.equals_eager(Features(how), features) if how != "checkpoint" else export(Features(how), features(2), self.folder)[1]
                self.assertEqual(len(package.description["layers"]), layers)

    def test_values_without_a_gradient(self) -> None:
        package = self.equals_eager(Features("no_grad"), features)
        outputs = [output for layer in package.description["layers"] for output in layer["outputs"]]
        self.assertIn({"type": "float32", "shape": [5, 1], "gradient": False}, outputs)
        self.assertEqual(package.description["version"], 2)

    def test_one_block(self) -> None:
        self.assertEqual(names(motley.split(Language(blocks=1), ids(2)))[-1], "head")

    def test_a_block_that_is_used_several_times_is_one_layer(self) -> None:
        package = self.equals_eager(Features("same block"), features)
        self.assertEqual([layer["name"] for layer in package.description["layers"]], ["stem", "blocks.0", "head"])

    def test_hooks_are_refused(self) -> None:
        with self.assertRaisesRegex(motley.ExportError, "the traced layers of Features differ from the model: the gradient of .*hooks"):
            export(Features("hook"), features(2), self.folder)

    def test_no_place_to_cut(self) -> None:
        class One(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.weight = nn.Parameter(torch.rand(8, 4))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x.mean(1) @ self.weight

        done, _ = export(One(), features(2), self.folder)
        self.assertEqual(done.layers, 1)
        self.assertRegex(done.notices[0], "One is a single layer")

    def test_packed_inputs(self) -> None:
        model = Language()
        done, package = export(model, torch.stack([ids(2), torch.ones(2, LENGTH, dtype=torch.int64)], 1), self.folder,
                               forward=lambda t: model(t[:, 0].masked_fill(t[:, 1] == 0, 0)), input_limit=VOCABULARY)
        self.assertEqual(done.layers, 8)

    def test_what_cannot_be_traced(self) -> None:
        class Branches(Language):
            def forward(self, given: torch.Tensor) -> torch.Tensor:
                return super().forward(given) if bool((given[0, 0] > 3).any()) else super().forward(given + 1)

        with self.assertRaisesRegex(motley.ExportError, r"split_test\.py:\d+: .*values of a tensor\. Replace"):
            motley.split(Branches(), ids(2))
        with self.assertRaisesRegex(motley.ExportError, "raises for the input"):
            motley.split(Language(), torch.randn(2, 3))
        with self.assertRaisesRegex(motley.ExportError, "the example is not a tensor of samples"):
            motley.split(Language(), "text")

    def test_segments_say_where_operations_came_from(self) -> None:
        layers = motley.split(Language(), ids(2))
        self.assertTrue(all(isinstance(call, Segment) for _, call in layers.layers))
        nodes = layers.layers[1][1].train.nodes
        self.assertTrue(all("traced_models.py" in (node.line or "traced_models.py") for node in nodes))
        self.assertIn("blocks.0.attention.q", {node.module for node in nodes})

    def test_the_model_stays_as_it_was(self) -> None:
        model = Images().eval()
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        state = torch.get_rng_state()
        motley.split(model, torch.randn(2, 3, 16, 16))
        self.assertFalse(model.training)
        self.assertTrue(all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items()))
        torch.set_rng_state(state)
