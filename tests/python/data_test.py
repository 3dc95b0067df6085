"""User data is interpreted as PyTorch does, or rejected with a message that names its type and the supported types."""

from __future__ import annotations

import os
import sys
import types
import unittest
from typing import Any, Callable, List, Tuple
from unittest import mock

import numpy
import torch
import torch.nn as nn

from support import Folder, imported, motley
from motley import data, layers, losses, probe
import language_models

X, Y = torch.randn(8, 6), torch.randint(3, (8,))
CLASSES, NUMBERS = losses.parse(nn.CrossEntropyLoss()), losses.parse(nn.MSELoss())


class Samples:
    """A map-style dataset."""

    def __init__(self, sample: Callable[[int], Any], count: int = 8):
        self._sample, self._count = sample, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, k: int) -> Any:
        return self._sample(k)


def library(module: str, **attributes: Any) -> Any:
    """An object of a class of another library, which need not be installed."""
    return type("Table", (), {"__module__": module, **attributes})()


def rising(k: int) -> Any:
    if k == 3:
        raise KeyError("column")
    return X[k], Y[k]


REFUSED: List[Tuple[str, Any, str]] = [
    ("a dict without a target", {"a": X, "b": X}, "a dict with the keys 'a', 'b', and not of inputs with a target"),
    ("an empty dict", {}, "a dict without keys"),
    ("a DataFrame", library("pandas.core.frame", columns=["a", "b", "label"], __len__=lambda self: 2, __getitem__=lambda self, key: 1 / 0),
     r"columns 'a', 'b', 'label'.*df\[\['a', 'b'\]\].*df\['label'\]"),
    ("splits", {"train": library("datasets.arrow_dataset", column_names=["a"])}, "a dict with the splits 'train'.*eval_data="),
    ("a loader", torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, Y), batch_size=4), r"loader.dataset, with global_batch=4"),
    ("a path", "data/train.npy", r"a str, probably a path.*mmap_mode='r'"),
    ("a generator", ((x, y) for x, y in zip(X, Y)), r"generator is not a supported type of data.*list\(data\)"),
    ("nothing", None, "NoneType is not a supported type of data"),
    ("two inputs", ((X, X), Y), "the inputs are 2 tensors.*a dictionary with the names"),
    ("two inputs a sample", Samples(lambda k: ((X[k], X[k]), Y[k])), "inputs of sample 0 are 2 tensors.*a dictionary with the names"),
    ("two targets a sample", Samples(lambda k: (X[k], (Y[k], Y[k]))), "targets of sample 0 are 2 tensors.*A loss takes one tensor.*custom loss"),
    ("three parts", (X, X, Y), "a tuple of 3"),
    ("three parts a sample", Samples(lambda k: (X[k], X[k], Y[k])), "sample 0 has 3 parts"),
    ("inputs alone", Samples(lambda k: X[k]), "sample 0 is one Tensor"),
    ("objects", Samples(lambda k: types.SimpleNamespace(x=1)), "sample 0 is a SimpleNamespace"),
    ("a dataset that fails", Samples(rising), "sample 3 of the Samples cannot be read: KeyError: 'column'"),
    ("a dataset without samples", [], "the list has no samples"),
    ("samples of no values", (torch.zeros(4, 0), Y[:4]), r"inputs have the shape \[4, 0\]"),
    ("nothing in it", (X[:0], Y[:0]), "0 inputs and 0 targets"),
    ("unlike numbers", (X, Y[:5]), "8 inputs and 5 targets"),
    ("one number", (X, torch.tensor(1)), "the targets are a single number"),
    ("unlike lengths", Samples(lambda k: (X[k, : 2 + k % 2], Y[k])), r"inputs of sample 0 are \[2\], and of sample 1 \[3\].*Pad or crop.*-100"),
    ("unlike lists", ([[1.0], [1.0, 2.0]], [0, 1]), r"inputs of sample 0 are \[1\], and of sample 1 \[2\].*Pad"),
    ("texts", (["one", "two"], [0, 1]), "type <U3: inputs are strings"),
    ("none", (numpy.array([None, 1]), [0, 1]), "type object: inputs are of NoneType"),
    ("complex numbers", (torch.zeros(2, 2, dtype=torch.complex64), Y[:2]), "complex64: inputs are complex numbers"),
    ("hidden values", (numpy.ma.masked_array(X.numpy(), X.numpy() > 0), Y), "inputs are a masked array"),
    ("sparse", (X.to_sparse(), Y), r"inputs are a sparse tensor.*to_dense\(\)"),
    ("beyond 63 bits", (numpy.array([2**63], dtype=numpy.uint64), [1]), "2.63 or more"),
]

