"""Random draws inside a layer: their operations in a package, their distributions, and refusals."""

from __future__ import annotations

import math
import unittest
import warnings
from typing import Any, Callable, Dict, List, Tuple

import numpy
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from support import Folder, Function, exported, motley, total
from motley import quantiles, random_numbers
from motley.interpret import Package

warnings.simplefilter("ignore", motley.ExportWarning)

X = torch.randn(2, 4, generator=torch.Generator().manual_seed(1))

# [word, normal number, exponential number]: equal to tests/models/drawn_numbers_test.cc.
GOLDEN = [
    (0, "-0x1.95a11ap+2", "0x1.6dfb52p+4"), (1, "-0x1.8aa6c8p+2", "0x1.5c6766p+4"), (0x12345678, "-0x1.77b264p+0", "0x1.525e98p+1"),
    (0x13333332, "-0x1.708522p+0", "0x1.4b8dep+1"), (0x13333333, "-0x1.708522p+0", "0x1.4b8dep+1"),
    (0x13333334, "-0x1.708522p+0", "0x1.4b8dep+1"), (0x7FFFFFFF, "-0x1.40d932p-32", "0x1.62e43p-1"),
    (0x80000000, "0x1.40d932p-32", "0x1.62e43p-1"), (0xDEADBEEF, "0x1.202934p+0", "0x1.1d96acp-3"),
    (0xECCCCCCC, "0x1.708522p+0", "0x1.3f549ap-4"), (0xECCCCCCD, "0x1.708522p+0", "0x1.3f549ap-4"), (0xFFFFFFFF, "0x1.95a11ap+2", "0x1p-33")]


