"""Random draws other than F.dropout, recurrent networks, 32-bit integers, and ids packed with floats are exported bit-exactly."""

from __future__ import annotations

import unittest
import warnings
from typing import Any, Callable, List, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F

from support import Folder, motley, total
from motley.interpret import Package

warnings.simplefilter("ignore", motley.ExportWarning)


def depth(x: torch.Tensor, training: bool, p: float = 0.25) -> torch.Tensor:
    """Drops a residual branch of some samples, like torchvision and timm."""
    if not training:
        return x
    noise = torch.empty([x.size(0)] + [1] * (x.dim() - 1)).bernoulli_(1 - p)
    return x * noise.div_(1 - p)


def drop_path(x: torch.Tensor, training: bool, p: float = 0.25) -> torch.Tensor:
    """Like transformers."""
    if not training:
        return x
    return x.div(1 - p) * torch.floor(torch.rand((x.shape[0],) + (1,) * (x.dim() - 1), dtype=x.dtype) + (1 - p))


def layer_drop(x: torch.Tensor, training: bool, layerdrop: float = 0.1) -> torch.Tensor:
    """Like wav2vec2's encoder: the condition is computed before the branch."""
    probability = torch.rand([])
    skip = training and probability < layerdrop

    if not skip:
        x = x * 2
    return x


class Drops(nn.Module):
    def __init__(self, drop: Callable[[torch.Tensor, bool], torch.Tensor]):
        super().__init__()
        self.a, self.b, self.drop = nn.Linear(4, 4), nn.Linear(4, 4), drop

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.a(x)
        return x + self.drop(self.b(x), self.training)


DROPS: List[Tuple[str, Callable[[torch.Tensor, bool], torch.Tensor], float]] = [
    # what, the function, number of dropped values
    ("stochastic depth", depth, 0.25),
    ("drop path", drop_path, 0.25),
    ("drop path in place", lambda x, t: x * (0.75 + torch.rand(x.shape[0], 1)).floor_() if t else x, 0.25),
    ("bernoulli", lambda x, t: x * torch.bernoulli(torch.empty_like(x), 0.75) if t else x, 0.25),
    ("labels", lambda x, t: x.masked_fill((torch.rand(x.shape[0]) < 0.25).unsqueeze(1), 0.0) if t else x, 0.25),
    ("kept above", lambda x, t: x * (torch.rand_like(x) > 0.25) if t else x, 0.25),
    ("alpha", lambda x, t: F.alpha_dropout(x, 0.25, t), 0.0),
    ("feature alpha", lambda x, t: F.feature_alpha_dropout(x.view(-1, 2, 2), 0.25, t).flatten(1), 0.0),
    ("batch", lambda x, t: x * torch.empty(1, 1).bernoulli_(0.75) if t else x, 0.25)]


BY_UNIFORM_NUMBERS = ("drop path", "drop path in place", "labels", "kept above")