AS_FLOAT32 = [torch.float16, torch.bfloat16, torch.float64, torch.float32]


class Recognized(unittest.TestCase):
    def test_is_refused(self) -> None:
        for what, given, message in REFUSED:
            with self.subTest(what), self.assertRaisesRegex(motley.MotleyError, "(?s)" + message):
                data.parse(given, None, None, CLASSES)

    def test_floats_become_float32_exactly(self) -> None:
        for dtype in AS_FLOAT32:
            found = data.parse((X.clone().to(dtype).requires_grad_(), Y), None, None, CLASSES)
            self.assertTrue(numpy.array_equal(found.inputs, X.to(dtype).float().numpy()), dtype)
            self.assertEqual(found.inputs.dtype, numpy.float32)
            of_samples = data.parse([(x, int(y)) for x, y in zip(X.to(dtype), Y)], None, None, CLASSES)
            self.assertTrue(numpy.array_equal(of_samples.inputs, found.inputs), dtype)

    def test_truth_values_are_0_and_1(self) -> None:
        inputs = data.parse((X > 0, Y > 0), None, None, CLASSES)
        self.assertEqual((inputs.inputs.dtype, inputs.targets.dtype), (numpy.float32, numpy.int64))
        self.assertTrue(numpy.array_equal(inputs.inputs, (X > 0).float().numpy()))
        self.assertTrue(torch.equal(inputs.example()[0], (X[:4] > 0).float()))
        self.assertEqual(data.parse((X, X > 0), None, None, losses.parse(nn.BCEWithLogitsLoss())).targets.dtype, numpy.float32)

    def test_integer_targets_are_numbers_where_the_loss_compares_numbers(self) -> None:
        for targets in (torch.randint(5, (8, 1)), torch.randint(5, (8, 1), dtype=torch.uint8), numpy.arange(8, dtype=numpy.int16)[:, None]):
            found = data.parse((X, targets), None, None, NUMBERS).targets
            self.assertEqual(found.dtype, numpy.float32)
            self.assertTrue(numpy.array_equal(found, numpy.asarray(targets)))
        self.assertEqual(data.parse((X, Y), None, None, CLASSES).targets.dtype, numpy.int64)
        with self.assertRaisesRegex(motley.MotleyError, "beyond 16777216"):
            data.parse((X[:1], torch.tensor([[2**24 + 1]])), None, None, NUMBERS)

    def test_lists_are_inputs_and_targets(self) -> None:
        found = data.parse(([[1.0, 2.0], [3.0, 4.0]], [0, 1]), None, None, CLASSES)
        self.assertEqual((found.inputs.tolist(), found.targets.tolist()), ([[1.0, 2.0], [3.0, 4.0]], [0, 1]))
        pairs = data.parse([([1.0, 2.0], 0), ([3.0, 4.0], 1)], None, None, CLASSES)
        self.assertTrue(numpy.array_equal(pairs.inputs, found.inputs) and numpy.array_equal(pairs.targets, found.targets))

    def test_files_are_mapped(self) -> None:
        with Folder() as folder:
            numpy.save(folder.path("x.npy"), X.numpy())
            mapped = numpy.load(folder.path("x.npy"), mmap_mode="r")
            found = data.parse((mapped, Y), None, None, CLASSES)
            self.assertTrue(numpy.shares_memory(found.inputs, mapped))
            found.example()[0].add_(1)
            found.write(folder.path("data"))
            self.assertTrue(numpy.array_equal(numpy.load(folder.path("data/inputs.npy")), X.numpy()))

    def test_pictures_lie_as_to_tensor_lays_them(self) -> None:
        class Image:
            def __init__(self, mode: str, values: numpy.ndarray):
                self.mode, self._values = mode, values

            def __array__(self, dtype: Any = None, copy: Any = None) -> numpy.ndarray:
                return self._values

        rgb, grey = numpy.random.randint(256, size=(4, 5, 3)).astype(numpy.uint8), numpy.random.randint(3, size=(4, 5)).astype(numpy.uint8)
        with imported("PIL.Image", types.SimpleNamespace(Image=Image)):
            found = data.parse([(Image("RGB", rgb), Image("P", grey))] * 2, None, None, CLASSES)
            self.assertEqual((found.inputs.dtype, found.inputs.shape), (numpy.uint8, (2, 3, 4, 5)))
            self.assertTrue(torch.equal(found.example()[0][0], torch.from_numpy(rgb).permute(2, 0, 1).float() / 255))
            self.assertTrue(numpy.array_equal(found.targets[0], grey))
            self.assertEqual(found.targets.dtype, numpy.int64)
            self.assertEqual(data.parse([(Image("L", grey), 1)], None, None, CLASSES).inputs.shape, (1, 1, 4, 5))
            for mode in ("P", "1", "CMYK", "I;16"):
                with self.assertRaisesRegex(motley.MotleyError, f"image of mode {mode}.*convert"):
                    data.parse([(Image(mode, grey), 1)], None, None, CLASSES)

    def test_what_is_held_out_is_alike(self) -> None:
        with self.assertRaisesRegex(motley.MotleyError, r"eval_data: its inputs have shape \[5\] and type float32.*\[6\] and float32"):
            data.parse((X, Y), (X[:, :5], Y), None, CLASSES)
        with self.assertRaisesRegex(motley.MotleyError, "eval_data: the data is a dict"):
            data.parse((X, Y), {"x": X}, None, CLASSES)
        with self.assertRaisesRegex(motley.MotleyError, "context= applies only to a row of tokens"):
            data.parse((X, Y), None, 4, CLASSES)