def squares(output: torch.Tensor, target: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    return output.square().sum(), torch.full((), output.size(0), dtype=torch.int64)


def export(layers: Any, input: torch.Tensor = X, loss: Any = squares, target: Any = None, **options: Any) -> Tuple[motley.Exported, Package]:
    with Folder() as folder:
        target = torch.zeros(input.size(0)) if target is None else target
        done = motley.export(layers, loss, (input, target), folder.path("x"), **options)
        return done, Package.open(done.path)


def drawn(package: Package, kind: str, layer: int = 0) -> List[Tuple[str, Any]]:
    """The drawing operations in a graph of a layer, with their arguments in the file."""
    nodes = package.description["graphs"][package.description["layers"][layer]["graph"]][kind]["nodes"]
    return [(node["op"].partition("::")[2], node["args"]) for node in nodes if node["op"] in random_numbers.OPERATIONS]


class LabelDropout(nn.Module):
    """Drops the classes of samples, like DiT for classifier-free guidance."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(11, 8), nn.Linear(8, 3)

    def forward(self, labels: torch.Tensor) -> torch.Tensor:
        if self.training:
            labels = torch.where(torch.rand(labels.shape[0], device=labels.device) < 0.1, 10, labels)
        return self.head(self.table(labels))


class Diffusion(nn.Module):
    """Noise, and a time step per sample; the loss compares the noise with its prediction."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 16), nn.SiLU(), nn.Linear(16, 4))
        self.register_buffer("alphas", torch.linspace(0.999, 0.01, 50))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        t = torch.randint(0, 50, (x.shape[0],), device=x.device).long()
        noise = torch.randn_like(x)
        a = self.alphas[t].unsqueeze(1)
        mixed = a.sqrt() * x + (1 - a).sqrt() * noise
        return self.net(torch.cat([mixed, t.unsqueeze(1) / 50], 1)) - noise


class Autoencoder(nn.Module):
    """Reparameterisation, only in training or always."""

    def __init__(self, always: bool) -> None:
        super().__init__()
        self.mean, self.spread, self.decoder, self.always = nn.Linear(4, 3), nn.Linear(4, 3), nn.Linear(3, 4), always

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, spread = self.mean(x), (0.5 * self.spread(x)).exp()
        if self.training or self.always:
            mean = mean + spread * torch.empty_like(spread).normal_()
        return self.decoder(mean)


class NoisyGate(nn.Module):
    """The two best of four experts by noisy scores."""

    def __init__(self) -> None:
        super().__init__()
        self.scores, self.noise, self.experts = nn.Linear(4, 4), nn.Linear(4, 4), nn.ModuleList(nn.Linear(4, 4) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.scores(x)
        if self.training:
            scores = scores + torch.randn_like(scores) * F.softplus(self.noise(x))
        best, chosen = scores.topk(2, dim=-1)
        gates = torch.zeros_like(scores).scatter(-1, chosen, best.softmax(-1))
        return sum(gates[:, k:k + 1] * expert(x) for k, expert in enumerate(self.experts))


class Masked(nn.Module):
    """Drops patches of each sample, like masked autoencoders."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(3, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.embed(x)
        kept = torch.argsort(torch.rand(x.shape[0], x.shape[1]), dim=1)[:, :3]
        return torch.gather(x, 1, kept.unsqueeze(-1).repeat(1, 1, 5))


def function(f: Callable[[torch.Tensor], Any]) -> nn.Module:
    return Function(f)


def view_before(x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(x.size(0), 4)
    row = y[:, 1]
    y.uniform_()
    return x + row.unsqueeze(1) + y


def initialized(x: torch.Tensor) -> torch.Tensor:
    w = torch.empty(4, 3)
    nn.init.xavier_uniform_(w)
    return torch.cat([x @ w, x @ nn.init.normal_(torch.empty(4, 2), std=0.02), x @ nn.init.uniform_(torch.empty(4, 2), -1, 1)], 1)


B = {"batch": [0, 1]}

# [name] layer, its draws
FORMS: Dict[str, Tuple[Callable[[torch.Tensor], Any], List[Tuple[str, Any]]]] = {
    "rand": (lambda x: x * torch.rand(x.size(0), 1), [("uniform", [[B, 1], 0])]),
    "rand_like": (lambda x: x * torch.rand_like(x), [("uniform", [[B, 4], 0])]),
    "without the batch": (lambda x: x * torch.rand(4) + torch.randn(()), [("uniform", [[4], 0]), ("normal", [[], 1])]),
    "the batch second": (lambda x: x + torch.randn(4, x.size(0)).t(), [("normal", [[4, B], 0])]),
    "twice the batch": (lambda x: x + torch.randn(2 * x.size(0), 4)[:x.size(0)], [("normal", [[{"batch": [0, 2]}, 4], 0])]),
    "uniform_": (lambda x: x * torch.empty(4).uniform_(2, 3), [("uniform", [[4], 0])]),
    "normal": (lambda x: x + torch.normal(1.0, 2.0, (4,)), [("normal", [[4], 0])]),
    "normal with a mean": (lambda x: x * torch.normal(x, 0.5).detach(), [("normal", [[B, 4], 0])]),
    "normal with a deviation": (lambda x: x * torch.normal(0.0, x.detach().abs()), [("normal", [[B, 4], 0])]),
    "normal with both": (lambda x: x * torch.normal(x, torch.ones(4)).detach(), [("normal", [[B, 4], 0])]),
    "normal_": (lambda x: x + torch.empty(4).normal_(1, 3), [("normal", [[4], 0])]),
    "log_normal_": (lambda x: x * torch.empty(4).log_normal_(0, 0.5), [("normal", [[4], 0])]),
    "exponential_": (lambda x: x * torch.empty_like(x).exponential_(2.0), [("exponential", [[B, 4], 0])]),
    "randint": (lambda x: x * torch.randint(-2, 5, (x.size(0), 1)), [("integers", [[B, 1], -2, 5, 0])]),
    "randint of floats": (lambda x: x * torch.randint(5, (4,), dtype=torch.float32), [("integers", [[4], 0, 5, 0])]),
    "randint_like": (lambda x: x * torch.randint_like(x, 2, 7), [("integers", [[B, 4], 2, 7, 0])]),
    "random_": (lambda x: x * torch.empty(4).random_(1, 3) + 1e-6 * torch.empty(4).random_(), [
        ("integers", [[4], 1, 3, 0]), ("integers", [[4], 0, (1 << 24) + 1, 1])]),
    "bernoulli": (lambda x: x * torch.bernoulli(x.detach().sigmoid()), [("uniform", [[B, 4], 0])]),
    "bernoulli_": (lambda x: x * torch.empty_like(x).bernoulli_(torch.tensor([0.1, 0.5, 0.9, 1.0])), [("uniform", [[B, 4], 0])]),
    "gumbel_softmax": (lambda x: F.gumbel_softmax(x, 0.5), [("exponential", [[B, 4], 0])]),
    "gumbel by hand": (lambda x: (x - (1e-9 - (torch.rand_like(x) + 1e-9).log()).log()).softmax(-1), [("uniform", [[B, 4], 0])]),
    "a distribution": (lambda x: torch.distributions.Normal(x, F.softplus(x) + 0.1, validate_args=False).rsample(), [("normal", [[B, 4], 0])]),
    "numbers and a mask of them": (lambda x, u=None: (lambda u: x * torch.where(u < 0.5, u, -u))(torch.rand_like(x)), [("uniform", [[B, 4], 0])]),
    "a view from before": (view_before, [("uniform", [[B, 4], 0])]),
    "initialized in forward": (initialized, [("uniform", [[4, 3], 0]), ("normal", [[4, 2], 1]), ("uniform", [[4, 2], 2])]),
}

MODELS: Dict[str, Tuple[Callable[[], nn.Module], torch.Tensor, int, int]] = {
    # [name] model, its input, the number of draws in training and in evaluation
    "label dropout": (LabelDropout, torch.tensor([3, 7]), 1, 0),
    "diffusion": (Diffusion, X, 2, 2),
    "autoencoder": (lambda: Autoencoder(False), X, 1, 0),
    "autoencoder that always draws": (lambda: Autoencoder(True), X, 1, 1),
    "noisy gate": (NoisyGate, X, 1, 0),
    "masked patches": (Masked, torch.randn(2, 7, 3), 1, 1),
}


class RandomNumbers(unittest.TestCase):
    def test_have_the_same_bits_as_a_workers(self) -> None:
        words = numpy.array([word for word, _, _ in GOLDEN], dtype=numpy.uint64)
        self.assertEqual(quantiles.normal(words).tolist(), [float.fromhex(number) for _, number, _ in GOLDEN])
        self.assertEqual(quantiles.exponential(words).tolist(), [float.fromhex(number) for _, _, number in GOLDEN])
        bits = numpy.array([0, (1 << 64) - 1, 0x123456789ABCDEF0], dtype=numpy.uint64)
        self.assertEqual(random_numbers.scaled(bits, -5, 11).tolist(), [-5, 5, -5])
        self.assertEqual(random_numbers.scaled(bits, 0, 1 << 32).tolist(), [0, (1 << 32) - 1, 0x12345678])

    def test_are_the_quantiles_rounded_once(self) -> None:
        """The error of a number is its probability minus that of the word, divided by the density."""
        state = numpy.random.RandomState(5)
        few = (2.0 ** (32 * state.random_sample(20000))).astype(numpy.uint64)
        words = numpy.concatenate([few, numpy.uint64((1 << 32) - 1) - few])
        for word, number, waiting in zip(words.tolist(), quantiles.normal(words).tolist(), quantiles.exponential(words).tolist()):
            tail, size = (min(word, (1 << 32) - 1 - word) + 0.5) / 2 ** 32, abs(number)
            density = math.exp(-size * size / 2) / math.sqrt(2 * math.pi)
            if size > 1e-3:
                self.assertLessEqual(abs(math.erfc(size / math.sqrt(2)) / 2 - tail) / density, 0.50001 * numpy.spacing(numpy.float32(size)) + 1e-15)
            exact = -math.log(tail) if word < 1 << 31 else -math.log1p(-tail)
            self.assertLessEqual(abs(waiting - exact), 0.50001 * numpy.spacing(numpy.float32(exact)))

    def test_have_their_distributions(self) -> None:
        ops, size = torch.ops.motley, [1 << 18]
        for numbers, mean, variance in ((ops.uniform(size, 1), 0.5, 1 / 12), (ops.normal(size, 1), 0, 1), (ops.exponential(size, 1), 1, 1),
                                        (ops.integers(size, -3, 4, 1), 0, 4)):
            self.assertAlmostEqual(float(numbers.double().mean()), mean, delta=0.01 * math.sqrt(variance))  # 5 standard deviations
            self.assertAlmostEqual(float(numbers.double().var()), variance, delta=0.03 * variance)
        self.assertEqual(sorted(set(ops.integers(size, -3, 4, 1).tolist())), list(range(-3, 4)))
        self.assertTrue(0 <= float(ops.uniform(size, 2).min()) and float(ops.uniform(size, 2).max()) < 1)
        self.assertFalse(torch.equal(ops.normal(size, 1), ops.normal(size, 2)))
        self.assertTrue(torch.equal(ops.normal(size, 1), ops.normal(size, 1)))

    def test_forms(self) -> None:
        for name, (form, wanted) in FORMS.items():
            with self.subTest(name):
                model = function(form)
                done, package = export([("all", model)], model=model, loss=total)
                self.assertEqual(done.largest_difference, 0)
                for kind in ("forward", "evaluate", "score"):
                    self.assertEqual(drawn(package, kind), wanted)

    def test_models(self) -> None:
        for name, (make, input, training, evaluation) in MODELS.items():
            with self.subTest(name):
                model, options = make(), {} if input.is_floating_point() else {"input_limit": 10}
                done, package = export([("all", model)], input, model=model, **options)
                self.assertLess(done.largest_difference, 1e-6)
                self.assertEqual(done.notices, ())
                self.assertEqual(len(drawn(package, "forward")), training)
                self.assertEqual((len(drawn(package, "evaluate")), len(drawn(package, "score"))), (evaluation, evaluation))

    def test_the_share_of_dropped_labels(self) -> None:
        model = LabelDropout()
        with torch.no_grad():
            model.table.weight.zero_()[10].fill_(1.0)
            model.head.weight.fill_(0.125), model.head.bias.zero_()
        _, package = export([("all", model)], torch.tensor([3, 7]), model=model, input_limit=10)
        step = package.train(torch.zeros(4000, dtype=torch.int64), torch.zeros(4000))
        self.assertAlmostEqual(float(step.loss) / 3 / 4000, 0.1, delta=0.02)

    def test_are_not_kept_for_backward(self) -> None:
        _, package = export([("all", Autoencoder(True))])
        graph = package.description["graphs"][0]
        made = {take for take, value in graph["forward"]["gives"] if take.startswith("saved")
                and any(node["op"] == "motley::normal" and value == len(graph["forward"]["takes"]) + k
                        for k, node in enumerate(graph["forward"]["nodes"]))}
        self.assertEqual(made, set())
        self.assertEqual(drawn(package, "forward"), drawn(package, "input_part") + drawn(package, "weight_part"))

    def test_of_the_model_and_the_layers_are_the_same(self) -> None:
        class Two(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.a, self.b, self.drop = nn.Linear(4, 4), nn.Linear(4, 4), nn.Dropout(0.5)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.a(x) + torch.randn_like(x) + 2 * self.drop(self.b(x)) + torch.rand(4)

        def swapped(x: torch.Tensor, like: Callable[..., torch.Tensor] = torch.randn_like) -> torch.Tensor:
            last = torch.rand(4)
            return 2 * model.drop(model.b(x)) + last + like(x) + model.a(x)
        model = Two()
        self.assertLess(export([("all", swapped)], model=model)[0].largest_difference, 1e-6)
        with self.assertRaisesRegex(motley.ExportError, r"in eval\(\) mode the model has a random draw that the layers lack: normal numbers of "
                                    r"\[2, 4\].*the layers have a random draw that the model lacks: uniform numbers of \[2, 4\]"):
            export([("all", lambda x: swapped(x, torch.rand_like))], model=model)

    def test_draws_in_other_modules(self) -> None:
        class Noisy(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x + torch.randn_like(x)
        model = nn.Sequential(nn.Linear(4, 4), Noisy(), nn.Linear(4, 4), Noisy())
        done, package = export(motley.split(model), model=model)
        self.assertEqual(done.largest_difference, 0)
        self.assertEqual(sum(len(drawn(package, "forward", k)) for k in range(len(package.description["layers"]))), 2)

    def test_what_is_refused(self) -> None:
        own = torch.Generator()
        for name, form, message in (
                ("randperm", lambda x: x[:, torch.randperm(4)], r"randperm draws random numbers.*argsort\(1\).*order of samples"),
                ("multinomial", lambda x: x * torch.multinomial(x.detach().abs(), 1), r"multinomial draws random numbers.*argmax\(-1\)"),
                ("poisson", lambda x: x * torch.poisson(x.detach().abs()), "poisson draws random numbers.*generate the numbers as part of the data"),
                ("a generator", lambda x: x * torch.rand(4, generator=own), "rand.generator draws random numbers.*Leave out generator="),
                ("a generator in place", lambda x: x * torch.empty(4).normal_(generator=own), "normal_ draws random.*Leave out generator="),
                ("many integers", lambda x: x * torch.randint(1 << 33, (4,)), r"integers from 0 to below 8589934592.*at most 2\^32"),
                ("a branch", lambda x: x * 2 if torch.rand(()) < 0.5 else x, "depend on the values"),
                ("an item", lambda x: x * torch.randint(5, ()).item(), "depend on the values"),
                ("too many", lambda x: sum((torch.rand(4) for _ in range(300)), x), "more than 256 dropout masks and random draws"),
                ("again in backward", lambda x: checkpoint(lambda y: y.tanh() * torch.randn_like(y), x, use_reentrant=False),
                 "backward pass, as by activation checkpointing")):
            with self.subTest(name), self.assertRaisesRegex(motley.ExportError, message):
                exported([("all", function(form))], X, total, torch.zeros(2))

    def test_a_loss_that_draws_is_refused(self) -> None:
        with self.assertRaisesRegex(motley.ExportError, r"the loss draws random numbers: normal numbers of \[2, 4\].*Draw in the last layer"):
            export([("all", nn.Linear(4, 4))], loss=lambda o, t: ((o - torch.randn_like(o)).square().sum(), torch.full((), o.size(0))))


if __name__ == "__main__":
    unittest.main()