class Draws(unittest.TestCase):
    def export(self, layers: Any, input: torch.Tensor, target: Any = None, loss: Any = total, **options: Any) -> Tuple[motley.Exported, Package]:
        with Folder() as folder:
            done = motley.export(layers, loss, (input, torch.zeros(input.size(0)) if target is None else target), folder.path("x"), **options)
            return done, Package.open(done.path)

    def test_masks(self) -> None:
        for what, drop, dropped in DROPS:
            with self.subTest(what):
                model = Drops(drop)
                done, package = self.export([("all", model)], torch.randn(2, 4), model=model)
                self.assertEqual(done.largest_difference, 0)
                graphs = package.description["graphs"][0]
                masks = [n for n in graphs["forward"]["nodes"] if n["op"].startswith("motley::")]
                self.assertEqual([n["op"] for n in masks], ["motley::uniform" if what in BY_UNIFORM_NUMBERS else "motley::dropout_mask"])
                if what not in BY_UNIFORM_NUMBERS:
                    self.assertEqual(round(masks[0]["args"][1], 6), 0.25)
                self.assertEqual([n for n in graphs["evaluate"]["nodes"] if n["op"].startswith("motley::")], [])
                if dropped:
                    with torch.no_grad():
                        model.a.weight.zero_(), model.a.bias.fill_(1.0), model.b.weight.zero_(), model.b.bias.fill_(1.0)
                    _, package = self.export([("all", model)], torch.randn(2, 4), model=model, loss=lambda o, t: (o.sum(), torch.full((), o.size(0))))
                    # Each value is 1 where its branch is dropped, else 2 or 1 + 1 / 0.75.
                    count = 4000
                    loss = float(package.train(torch.zeros(count, 4), torch.zeros(count)).loss) / (4 * count)
                    if what != "batch":
                        self.assertAlmostEqual(loss, 2.0 if what in ("stochastic depth", "drop path") else 1.75, delta=0.05)

    def test_a_constant_is_masked_anew(self) -> None:
        model = Drops(lambda x, t: x * F.dropout(torch.ones(4), 0.5, t))
        _, package = self.export([("all", model)], torch.randn(2, 4), model=model)
        self.assertIn("motley::dropout_mask", [n["op"] for n in package.description["graphs"][0]["forward"]["nodes"]])

    def test_what_cannot_be_a_mask(self) -> None:
        for drop, message in ((lambda x, t: x if t and torch.rand([]) < 0.5 else x * 2, "depend on the values"),
                              (layer_drop, "set layerdrop=0.0"),
                              (lambda x, t: x * 2 if t and F.dropout(torch.ones(1), 0.5).item() > 0 else x, "depend on the values")):
            with self.assertRaisesRegex(motley.ExportError, message):
                model = Drops(drop)
                self.export([("all", model)], torch.randn(2, 4), model=model)

    def test_never_skipped(self) -> None:
        model = Drops(lambda x, t: x * 2 if t and torch.rand([]) < 0.0 else x)
        self.export([("all", model)], torch.randn(2, 4), model=model)

    def test_recurrent_networks(self) -> None:
        for kind in (nn.RNN, nn.GRU, nn.LSTM):
            for options in ({}, {"num_layers": 2, "dropout": 0.5}, {"bidirectional": True}):
                for first in (True, False):
                    with self.subTest(f"{kind.__name__} {options} {first}"):
                        net = kind(4, 3, batch_first=first, **options)
                        done, package = self.export([("a", nn.Linear(4, 4)), ("r", lambda x: net(x if first else x.transpose(0, 1))[0]
                                                                              .transpose(0, 0 if first else 1))], torch.randn(2, 5, 4))
                        self.assertLess(done.largest_difference, 1e-6)
                        if not options:
                            self.assertEqual(len(package.description["layers"][1]["parameters"]), 4)

    def test_turned_in_place(self) -> None:
        def turns(x: torch.Tensor) -> torch.Tensor:
            y = x * 2
            before = y[:, :2].sum()
            y.t_()
            y.unsqueeze_(0).squeeze_(0)
            return (y * y[0]).t() + before
        model = Drops(lambda x, t: turns(x))
        done, _ = self.export([("all", model)], torch.randn(2, 4), model=model)
        self.assertEqual(done.largest_difference, 0)

    def test_integers_of_32_bits(self) -> None:
        class Positions(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.e, self.p, self.h = nn.Embedding(20, 4), nn.Embedding(12, 4), nn.Linear(4, 20)
                self.register_buffer("offset", torch.arange(6, dtype=torch.int32))

            def forward(self, ids: torch.Tensor) -> torch.Tensor:
                mask = ids.ne(1).int()
                positions = (torch.cumsum(mask, 1).type_as(mask) * mask).long() + 1
                return self.h(self.e(ids) + self.p(positions) + self.p((self.offset + torch.ones(1, dtype=torch.int32)).long()))
        model, ids = Positions(), torch.randint(20, (2, 6))
        done, package = self.export([("all", model)], ids, ids, nn.CrossEntropyLoss(), model=model)
        self.assertEqual(done.largest_difference, 0)
        types = {entry["type"] for layer in package.description["layers"] for entry in layer["constants"]}
        self.assertLessEqual(types, {"int64", "float32"})

    def test_other_integers_are_refused_with_a_matching_hint(self) -> None:
        for dtype, message in ((torch.int8, "the type int8.*Use int64"), (torch.float64, "the type float64.*float"),
                               (torch.bfloat16, "the type bfloat16.*remove casts")):
            model = Drops(lambda x, t: x * (x * 3).to(dtype).to(torch.float32))
            with self.assertRaisesRegex(motley.ExportError, message):
                self.export([("all", model)], torch.randn(2, 4), model=model)

    def test_parameters_of_other_types(self) -> None:
        model = Drops(lambda x, t: torch.where(model.chosen, x, x * 2))
        model.chosen = nn.Parameter(torch.tensor([True, False, True, True]), requires_grad=False)
        self.assertEqual(self.export([("all", model)], torch.randn(2, 4), model=model)[0].largest_difference, 0)
        for dtype, message in ((torch.int8, "computes with a constant of int8; packages compute with float32, int64 and bool. Convert it first"),
                               (torch.float64, "chosen is float64; packages support frozen parameters in float32, float16 and bfloat16.*model with .float")):
            model.chosen = nn.Parameter(torch.ones(4).to(dtype), requires_grad=False)
            model.drop = lambda x, t: x * model.chosen
            with self.assertRaisesRegex(motley.ExportError, message):
                self.export([("all", model)], torch.randn(2, 4), model=model)

    def test_branches_that_only_save_time(self) -> None:
        def masked(x: torch.Tensor) -> torch.Tensor:
            mask = (x > 0).float()
            return x if not torch.jit.is_tracing() and mask.all() else x * mask
        model = Drops(lambda x, t: masked(x))
        self.assertEqual(self.export([("all", model)], torch.randn(2, 4), model=model)[0].largest_difference, 0)
        model = Drops(lambda x, t: x * 2 if torch.jit.is_tracing() or (x > 1e9).all() else x)
        with self.assertRaisesRegex(motley.ExportError, "differs from PyTorch's"):
            self.export([("all", model)], torch.randn(2, 4), model=model)
        self.assertFalse(torch.jit.is_tracing())

    def test_ids_among_floats(self) -> None:
        class Both(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.a, self.e, self.h = nn.Linear(8, 16), nn.Embedding(50, 16), nn.Linear(16, 3)

            def forward(self, t: torch.Tensor) -> torch.Tensor:
                return self.h(self.a(t[:, :8]) + self.e(t[:, 8].long()))
        model = Both()
        packed = torch.cat([torch.randn(2, 8), torch.tensor([[49.0], [3.0]])], 1)
        done, _ = self.export([("all", model)], packed, torch.tensor([0, 1]), nn.CrossEntropyLoss(), model=model)
        self.assertEqual(done.largest_difference, 0)
        layers = [("in", lambda t: (model.a(t[:, :8]), t[:, 8])), ("out", lambda p: model.h(p[0] + model.e(p[1].long())))]
        self.assertEqual(self.export(layers, packed, torch.tensor([0, 1]), nn.CrossEntropyLoss(), model=model)[0].notices, ())

    def test_what_the_check_cannot_call(self) -> None:
        model = nn.ModuleDict({"e": nn.Embedding(50, 4), "a": nn.Linear(4, 4)})
        with self.assertRaisesRegex(motley.ExportError, "in e.*: the layer raises on other samples than the example's: IndexError"):
            self.export([("e", lambda x: model["e"](x.long())), ("a", model["a"])], torch.rand(2, 4) * 49)


if __name__ == "__main__":
    unittest.main()