class Before(unittest.TestCase):
    """Mismatches are detected before the model is exported."""

    def refused(self, message: str, model: nn.Module, loss: Any, given: Any, **options: Any) -> None:
        with Folder() as folder:
            program = folder.path("motley")
            with open(program, "w") as file:
                file.write("#!/bin/sh\nexit 0\n")
            os.chmod(program, 0o755)
            with mock.patch("motley.train.export", side_effect=AssertionError("exported")), self.assertRaisesRegex(motley.MotleyError, message):
                motley.train(model, loss, given, run=folder.path("run"), motley=program, **options)

    def test_values(self) -> None:
        model, loss = nn.Sequential(nn.Linear(6, 3)), nn.CrossEntropyLoss()
        beyond, below, broken, endless = Y.clone(), Y.clone(), X.clone(), X.clone()
        beyond[5], below[2], broken[5, 2], broken[7, 1], endless[1, 0] = 3, -1, float("nan"), float("nan"), float("inf")
        for given, message in (((X, beyond), r"targets\[5\] is 3; the model accepts 0 to 2, or -100"), ((X, below), r"targets\[2\] is -1"),
                               ((broken, Y), r"inputs\[5, 2\] is nan: 2 of 8 samples have.*data__allow_nonfinite=True"),
                               ((endless, Y), r"inputs\[1, 0\] is inf: 1 of 8 samples has")):
            self.refused(message, model, loss, given)
        self.refused(r"eval_targets\[5\] is 3", model, loss, (X, Y), eval_data=(X, beyond))
        self.refused(r"targets\[3, 1\] is nan", nn.Sequential(nn.Linear(6, 2)), nn.MSELoss(),
                     (X, torch.zeros(8, 2).index_put((torch.tensor(3), torch.tensor(1)), torch.tensor(float("nan")))))
        ids = torch.randint(50, (8, 8))
        ids[4, 7] = 50
        self.refused(r"inputs\[4, 7\] is 50; the model accepts 0 to 49\.", language_models.GPT2LMHeadModel(), loss, (ids, ids.clamp(max=49)))
        self.refused(r"tokens\[3\] is 77; the model accepts 0 to 49", language_models.GPT2LMHeadModel(), loss, numpy.array([1, 2, 3, 77] * 5), context=8)
        self.refused(r"targets\[0\] is 7; the model accepts 0 to 4\b", model, lambda o, t: (o.sum(), torch.full((), 1)), (X, Y * 0 + 7), target_limit=5)

    def test_what_is_allowed_goes_on(self) -> None:
        broken = X.clone()
        broken[0, 0] = float("nan")
        data.parse((broken, Y), None, None, CLASSES).check(None, 3, -100, finite=False)
        ignored = Y.clone()
        ignored[0] = -100
        data.parse((X, ignored), None, None, CLASSES).check(None, 3, -100, finite=True)

    def test_types(self) -> None:
        loss = nn.CrossEntropyLoss()
        self.refused(r"inputs that are integers \[6\] for each sample.*inputs.float\(\)", nn.Sequential(nn.Linear(6, 3)), loss, (X.long(), Y))
        self.refused(r"inputs that are floats \[6\].*inputs.long\(\)", nn.Sequential(nn.Embedding(9, 3), nn.Flatten()), loss, (X.abs(), Y))

        pictures = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(8, 3))
        self.refused(r"floats \[4, 4, 3\].*inputs.permute\(0, 3, 1, 2\)", pictures, loss, (torch.randn(8, 4, 4, 3), Y))
        self.refused(r"inputs.unsqueeze\(1\)", nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 3)), loss, (torch.randn(8, 4, 4), Y))
        self.refused(r"inputs.flatten\(1\)", nn.Sequential(nn.Linear(16, 3)), loss, (torch.randn(8, 1, 4, 4).squeeze(1), Y))

    def test_packed_inputs_are_not_reported_as_one_row(self) -> None:
        model = nn.Sequential(nn.Embedding(9, 3), nn.Linear(3, 3))

        def of_rows(ids: torch.Tensor) -> torch.Tensor:
            _, _ = ids.shape
            return model(ids).mean(1)
        packed = torch.randint(9, (8, 2, 6)), Y
        for forward in (None, lambda t: of_rows(t[:, 0])):
            described = layers.as_layers([("all", of_rows)], model, forward)
            self.assertEqual(probe.limits(described, CLASSES, packed), probe.Limits(None, None))  # export reports the error
        floats = layers.as_layers([("all", of_rows)], model, lambda t: of_rows(t[:, 0].long()))
        self.assertEqual(probe.limits(floats, CLASSES, (packed[0][:, 0].float(), Y)), probe.Limits(None, None))

    def test_the_model_is_left_as_it_was(self) -> None:
        model = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
        model[1].eval()
        state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        drawn = torch.get_rng_state()
        self.refused("is nan", model, nn.CrossEntropyLoss(), (X.clone().fill_(float("nan")), Y))
        self.assertTrue(torch.equal(torch.get_rng_state(), drawn))
        self.assertEqual([m.training for m in model], [True, False, True])
        self.assertTrue(all(torch.equal(state[name], tensor) for name, tensor in model.state_dict().items()))

    def test_what_pytorch_has_as_objects(self) -> None:
        model, loss = nn.Sequential(nn.Linear(6, 3)), nn.CrossEntropyLoss()
        adam = torch.optim.AdamW(model.parameters(), lr=0.01, betas=(0.8, 0.99), weight_decay=0.02)
        for options, message in (
                ({"optimizer": adam}, r'optimizer="adamw", lr=0.01, weight_decay=0.02, epsilon=1e-08, beta1=0.8, beta2=0.99'),
                ({"optimizer": torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)}, 'optimizer="sgd", lr=0.1, weight_decay=0.0, momentum=0.9'),
                ({"optimizer": torch.optim.RMSprop(model.parameters())}, "RMSprop is not supported"), ({"optimizer": [adam, adam]}, "2 optimizers.*one loss with one"),
                ({"optimizer": torch.optim.AdamW}, 'optimizer="adamw"'),
                ({"schedule": torch.optim.lr_scheduler.StepLR(adam, 3)}, "a StepLR of PyTorch"),
                ({"epochs": 3, "steps": 9}, "steps= and epochs= both give the length of the run"),
                ({"data__mean": [torch.tensor(1.0)]}, "data.mean is a list with an unsupported element")):
            self.refused(message, model, loss, (X, Y), **options)

    def test_losses_are_looked_at_first(self) -> None:
        class Lit(nn.Module):
            def training_step(self, batch: Any, index: int) -> Any:
                return None

        self.refused("training_step takes a batch", nn.Sequential(nn.Linear(6, 3)), Lit().training_step, (X, Y))
        self.refused("unknown loss CTCLoss", nn.Sequential(nn.Linear(6, 3)), nn.CTCLoss(), (X, Y))

    def test_what_is_not_foreseen_names_its_step(self) -> None:
        class Odd:
            def __len__(self) -> int:
                raise RuntimeError("odd")

            def __getitem__(self, k: int) -> Any:
                return None

        self.refused("the number of samples of the Odd is unknown: RuntimeError: odd", nn.Sequential(nn.Linear(6, 3)), nn.MSELoss(), Odd())
        with mock.patch("motley.train.split", side_effect=ZeroDivisionError("x")):
            self.refused("splitting the model failed: ZeroDivisionError: x", nn.Sequential(nn.Linear(6, 3)), nn.CrossEntropyLoss(), (X, Y))
        for options, message in (({"cluster": 5}, "reading the arguments failed: TypeError"), ({"motley": 5}, "reading the arguments failed"),
                                 ({"run": 5}, "reading the arguments failed")):
            with self.assertRaisesRegex(motley.MotleyError, message):
                motley.train(nn.Linear(6, 3), nn.CrossEntropyLoss(), (X, Y), **{"motley": sys.executable, **options})
        with self.assertRaisesRegex(motley.MotleyError, "the model is a MSELoss|the model is a function|the model is a str"):
            motley.train("model", nn.MSELoss(), (X, Y))  # type: ignore[arg-type]
        with self.assertRaisesRegex(motley.MotleyError, "reading the trained state failed: TypeError"):
            motley.load(5)  # type: ignore[arg-type]


if __name__ == "__main__":
    unittest.main()
