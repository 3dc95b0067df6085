"""References of packages: their source, the errors that they must expose, and that they leave the model unchanged."""

from __future__ import annotations

import hashlib
import json
import os
import unittest
import unittest.mock
import warnings
from typing import Any, Dict, List, Tuple

import torch
import torch.nn as nn

from support import Folder, motley
from motley import hashed, synthetic, reference
from motley.result_digest import deviation, digest


def read(path: str) -> Tuple[Dict[str, Any], List[Dict[str, Any]]]:
    with open(os.path.join(path, reference.FILE), encoding="utf-8") as file:
        head, body = file.read().splitlines()
    return json.loads(head), json.loads(body)


def export(folder: Folder, layers: Any, input: torch.Tensor, target: torch.Tensor, loss: Any = nn.MSELoss(), **options: Any) -> Any:
    motley.export(layers, loss, (input, target), folder.path("x.motley"), **options)
    return read(folder.path("x.motley"))


class Adapter(nn.Module):
    """A low-rank adapter before training: its second factor is 0."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(6, 6).requires_grad_(False)
        self.a = nn.Parameter(torch.randn(2, 6))
        self.b = nn.Parameter(torch.zeros(6, 2))
        self.scale = nn.Parameter(torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + (x @ self.a.t() @ self.b.t()) * 2 + x * self.scale


class Numbers(unittest.TestCase):
    def test_are_those_of_the_workers(self) -> None:
        # The same as in tests/models/reference_file_test.cc.
        state = hashed.stream(7, hashed.INPUT, 2)
        self.assertEqual(hashed.mix(state, 0), 10293285927963824005)
        self.assertEqual(hashed.mix(state, 1_000_000), 16448075699051928533)
        self.assertEqual(int(hashed.bits(state, 1_000_000, 1_000_001)[0]), 16448075699051928533)
        pieces = [{"count": 2, "low": -1.5, "width": 3.0}, {"count": 2, "values": [0, 1, 5]}]
        made = synthetic.make(pieces, 1, 7, hashed.INPUT, 2, torch.float32)
        self.assertEqual(made.flatten().tolist(), [0.17400044202804565, 0.4364849925041199, 5, 5])
        integers = synthetic.make([{"count": 16, "below": 100}], 1, 7, hashed.INPUT, 2, torch.int64, ignored=-7)
        self.assertEqual(integers.flatten().tolist(), [5, 7, 17, 33, 52, 12, 73, 11, 97, 15, 46, 36, 34, 43, -7, 33])
        self.assertEqual(hashed.places(7, 1000, 4).tolist(), [254, 935, 74, 687])

    def test_differ_by_purpose_index_and_seed(self) -> None:
        streams = {hashed.stream(seed, purpose, index) for seed in (1, 2) for purpose in (1, 2) for index in (0, 1)}
        self.assertEqual(len(streams), 8)


class Synthetic(unittest.TestCase):
    def test_is_like_what_the_layer_met(self) -> None:
        torch.manual_seed(0)
        (piece,) = synthetic.describe(torch.randn(2, 40, 30) * 3 + 5, 0)
        made = synthetic.make([piece], 50, 1, hashed.INPUT, 0, torch.float32)
        self.assertAlmostEqual(float(made.mean()), 5, delta=0.2)
        self.assertAlmostEqual(float(made.std()), 3, delta=0.3)

    def test_takes_masks_as_they_are(self) -> None:
        mask = torch.where(torch.rand(2, 1, 1, 40) < 0.5, torch.tensor(0.0), torch.tensor(-1e9))
        (piece,) = synthetic.describe(mask, 0)
        self.assertEqual(piece["values"], [-1e9, 0])

    def test_knows_ids_beside_numbers(self) -> None:
        packed = torch.cat([torch.randn(2, 30), torch.randint(96, (2, 8)).float()], 1)
        floats, ids = synthetic.describe(packed, 0)
        self.assertEqual((floats["count"], ids["count"]), (30, 8))
        made = synthetic.make([floats, ids], 9, 1, hashed.INPUT, 0, torch.float32)[:, 30:]
        self.assertTrue(bool((made == made.round()).all()) and 0 <= float(made.min()) <= float(made.max()) < 96)

    def test_knows_rows_of_other_kinds(self) -> None:
        ids, mask = torch.randint(2, 5000, (2, 64)), torch.randint(2, (2, 64))
        pieces = synthetic.describe(torch.stack([ids, mask], 1), 5000)
        self.assertEqual(pieces[0], {"count": 64, "below": 5000})
        self.assertEqual(pieces[1], {"count": 64, "values": [0, 1]})

    def test_spreads_what_is_one_number_in_the_example(self) -> None:
        self.assertEqual(synthetic.describe(torch.zeros(2, 9, dtype=torch.int64), 50), [{"count": 9, "below": 50}])
        self.assertEqual(synthetic.describe(torch.zeros(2, 9), 0), [{"count": 9, "low": -1.0, "width": 2.0}])

    def test_leaves_some_targets_out_but_never_the_first(self) -> None:
        pieces = synthetic.describe(torch.full((2, 1), -100), 7, -100)
        made = synthetic.make(pieces, 400, 3, hashed.TARGET, 0, torch.int64, -100)
        self.assertNotEqual(int(made[0]), -100)
        self.assertTrue(0.06 < float((made == -100).float().mean()) < 0.2)


class Digests(unittest.TestCase):
    def test_reports_about_how_far_tensors_are_apart(self) -> None:
        torch.manual_seed(0)
        right = torch.randn(100, 100)
        for share in (1e-5, 1e-3, 0.1, 1.0):
            apart = deviation(digest(right + share * torch.randn(100, 100), 1, 64), digest(right, 1, 64))
            self.assertTrue(share / 3 < apart < share * 6, apart)
        self.assertEqual(deviation(digest(right, 1, 64), digest(right, 1, 64)), 0)
        self.assertGreater(deviation(digest(right.t(), 1, 64), digest(right, 1, 64)), 0.5)

    def test_of_a_sparse_gradient_see_a_row_that_is_missing(self) -> None:
        rows = torch.zeros(50_000, 8)
        rows[:4] = torch.randn(4, 8)
        missing = rows.clone()
        missing[1] = 0
        self.assertGreater(deviation(digest(missing, 1, 64), digest(rows, 1, 64)), 0.1)


class References(unittest.TestCase):
    def test_are_of_each_distinct_layer_and_of_this_package(self) -> None:
        torch.manual_seed(0)
        layers = [("a", nn.Linear(4, 4)), ("b", nn.Linear(4, 4)), ("c", nn.Linear(4, 4)), ("d", nn.Linear(4, 3)), ("e", nn.Linear(3, 2))]
        with Folder() as folder:
            head, found = export(folder, layers, torch.randn(2, 4), torch.randn(2, 2))
            with open(os.path.join(folder.path("x.motley"), "package.json"), "rb") as file:
                self.assertEqual(head["package"], hashlib.sha256(file.read()).hexdigest())
            with open(os.path.join(folder.path("x.motley"), reference.FILE), "rb") as file:
                self.assertEqual(head["sha256"], hashlib.sha256(file.read().split(b"\n", 1)[1]).hexdigest())
        # The first returns no gradient for its input, the next two are equal, the fourth has another shape, the last
        # is a loss.
        self.assertEqual([entry["layer"] for entry in found], [0, 1, 3, 4])
        self.assertEqual([t["tensor"] for t in found[1]["training"]], ["output:0", "input_grad:0", "parameter_grad:0", "parameter_grad:1"])
        self.assertEqual([t["tensor"] for t in found[3]["evaluation"]], ["output:0", "loss:0", "count:0"])

    def test_see_past_zeros_and_leave_the_model_as_it_was(self) -> None:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 6, bias=False), Adapter(), nn.BatchNorm1d(6), nn.Linear(6, 2))
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        with Folder() as folder:
            _, found = export(folder, [("all", model)], torch.randn(2, 6), torch.randn(2, 2))
        for name, tensor in model.state_dict().items():
            self.assertTrue(torch.equal(tensor, before[name]), name)
        gradients = [t for t in found[0]["training"] if t["tensor"].startswith("parameter_grad")]
        self.assertEqual(len(gradients), 8)
        for tensor in gradients:
            self.assertGreater(tensor["norm"], 1e-6, tensor["tensor"])
        # b and scale of the adapter, weight and bias of the norm, and its two statistics
        self.assertEqual(len(found[0]["replaced"]), 6)

    def test_have_dropout_masks_of_their_seed(self) -> None:
        torch.manual_seed(0)
        layers = [("a", nn.Linear(4, 64)), ("b", nn.Dropout(0.25)), ("c", nn.Linear(64, 2))]
        with Folder() as folder:
            _, found = export(folder, layers, torch.randn(2, 4), torch.randn(2, 2))
        output, grad = found[1]["training"]
        kept = [a != 0 for a in output["samples"]]
        self.assertEqual(kept, [g != 0 for g in grad["samples"]])
        self.assertTrue(0.5 < sum(kept) / len(kept) < 0.95)

    def test_are_missing_with_a_warning_where_a_layer_refuses_such_inputs(self) -> None:
        class Picky(nn.Module):
            """Runs with tracing and checks, and raises for the generated inputs of references."""

            def __init__(self) -> None:
                super().__init__()
                self.weight = nn.Parameter(torch.randn(4, 4))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                if refuses:
                    raise IndexError("index out of range")
                return x @ self.weight

        refuses: List[bool] = []
        model = Picky()
        original = reference._Layer.reference

        def refusing(layer: Any) -> Any:
            refuses.append(True)
            try:
                return original(layer)
            finally:
                refuses.clear()

        with unittest.mock.patch.object(reference._Layer, "reference", refusing), Folder() as folder, \
                warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            _, found = export(folder, [("picky", model), ("head", nn.Linear(4, 2))], torch.randn(2, 4), torch.randn(2, 2))
        self.assertEqual([entry["layer"] for entry in found], [1])
        self.assertTrue(any("picky has no reference" in str(w.message) for w in caught))

    def test_know_how_far_rounding_moves_a_result(self) -> None:
        torch.manual_seed(0)
        with Folder() as folder:
            _, found = export(folder, [("a", nn.Linear(16, 16)), ("b", nn.Tanh()), ("c", nn.Linear(16, 2))], torch.randn(2, 16), torch.randn(2, 2))
        for entry in found:
            for tensor in entry["training"] + entry["evaluation"]:
                if tensor["tensor"] == "count:0":
                    continue
                fp32, bf16 = tensor["rounding"]
                self.assertLess(fp32, 1e-4)
                self.assertGreaterEqual(bf16, fp32)
        self.assertGreater(max(t["rounding"][1] for t in found[0]["training"]), 1e-4)

    def test_a_value_at_a_kink_counts_as_rounding(self) -> None:
        # Sums of the same numbers in two orders: the sign of their difference is that of a rounding, and ReLU passes a gradient or not.
        class Kink(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return torch.relu(x.cumsum(1)[:, -1:] - x.flip(1).cumsum(1)[:, -1:]) * x.mean(1, keepdim=True)

        effects = {}
        for limit in (0, reference._MANY_ELEMENTS):
            with Folder() as folder, unittest.mock.patch.object(reference, "_MANY_ELEMENTS", limit), \
                    unittest.mock.patch.object(reference, "perturbed", wraps=reference.perturbed) as moved:
                torch.manual_seed(0)
                _, found = export(folder, [("first", nn.Linear(8, 8)), ("kink", Kink()), ("last", nn.Linear(1, 2))], torch.randn(2, 8), torch.randn(2, 2))
                self.assertEqual({call.args[3] for call in moved.call_args_list}, {0} if limit == 0 else {0, 1, 2, 3})
            kink, = (entry for entry in found if entry["layer"] == 1)
            effects[limit] = max(tensor["rounding"][0] for tensor in kink["training"])
        self.assertGreater(effects[reference._MANY_ELEMENTS], 0.1)


if __name__ == "__main__":
    unittest.main()
