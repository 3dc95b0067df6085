"""Models that are called with several inputs by name: their packages, equal to eager PyTorch, and their data."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import unittest
import warnings
from typing import Any, Dict, Tuple

import numpy
import torch
import torch.nn as nn

from support import Folder, motley
import make_packages
from named_models import Captions, Encoder, LENGTH, VOCABULARY, pictures, texts
from motley import data, losses, named, probe
from motley.interpret import Package

CLASSES = nn.CrossEntropyLoss()
LARGEST_DIFFERENCE = 1e-6


@contextlib.contextmanager
def silent() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def export(folder: Folder, layers: Any, batch: Any, **options: Any) -> Tuple[Any, Package]:
    done = motley.export(layers, CLASSES, batch, folder.path("m.motley"), **options)
    return done, Package.open(done.path)


def read_json(path: str, line: int = 0) -> Any:
    with open(path, encoding="utf-8") as file:
        return json.loads(file.read().splitlines()[line]) if path.endswith("l") else json.load(file)


class Packages(unittest.TestCase):
    def equals_eager(self, model: nn.Module, package: Package, batch: Any, **extra: Any) -> None:
        """At sizes that were not traced."""
        for samples in (1, 5, 7):
            input, target = batch(samples)
            right = make_packages.reference(model, CLASSES, input, target)
            step = package.train(input, target)
            self.assertLessEqual(float((step.loss - right["loss"]).abs()), LARGEST_DIFFERENCE * float(right["loss"].abs()))
            self.assertEqual(int(step.count), int(right["count"]))
            largest = max(float(value.abs().max()) for key, value in right.items() if key.startswith("grad/"))
            for key, value in right.items():
                if key.startswith("grad/"):
                    self.assertLessEqual(float((step.gradients[key[5:]] - value).abs().max()), LARGEST_DIFFERENCE * largest, key)
            self.assertLessEqual(float((package.score(input) - right["score"]).abs().max()), LARGEST_DIFFERENCE * float(right["score"].abs().max()))

    def test_an_encoder_with_ids_mask_and_segments(self) -> None:
        for truth_values in (False, True):
            def batch(samples: int) -> Any:
                return texts(samples, truth_values)
            torch.manual_seed(1)
            model = Encoder()
            with Folder() as folder, silent():
                done, package = export(folder, model, batch(4))
                self.assertEqual(done.largest_difference, 0)
                self.assertEqual(done.notices, ())
                self.assertGreaterEqual(done.layers, 4)
                self.assertEqual(package.description["version"], 3)
                self.assertEqual(package.description["inputs"], [
                    {"name": "input_ids", "type": "int64", "shape": [LENGTH], "limit": VOCABULARY},
                    {"name": "attention_mask", "type": "bool" if truth_values else "int64", "shape": [LENGTH], "limit": None},
                    {"name": "token_type_ids", "type": "int64", "shape": [LENGTH], "limit": 2}])
                self.assertNotIn("input", package.description)
                self.assertEqual(package.description["unit"], "sample")
                self.equals_eager(model, package, batch)
                references = read_json(folder.path("m.motley/reference.jsonl"), 1)
                self.assertEqual(references[0]["inputs"][1], [{"count": LENGTH, "values": [0, 1]}])

    def test_an_image_with_ids(self) -> None:
        torch.manual_seed(1)
        model = Captions()
        with Folder() as folder, silent():
            done, package = export(folder, model, pictures(3))
            self.assertEqual(done.notices, ())
            self.assertGreaterEqual(done.layers, 3)
            self.assertEqual([entry["type"] for entry in package.description["inputs"]], ["float32", "int64"])
            self.assertEqual([entry["limit"] for entry in package.description["inputs"]], [None, VOCABULARY])
            self.assertEqual(package.description["unit"], "token")
            self.equals_eager(model, package, pictures)

    def test_what_only_later_layers_use_crosses_exactly(self) -> None:
        def batch(samples: int) -> Any:
            inputs, targets = texts(samples)
            return {**inputs, "weight": torch.rand(samples) + 0.5}, targets
        torch.manual_seed(1)
        model = Encoder()
        with Folder() as folder, silent():
            _, package = export(folder, model, batch(4))
            crossing = [{"type": "float32", "shape": [], "gradient": False} in layer["outputs"] for layer in package.description["layers"]]
            self.assertEqual(crossing, [True] * (len(crossing) - 2) + [False] * 2)
            self.equals_eager(model, package, batch)

    def test_their_order_is_that_of_the_package(self) -> None:
        torch.manual_seed(1)
        model = Encoder()
        batch, targets = texts(4)
        layers = motley.split(model, batch)
        turned = dict(reversed(list(batch.items())))
        values = []
        for given in (batch, turned):
            x: Any = given
            for _, layer in layers.layers:
                x = layer(x)
            values.append(x)
        self.assertTrue(torch.equal(*values))
        with Folder() as folder, silent():
            _, package = export(folder, model, (batch, targets))
            self.assertTrue(torch.equal(package.score(batch), package.score(turned)))

    def test_one_input_by_name(self) -> None:
        class Named(nn.Sequential):
            def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
                return super().forward(pixel_values)
        model = Named(nn.Flatten(), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3))
        batch = {"pixel_values": torch.randn(4, 3, 2, 2)}, torch.randint(3, (4,))
        with Folder() as folder, silent():
            _, package = export(folder, model, batch)
            self.assertEqual(package.description["inputs"], [{"name": "pixel_values", "type": "float32", "shape": [3, 2, 2], "limit": None}])
            self.assertTrue(torch.allclose(package.score(batch[0]), model.eval()(**batch[0])))

    def test_layers_by_hand_and_calls_of_the_model(self) -> None:
        torch.manual_seed(1)
        model = Encoder()
        batch = texts(4)
        for layers in ([("all", lambda given: model(**given)["logits"])], [("all", lambda given: model(given["input_ids"], given["attention_mask"])["logits"])]):
            with Folder() as folder, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _, package = export(folder, layers, batch, model=model)
                with torch.no_grad():
                    self.assertTrue(torch.allclose(package.score(batch[0]), layers[0][1](batch[0]), atol=1e-6))
        def renamed(given: Any) -> torch.Tensor:
            return model(given["ids"], given["mask"])["logits"] * 1.0
        other = {"ids": batch[0]["input_ids"], "mask": batch[0]["attention_mask"]}, batch[1]
        with Folder() as folder, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            export(folder, [("all", renamed)], other, model=model)  # the model is not called by these names: not compared
            self.assertIn("forward=", str(said[0].message))
        with Folder() as folder, silent():
            export(folder, [("all", renamed)], other, model=model, forward=renamed)
        with Folder() as folder, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            _, package = export(folder, model, batch, forward=lambda given: model(given["input_ids"], given["attention_mask"] > 0)["logits"])
            self.assertGreaterEqual(len(package.description["layers"]), 4)
            self.assertEqual([str(each.message) for each in said], ["forward= does not use the input 'token_type_ids'"])

    def test_a_list_that_differs_is_refused(self) -> None:
        model = Encoder()
        wrong = [("all", lambda given: model(given["input_ids"], torch.ones_like(given["attention_mask"]), given["token_type_ids"])["logits"] * 1.0)]
        with Folder() as folder, self.assertRaisesRegex(motley.ExportError, "of the largest output"):
            export(folder, [*wrong, ("head", lambda x: x * 1.0)], texts(6), model=model)

    def refused(self, message: str, batch: Any, model: Any = None, **options: Any) -> None:
        with Folder() as folder, self.assertRaisesRegex(motley.ExportError, message):
            export(folder, model or Encoder(), batch, **options)

    def test_is_refused(self) -> None:
        inputs, targets = texts(4)
        self.refused("names 'input_ids', 'attention_mask', 'token_type_ids', 'idx'.*unexpected keyword argument 'idx'.*leave out others",
                     ({**inputs, "idx": targets}, targets))
        self.refused("missing a required argument: 'input_ids'", ({"attention_mask": inputs["attention_mask"]}, targets))
        self.refused("the example's input 'attention_mask' is int32.*float32 or int64, or bool", ({**inputs, "attention_mask": inputs["attention_mask"].int()}, targets))
        self.refused("2 inputs and 4 targets", ({**inputs, "token_type_ids": inputs["token_type_ids"][:2]}, targets))
        self.refused("an input has the name 'a b'", ({"a b": targets}, targets))
        self.refused("an input has the name 0", ({0: targets}, targets))
        self.refused("two inputs have the name 'Input_IDs' but for case", ({**inputs, "Input_IDs": targets}, targets))
        self.refused("dictionary without keys", ({}, targets))
        self.refused("input_limit= is 40, and the inputs have names", (inputs, targets), input_limit=40)
        self.refused("input_limit= has 'ids', and the inputs are 'input_ids'", (inputs, targets), input_limit={"ids": 40})
        self.refused("input_limit= has 'x', and the inputs are one tensor", (torch.zeros(2, 3), torch.zeros(2, dtype=torch.int64)), nn.Sequential(nn.Linear(3, 2)),
                     input_limit={"x": 40})

    def test_limits_that_are_given(self) -> None:
        with Folder() as folder, silent():
            _, package = export(folder, Encoder(), texts(4), input_limit={"attention_mask": 2})
            self.assertEqual([entry["limit"] for entry in package.description["inputs"]], [VOCABULARY, 2, 2])

    def test_a_single_input_has_the_bytes_of_before(self) -> None:
        """Without names a package has no trace of them."""
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        with Folder() as folder, silent():
            _, package = export(folder, model, (torch.randn(2, 3), torch.zeros(2, dtype=torch.int64)))
            self.assertEqual(package.description["version"], 1)
            self.assertEqual((package.description["input"], package.description["input_limit"]), ({"type": "float32", "shape": [3]}, 0))
            self.assertEqual(list(package.description), ["format", "version", "made_by", "name", "input", "input_limit", "target", "target_limit",
                                                         "ignored", "units_per_sample", "unit", "layers", "graphs", "aliases", "weights"])


class Samples:
    """A map-style dataset of dictionaries."""

    def __init__(self, inputs: Dict[str, torch.Tensor], targets: torch.Tensor, pairs: bool = False):
        self._inputs, self._targets, self._pairs = inputs, targets, pairs

    def __len__(self) -> int:
        return len(self._targets)

    def __getitem__(self, k: int) -> Any:
        inputs = {name: tensor[k] for name, tensor in self._inputs.items()}
        return (inputs, self._targets[k]) if self._pairs else {**inputs, "labels": self._targets[k]}


class Data(unittest.TestCase):
    def understood(self, given: Any, held_out: Any = None) -> data.Arrays:
        found = data.parse(given, held_out, None, losses.parse(CLASSES))
        assert isinstance(found, data.Arrays)
        return found

    def test_forms(self) -> None:
        inputs, targets = texts(5, truth_values=True)
        for what, given in (("a dictionary beside the targets", (inputs, targets)), ("a dictionary with them", {**inputs, "labels": targets}),
                            ("of a tokenizer", (collections.UserDict(inputs), targets)), ("of arrays", ({k: v.numpy() for k, v in inputs.items()}, targets.numpy())),
                            ("of lists", ({k: v.tolist() for k, v in inputs.items()}, targets.tolist())), ("a dataset", Samples(inputs, targets)),
                            ("a dataset of pairs", Samples(inputs, targets, pairs=True)), ("a list", list(Samples(inputs, targets)))):
            with self.subTest(what):
                found = self.understood(given)
                self.assertEqual(list(found.inputs), list(inputs))
                for name, tensor in inputs.items():
                    self.assertTrue(numpy.array_equal(found.inputs[name], tensor.numpy()), name)
                self.assertEqual(found.inputs["attention_mask"].dtype, numpy.bool_)
                self.assertTrue(numpy.array_equal(found.targets, targets.numpy()))
                example, target = found.example()
                self.assertEqual([tensor.dtype for tensor in example.values()], [torch.int64, torch.bool, torch.int64])
                self.assertTrue(torch.equal(target, targets[:4]))

    def test_bytes_are_pixels_where_they_are_images(self) -> None:
        image, mask = torch.randint(256, (4, 3, 2, 2), dtype=torch.uint8), torch.ones(4, 5, dtype=torch.uint8)
        (example, _) = self.understood(({"pixel_values": image, "mask": mask}, torch.zeros(4, dtype=torch.int64))).example()
        self.assertTrue(torch.equal(example["pixel_values"], image.float() / 255))
        self.assertTrue(torch.equal(example["mask"], mask.long()))

    def test_files(self) -> None:
        inputs, targets = texts(5, truth_values=True)
        with Folder() as folder:
            for name in ("inputs.npy", "eval_targets.npy"):  # of an earlier call
                numpy.save(folder.path(name), numpy.zeros(3))
            section = self.understood((inputs, targets), (texts(2, True)[0], targets[:2])).write(folder.path(""))
            self.assertEqual(section["kind"], "arrays")
            files = [f"{part}inputs.{name}.npy" for part in ("", "eval_") for name in inputs] + ["targets.npy", "eval_targets.npy"]
            self.assertEqual(sorted(os.listdir(section["path"])), sorted(files))
            self.assertEqual(numpy.load(folder.path("inputs.attention_mask.npy")).dtype, numpy.bool_)
            self.assertEqual(len(numpy.load(folder.path("eval_targets.npy"))), 2)
            self.understood((inputs["input_ids"], targets)).write(folder.path(""))
            self.assertEqual(sorted(os.listdir(section["path"])), ["inputs.npy", "targets.npy"])

    def test_is_refused(self) -> None:
        inputs, targets = texts(5)
        ids = inputs["input_ids"]
        other = {"a": ids[0], "labels": targets[0]}
        for message, given in (
                ("a dict with the keys 'input_ids', 'attention_mask', 'token_type_ids', and not of inputs with a target.*'labels'", inputs),
                ("a dict with the keys 'labels'", {"labels": targets}), ("a dict without keys", {}),
                ("sample 0 is a dict with the keys 'a', 'b'", [{"a": ids[0], "b": ids[0]}]),
                ("sample 1 has inputs by the names 'b', and sample 0 inputs by the names 'a'", [other, {"b": ids[0], "labels": targets[0]}]),
                ("sample 1 has one input without a name, and sample 0 inputs by the names 'a'", [other, (ids[0], targets[0])]),
                (r"inputs\['a'\] of sample 0 are \[6\], and of sample 1 \[5\].*Pad or crop", [other, {"a": ids[0, :5], "labels": targets[0]}]),
                (r"4 inputs\['attention_mask'\] and 5 targets", ({**inputs, "attention_mask": ids[:4]}, targets)),
                (r"inputs\['words'\] are strings", ({**inputs, "words": ["a"] * 5}, targets)),
                (r"the inputs\['a'\] are a single number", ({"a": torch.tensor(1)}, targets)),
                (r"inputs\['a'\] are 2 tensors", ({"a": (ids, ids)}, targets)),
                ("an input has the name 'a-b'", ({"a-b": ids}, targets)),
                ("the inputs are 2 tensors.*a dictionary with the names", ((ids, ids), targets))):
            with self.subTest(message), self.assertRaisesRegex(motley.MotleyError, message):
                self.understood(given)

    def test_labels_that_are_not_shifted_are_refused(self) -> None:
        ids = torch.randint(40, (5, 6))
        labels = ids.masked_fill(torch.rand(5, 6) < 0.2, -100)
        for given in ({"input_ids": ids, "labels": labels}, [{"input_ids": a, "labels": b} for a, b in zip(ids, labels)]):
            with self.assertRaisesRegex(motley.MotleyError, r"the labels equal inputs\['input_ids'\]: transformers shifts labels"):
                self.understood(given)
        self.understood(({"input_ids": ids}, labels))
        self.understood({"input_ids": ids[:, :-1], "labels": ids[:, 1:]})

    def test_samples_are_padded_if_the_caller_gives_values(self) -> None:
        rows = [{"input_ids": [5, 6, 7], "attention_mask": [True] * 3, "labels": [1, 2, 3]}, {"input_ids": [8], "attention_mask": [True], "labels": [4]}]
        fill = {"input_ids": 0, "attention_mask": False, "labels": -100}
        loss = losses.parse(CLASSES)
        found = data.parse(rows, rows[1:], None, loss, fill)
        assert isinstance(found, data.Arrays) and found.held_out is not None
        self.assertEqual(found.inputs["input_ids"].tolist(), [[5, 6, 7], [8, 0, 0]])
        self.assertEqual(found.inputs["attention_mask"].tolist(), [[True, True, True], [True, False, False]])
        self.assertEqual(found.inputs["attention_mask"].dtype, numpy.bool_)
        self.assertEqual(found.targets.tolist(), [[1, 2, 3], [4, -100, -100]])
        self.assertEqual(found.held_out[0]["input_ids"].tolist(), [[8, 0, 0]])
        self.assertEqual(data.parse(([[1.0], [2.0, 3.0]], [0, 1]), None, None, loss, {"inputs": -1.5}).inputs.tolist(), [[1.0, -1.5], [2.0, 3.0]])
        for message, given, held_out, pad in (
                ("differ in shape.*pad=", rows, None, None), ("differ in shape", rows, None, {"input_ids": 0, "labels": -100}),
                ("pad= has 'ids', and the inputs are 'input_ids', 'attention_mask'", rows, None, {**fill, "ids": 0}),
                ("pad= is 0. Pass a dictionary", rows, None, 0), ("pad= has 0.5 for input_ids, whose values are int64", rows, None, {**fill, "input_ids": 0.5}),
                ("pad= has -1 for attention_mask", rows, None, {**fill, "attention_mask": -1}),
                ("eval_data: a sample of input_ids has the length 3, and the longest one to train on 1", rows[1:], rows[:1], fill),
                ("pad= is for samples of unequal length", numpy.arange(9), None, fill)):
            with self.subTest(message), self.assertRaisesRegex(motley.MotleyError, message):
                data.parse(given, held_out, 2 if isinstance(given, numpy.ndarray) else None, loss, pad)

    def test_held_out_data_has_the_same_inputs(self) -> None:
        inputs, targets = texts(5)
        with self.assertRaisesRegex(motley.MotleyError, r"eval_data: it has inputs, targets, and the training data inputs\['input_ids'\]"):
            self.understood((inputs, targets), (inputs["input_ids"], targets))
        with self.assertRaisesRegex(motley.MotleyError, r"eval_data: its inputs\['attention_mask'\] have shape \[6\] and type bool.* \[6\] and int64"):
            self.understood((inputs, targets), (texts(5, True)[0], targets))

    def test_values_are_refused_with_their_place(self) -> None:
        inputs, targets = texts(5)
        found = probe.limits(motley.split(Encoder(), inputs), losses.parse(CLASSES), (inputs, targets))
        self.assertEqual(found, probe.Limits({"input_ids": VOCABULARY, "attention_mask": None, "token_type_ids": 2}, 4))

        def check(**changes: Any) -> None:
            self.understood(({**inputs, **changes}, targets)).check(found.inputs, found.targets, -100, finite=True)
        check()
        ids = inputs["input_ids"].clone()
        ids[3, 2] = VOCABULARY
        with self.assertRaisesRegex(motley.MotleyError, r"inputs\['input_ids'\]\[3, 2\] is 40; the model accepts 0 to 39"):
            check(input_ids=ids)
        mask = inputs["attention_mask"].clone()
        mask[1, 0] = 1 << 31
        with self.assertRaisesRegex(motley.MotleyError, r"inputs\['attention_mask'\]\[1, 0\] is 2147483648; integers of samples have 32 bits"):
            check(attention_mask=mask)
        with self.assertRaisesRegex(motley.MotleyError, r"inputs\['weight'\]\[4\] is nan"):
            self.understood(({"weight": torch.tensor([0, 1, 2, 3, float("nan")])}, targets)).check(None, None, None, finite=True)

    def test_limits_by_name(self) -> None:
        self.assertEqual(named.limits(None, {"a": 0, "b": 0}), [None, None])
        self.assertEqual(named.limits({"b": 3}, {"a": 0, "b": 0}), [None, 3])
        self.assertEqual(named.limits(3, torch.zeros(1)), [3])


if __name__ == "__main__":
    unittest.main()
