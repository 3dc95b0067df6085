"""What users pass by mistake: misspelled inputs, batches instead of samples, other types, losses between samples. The errors
name the mistake."""

from __future__ import annotations

import contextlib
import unittest
import warnings
from typing import Any, Dict, List, Optional, Tuple

import numpy
import torch
import torch.nn as nn
import torch.nn.functional as F

from support import Folder, exported, motley, total
from named_models import Encoder, texts
from motley import data, losses, probe
from motley.errors import summary
from motley.split.whole_trace import whole_model

CLASSES = nn.CrossEntropyLoss()


class Lenient(nn.Module):
    """Takes any further inputs, like models of transformers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.encoder = Encoder()

    def forward(self, input_ids: Optional[torch.Tensor] = None, attention_mask: Optional[torch.Tensor] = None, **kwargs: Any) -> torch.Tensor:
        if input_ids is None:
            raise ValueError("You must specify exactly one of:\n  input_ids or inputs_embeds.\nSee the documentation")
        given = torch.ones(input_ids.shape) if attention_mask is None else attention_mask
        return self.encoder(input_ids, given)["logits"]


class Wrapped(nn.Module):
    """A wrapper whose own forward names no inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.base = Lenient()

    def get_base_model(self) -> nn.Module:
        return self.base

    def forward(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        return self.base(*args, **kwargs)


class Strict(nn.Module):
    """`mask` is used as `use` says."""

    def __init__(self, use: str) -> None:
        super().__init__()
        self.use, self.linear = use, nn.Linear(3, 4)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        out = self.linear(x)
        if self.use == "size":
            self.last = mask
            return out * mask.shape[1]
        if self.use == "zeros":
            return out + torch.zeros_like(mask).sum(1, keepdim=True)
        if self.use == "training":
            return out * mask.mean(1, keepdim=True) if self.training else out
        if self.use == "unless all are true":  # as transformers: tracing decides
            return out if not torch.jit.is_tracing() and bool(mask.all()) else out * mask.mean(1, keepdim=True)
        return out


def notices(layers: Any, batch: Any, **options: Any) -> Tuple[str, ...]:
    """Of the export, without those about cuts."""
    with Folder() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = motley.export(layers, CLASSES, batch, folder.path("m"), **options).notices
    return tuple(notice for notice in found if "cannot be cut" not in notice)


class Unread(unittest.TestCase):
    def refused(self, message: str, layers: Any, batch: Any, **options: Any) -> None:
        with self.assertRaisesRegex(motley.ExportError, message):
            notices(layers, batch, **options)

    def test_a_misspelled_input_is_refused(self) -> None:
        inputs, targets = texts(4)
        ids, mask = inputs["input_ids"], inputs["attention_mask"]
        misspelled = {"input_ids": ids, "attention_masc": mask}, targets
        for model in (Lenient(), Wrapped()):
            self.assertEqual(notices(model, ({"input_ids": ids, "attention_mask": mask}, targets)), ())
            self.refused("reads the input 'attention_masc'.*forward names 'input_ids', 'attention_mask'. Perhaps the name is 'attention_mask' "
                         "instead of 'attention_masc'. Correct the name or leave the input out", model, misspelled)
            self.refused("reads the input 'attention_masc'", [("all", model)], misspelled)
        with self.assertRaisesRegex(motley.ExportError, "reads the inputs 'idx', 'label_ids', so they.*leave the inputs out"):
            motley.split(Lenient(), {"input_ids": ids, "attention_mask": mask, "idx": targets, "label_ids": targets})

    def test_an_argument_without_use_is_refused(self) -> None:
        batch = {"x": torch.randn(4, 3), "mask": torch.ones(4, 2)}, torch.randint(4, (4,))
        self.refused("Strict reads the input 'mask', so it would have no effect. Its forward names 'x', 'mask'. Correct", Strict("none"), batch)
        for use in ("size", "zeros"):
            model = Strict(use)
            motley.split(model, batch[0])
            self.assertNotIn("last", vars(model))
            self.assertEqual(notices(model, batch), ("Strict uses only the size or the type of the input 'mask', not the values",))
        for use in ("training", "unless all are true"):
            self.assertEqual(notices(Strict(use), batch), ())

    def test_a_list_of_layers_is_checked_by_train(self) -> None:
        model = Lenient()
        inputs, labels = {"input_ids": torch.randint(30, (4, 6)), "attention_masc": torch.ones(4, 6)}, torch.randint(3, (4,))
        with Folder() as folder, self.assertRaises(motley.ExportError) as caught:
            motley.train(model, CLASSES, (inputs, labels), layers=[("all", model)], run=folder.path("run"), steps=1, global_batch=2,
                         motley="true")
        self.assertIn("attention_masc", str(caught.exception))

    def test_functions_may_leave_inputs_out(self) -> None:
        inputs, targets = texts(4)
        batch = {**{name: inputs[name] for name in ("input_ids", "attention_mask")}, "idx": targets}, targets
        model = Lenient()

        def call(given: Dict[str, torch.Tensor]) -> torch.Tensor:
            return model(given["input_ids"], given["attention_mask"])
        self.assertEqual(notices(model, batch, forward=call), ("forward= does not use the input 'idx'",))
        self.assertEqual(notices([("all", call)], batch, model=model, forward=call), ("the layer all does not use the input 'idx'",))
        passing = [("ids", lambda given: (model(given["input_ids"], given["attention_mask"]), given["idx"])), ("last", lambda pair: pair[0] + 0.0 * pair[1][:, None])]
        self.assertNotIn("does not use", str(notices(passing, batch, model=model)))


class Table(nn.Module):
    """Creates a large buffer and a cache in its first forward."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", None, persistent=False)
        self.cache: Dict[int, torch.Tensor] = {}
        self.linear = nn.Linear(1100, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.mask is None:
            self.register_buffer("mask", torch.ones(1100, 1100).tril(), persistent=False)
        if 1100 not in self.cache:
            self.cache[1100] = torch.ones(1100, 1100).triu()
        return self.linear(x @ self.mask @ self.cache[1100])


class Left(unittest.TestCase):
    def test_buffers_and_caches_of_a_first_forward_have_values(self) -> None:
        model = Table()
        with contextlib.suppress(motley.ExportError):
            motley.split(model, torch.randn(2, 1100))
        self.assertIs(type(model(torch.randn(2, 1100))), torch.Tensor)
        for kept in (model.mask, model.cache[1100]):
            self.assertIs(type(kept), torch.Tensor)


class Between(unittest.TestCase):
    def test_scores_between_samples_are_refused(self) -> None:
        class Pairs(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.image, self.text = nn.Linear(3, 4), nn.Linear(3, 4)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.image(x) @ self.text(x).t()

        def rows(output: torch.Tensor, target: torch.Tensor) -> Any:
            return F.cross_entropy(output, target, reduction="sum"), torch.full((), target.numel(), dtype=torch.int64)
        message = r"shape \(2, 2\) for 2 samples and \(3, 3\) for 3: it compares samples with each other"
        for loss, targets, limit in ((CLASSES, torch.arange(4), None), (CLASSES, torch.zeros(4, dtype=torch.int64), 4), (rows, torch.arange(4), 4)):
            with self.assertRaisesRegex(motley.ExportError, message):
                exported(Pairs(), torch.randn(4, 3), loss, targets, target_limit=limit)
        with self.assertRaisesRegex(motley.ExportError, r"\(2, 2\) for 2 samples and \(1, 1\) for 1: it compares samples"):
            probe.limits(whole_model(Pairs(), None), losses.parse(CLASSES), (torch.randn(4, 3), torch.arange(4)))

    def test_two_classes_are_no_samples(self) -> None:
        model = nn.Linear(3, 2)
        self.assertEqual(probe.limits(whole_model(model, None), losses.parse(CLASSES), (torch.randn(4, 3), torch.zeros(4, dtype=torch.int64))).targets, 2)


class Untrained(unittest.TestCase):
    def test_a_gradient_of_zero_is_trained(self) -> None:
        """The attention of the first position is 1 whatever the query is."""
        class Gated(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.ids, self.gate, self.head, self.aux = nn.Embedding(9, 4), nn.Linear(4, 4), nn.Linear(4, 3), nn.Linear(4, 2)

            def forward(self, ids: torch.Tensor) -> Any:
                x = self.ids(ids).mean(1)
                seen = (ids == 8).any(1, keepdim=True)  # an id that samples at random mostly lack
                gated = self.gate(x)
                return self.head(x + gated * seen), self.aux(gated)
        ids = torch.randint(8, (4, 2))
        ids[:, 1] = 8
        torch.manual_seed(1)
        model = Gated()
        found = exported(model, ids, None, torch.randint(3, (4,)), input_limit=8)
        self.assertIn("only they give a gradient to aux.weight, aux.bias, which", str(found.notices))
        self.assertNotIn("gate", str(found.notices))


class Errors(unittest.TestCase):
    def refused(self, message: str, model: nn.Module, input: Any, **options: Any) -> None:
        with self.assertRaisesRegex(motley.ExportError, message):
            motley.split(model, input, **options)

    def test_the_error_of_the_model_is_shown(self) -> None:
        inputs, _ = texts(4)
        ids, mask = inputs["input_ids"], inputs["attention_mask"]

        class Narrow(Lenient):
            def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
                if not torch.jit.is_tracing() and bool(attention_mask.all()):
                    attention_mask = torch.ones(input_ids.shape)
                if attention_mask.size(1) != input_ids.size(1):
                    raise ValueError("the widths differ")
                return super().forward(input_ids, attention_mask)

        class Always(Lenient):
            def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
                if bool(attention_mask.all()):
                    return self.encoder(input_ids, torch.ones(input_ids.shape))["logits"]
                return super().forward(input_ids, attention_mask)

        class Shuffled(Narrow):
            def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
                return super().forward(input_ids, attention_mask)[:, torch.randperm(4)]
        self.refused("Narrow raises for the input: ValueError: the widths differ", Narrow(), {"input_ids": ids, "attention_mask": mask[:, :5]})
        self.refused(r"Narrow raises for the input: ValueError: the widths differ \(traced without the branch on values at .*test.py:\d+\)",
                     Narrow(), {"input_ids": ids, "attention_mask": torch.ones(4, 5)})
        self.refused("Always raises for the input: RuntimeError: ", Always(), {"input_ids": ids, "attention_mask": mask[:, :5]})
        self.refused("depend on the values of a tensor", Always(), {"input_ids": ids, "attention_mask": mask})
        self.refused("aten::randperm.* draws random numbers", Shuffled(), {"input_ids": ids, "attention_mask": mask})

    def test_names_are_listed(self) -> None:
        inputs, _ = texts(4)
        mask = inputs["attention_mask"]
        listed = "The inputs are {}, and forward takes 'input_ids', 'attention_mask'"
        for given in ({"attention_mask": mask}, {"ids": inputs["input_ids"], "attention_mask": mask}):
            self.refused(r"ValueError: You must specify exactly one of: input_ids or inputs_embeds\. "
                         + listed.format(", ".join(map(repr, given))), Lenient(), given)
        self.refused(listed.format("'attention_mask'"), Encoder(), {"attention_mask": mask})

    def test_a_mistake_in_forward(self) -> None:
        inputs, _ = texts(4)
        model = Lenient()
        with self.assertRaises(motley.ExportError) as raised:
            motley.split(model, inputs, forward=lambda given: model(given[:, 0]))
        self.assertRegex(str(raised.exception), "forward= raises for the input: (TypeError|KeyError).*forward= is called with a dictionary of "
                         "'input_ids', 'attention_mask', 'token_type_ids'. Call it with such an input to reproduce it$")

    def test_lines_that_end_in_a_colon(self) -> None:
        self.assertEqual(summary(ValueError("a:\n\n  b:\n c.\nd")), "ValueError: a: b: c")
        self.assertEqual(summary(ValueError("a.\nb")), "ValueError: a")
        self.assertEqual(summary(ValueError("a:")), "ValueError: a")
        self.assertEqual(summary(ValueError()), "ValueError")

    def test_weights_that_are_not_finite(self) -> None:
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
        with torch.no_grad():
            model[2].weight[0, 1] = float("nan")  # type: ignore[index, operator]
        with self.assertRaisesRegex(motley.ExportError, "2.weight has NaN or infinity, and so has output 0"):
            exported(model, torch.randn(4, 3), None, torch.zeros(4, dtype=torch.int64))

        class Logarithm(nn.Linear):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return super().forward(x).log()
        with self.assertRaisesRegex(motley.ExportError, "output 0 in evaluation has NaN or infinity in PyTorch"):
            exported(Logarithm(3, 4), torch.rand(4, 3), total, torch.zeros(4))


class Data(unittest.TestCase):
    def probed(self, model: nn.Module, input: Any, targets: torch.Tensor) -> None:
        probe.limits(whole_model(model, None), losses.parse(CLASSES), (input, targets))

    def test_types_and_batches(self) -> None:
        inputs, targets = texts(4)
        given = {name: inputs[name] for name in ("input_ids", "attention_mask")}
        for kind, word in ((torch.float32, "floats"), (torch.bool, "integers")):
            with self.assertRaisesRegex(motley.MotleyError, rf"raises for inputs\['input_ids'\] that are {word} \[6\] for each sample, but runs with inputs\['input_ids'\].long\(\)"):
                self.probed(Lenient(), {**given, "input_ids": given["input_ids"].to(kind)}, targets)
        batches = {name: torch.stack([tensor] * 3) for name, tensor in given.items()}, torch.stack([targets] * 3)
        with self.assertRaisesRegex(motley.MotleyError, "raises for samples that are batches of 4, but runs with one sample.*not batches: the loader's .dataset"):
            self.probed(Lenient(), *batches)
        self.probed(Lenient(), given, targets)
        sizes = [{"input_ids": given["input_ids"][part], "labels": targets[part]} for part in (slice(0, 2), slice(2, 3))]
        with self.assertRaisesRegex(motley.MotleyError, r"sample 0 are \[2, 6\], and of sample 1 \[1, 6\]. If they are the batches of a loader, pass its .dataset"):
            data.parse(sizes, None, None, losses.parse(CLASSES))

    def test_a_dataset_is_read_once(self) -> None:
        class Counted:
            def __init__(self) -> None:
                self.reads: List[int] = []

            def __len__(self) -> int:
                return 3

            def __getitem__(self, k: int) -> Dict[str, torch.Tensor]:
                self.reads.append(k)
                return {"input_ids": torch.tensor([k, k + 1]), "labels": torch.tensor(k % 2)}

        dataset = Counted()
        data.Arrays(dataset, None, losses.parse(CLASSES), None)
        self.assertEqual(dataset.reads, [0, 1, 2])

    def test_held_out_data_in_another_order(self) -> None:
        inputs, targets = texts(5)
        turned = dict(reversed(list(inputs.items())))
        found = data.parse((inputs, targets), (turned, targets), None, losses.parse(CLASSES))
        assert isinstance(found, data.Arrays) and found.held_out is not None
        self.assertEqual(list(found.held_out[0]), list(inputs))
        for name, tensor in inputs.items():
            self.assertTrue(numpy.array_equal(found.held_out[0][name], tensor.numpy()))
        found.check({"input_ids": 40, "attention_mask": None, "token_type_ids": 2}, 4, -100, True)

    def test_padding_is_named(self) -> None:
        rows: List[Any] = [{"input_ids": [5, 6, 7], "mask": [1, 1, 1], "labels": 1}, {"input_ids": [8], "mask": [1], "labels": 2}]
        loss = losses.parse(CLASSES)
        columns = {"input_ids": [[5, 6, 7], [8]], "mask": [[1, 1, 1], [1]]}, [1, 2]
        for given in (rows, columns):
            with self.assertRaisesRegex(motley.MotleyError, "pad= has 'masc', and the inputs are 'input_ids', 'mask'"):
                data.parse(given, None, None, loss, {"input_ids": 0, "masc": 0})
        with self.assertRaisesRegex(motley.MotleyError, "pad= has 'input', and the inputs are 'inputs'"):
            data.parse(([[1], [2, 3]], [1, 2]), None, None, loss, {"input": 0})
        found = data.parse(rows, None, None, loss, {"input_ids": 999, "mask": 0})
        with self.assertRaisesRegex(motley.MotleyError, r"inputs\['input_ids'\]\[1, 1\] is 999, the value of pad= for it; the model accepts 0 to 39. Pass another value"):
            found.check({"input_ids": 40, "mask": None}, 4, -100, True)
        with self.assertRaisesRegex(motley.MotleyError, r"\[0, 1\] is 6; the model accepts 0 to 5"):
            found.check({"input_ids": 6, "mask": None}, 4, -100, True)


if __name__ == "__main__":
    unittest.main()
