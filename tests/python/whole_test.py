"""A list of layers that is not the whole model is rejected with the missing part; a complete one works in every
notation."""

from __future__ import annotations

import json
import os
import random
import types
import unittest
from typing import Any, Callable, Dict, List, Tuple

import numpy
import torch
import torch.nn as nn
import torch.nn.functional as F

from support import Folder, exported, motley, total
import language_models
import vision_models

IDS = torch.randint(8, 50, (2, 8))


class Net(nn.Module):
    """Ids to scores, with one instance of each part that a list can omit."""

    def __init__(self, **options: Any):
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))
        self.norm = nn.LayerNorm(8)
        self.second_norm = nn.LayerNorm(8)
        self.batch_norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(options.get("p", 0.5))
        self.adapter_in, self.adapter_out = nn.Linear(8, 2, bias=False), nn.Linear(2, 8, bias=False)
        nn.init.zeros_(self.adapter_out.weight)
        self.head = nn.Linear(8, 50)
        self.config = types.SimpleNamespace(pad_token_id=options.get("pad"))
        self.register_buffer("scale", torch.tensor(3.0))
        self.register_buffer("seen", torch.tensor(0.0))
        self.options = options

    def body(self, ids: torch.Tensor, without: str = "") -> torch.Tensor:
        x = self.embed(ids) * (1.0 if without == "factor" else 2.0)
        if without != "buffer":
            x = x * self.scale
        if without != "mask":
            x = x.masked_fill((ids == (self.config.pad_token_id or 0)).unsqueeze(-1), 0.0)
        for k, block in enumerate(self.blocks):
            x = x + block(x) if without != f"block {k}" else x
        if without != "adapter":
            x = x + self.adapter_out(self.adapter_in(x)) * (1.0 if without == "adapter's factor" else 4.0)
        x = self.norm(x)
        x = x if without == "second norm" else self.second_norm(x)
        if without != "batch norm":
            x = self.batch_norm(x.transpose(1, 2)).transpose(1, 2)
        if without != "dropout":
            x = F.dropout(x, 0.25 if without == "probability" else 0.5, self.training)
        if without != "module's dropout":
            x = self.drop(x)
        if self.training and without != "training's path":
            x = x * 1.5
        return x.detach() if without == "gradient" else x

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        if self.options.get("counts"):
            self.seen += 1
        if self.options.get("shakes") and self.training:
            return self.head(self.body(ids) * self.options["shakes"]())
        scores = self.head(self.body(ids))
        return torch.tanh(scores / 30) * 30 if self.options.get("caps") else scores

    def listed(self, without: str = "") -> List[Tuple[str, Callable[[Any], Any]]]:
        return [("body", lambda ids: self.body(ids, without)), ("head", self.head)]


class InOneRun(nn.Module):
    """Packed ids, unpacked by the caller."""

    def __init__(self) -> None:
        super().__init__()
        self.net = Net()

    def forward(self, ids: torch.Tensor, more: torch.Tensor) -> Dict[str, torch.Tensor]:
        return {"hidden": more, "logits": self.net(ids) + more.float().unsqueeze(-1)}


def export(layers: Any, input: torch.Tensor = IDS, loss: Any = None, target: Any = None, **options: Any) -> motley.Exported:
    return exported(layers, input, loss, input if target is None else target, **options)


class Whole(unittest.TestCase):
    def refused(self, message: str, *args: Any, **options: Any) -> None:
        with self.assertRaisesRegex(motley.ExportError, message):
            export(*args, **options)

    def test_lists_that_leave_something_out(self) -> None:
        for without, message in (("factor", r"in eval\(\) mode: [0-9.]+ of the largest output"), ("buffer", "of the largest output"),
                                 ("block 0", r"never call.*blocks\.0|of the largest output"), ("block 1", "of the largest output"),
                                 ("adapter", "of the largest output"), ("adapter's factor", "of the largest output"),
                                 ("second norm", "of the largest output"), ("batch norm", "of the largest output"),
                                 ("dropout", r"in train\(\) mode the model has a random draw that the layers lack: dropout of 0.5"),
                                 ("probability", "dropout of 0.5.*the layers have a random draw that the model lacks: dropout of 0.25"),
                                 ("module's dropout", "that the layers lack: dropout of 0.5.*never call drop"),
                                 ("training's path", r"in train\(\) mode: [0-9.]+ of the largest"),
                                 ("gradient", "only the model gives a gradient to embed.weight")):
            with self.subTest(without):
                torch.manual_seed(1)
                model = Net()
                self.refused(message, model.listed(without), model=model)

    def test_what_only_padding_shows(self) -> None:
        for pad in (None, 7):
            model = Net(pad=pad)
            self.refused("on other samples than the example's", model.listed("mask"), model=model)

    def test_what_only_large_outputs_show(self) -> None:
        model = Net(caps=True)
        with torch.no_grad():
            model.head.weight.mul_(0.01), model.head.bias.zero_()
        before = model.head.weight.clone()
        self.refused("with outputs as large as 100", model.listed(), model=model)
        self.assertTrue(torch.equal(model.head.weight, before))

    def test_the_right_list(self) -> None:
        model = Net()
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        state = torch.get_rng_state()
        done = export(model.listed(), model=model)
        self.assertEqual(done.notices, ())
        self.assertTrue(torch.equal(torch.get_rng_state(), state))
        for name, tensor in model.state_dict().items():
            self.assertTrue(torch.equal(tensor, before[name]), name)
        self.assertTrue(all(p.grad is None for p in model.parameters()))

    def test_a_list_that_calls_the_model(self) -> None:
        model = InOneRun()
        packed = torch.stack([IDS, IDS], 1)
        self.assertEqual(export([("all", lambda t: model(t[:, 0], t[:, 1])["logits"])], packed, target=IDS, model=model).notices, ())

    def test_a_list_that_calls_the_model_for_a_part_of_it(self) -> None:
        class Features(nn.Module):
            def __init__(self, p: float):
                super().__init__()
                self.body, self.drop, self.head = nn.Linear(4, 8), nn.Dropout(p), nn.Linear(8, 4)

            def forward(self, x: torch.Tensor) -> Dict[str, torch.Tensor]:
                hidden = self.body(x).relu()
                return {"logits": self.head(self.drop(hidden)) * 3, "hidden": hidden}
        model, rest = Features(0.5), (torch.randn(2, 4), total, torch.zeros(2))
        message = r"of the largest output.*If Features\(input\) is not the call that you train, pass forward="
        self.refused(message, [("body", lambda x: model(x)["hidden"]), ("head", model.head)], *rest, model=model)
        self.refused(message, [("all", lambda x: model(x)["logits"]), ("more", lambda x: x * 2)], *rest, model=model)
        self.refused(message, [("all", lambda x: model(x)["logits"].mul_(2)), ("more", lambda x: x)], *rest, model=model)
        for layers in ([("all", lambda x: model(x)["hidden"])], [("all", lambda x: model(x)["logits"])], [("in", lambda x: x * 2), ("all", lambda x: model(x)["logits"])],
                       [("all", lambda x: model(x)["logits"] * 1.0)]):
            self.assertEqual(export(layers, *rest, model=model).notices, ())
        plain = Features(0.0)
        self.assertEqual(export([("body", lambda x: plain(x)["hidden"]), ("head", lambda h: plain.head(h) * 3)], *rest, model=plain).notices, ())

    def test_one_layer_that_does_more_than_call_the_model(self) -> None:
        model, packed = InOneRun(), torch.stack([IDS, IDS], 1)

        def more(t: torch.Tensor) -> torch.Tensor:
            return model(t[:, 0], t[:, 1])["logits"] * 2
        done = export([("all", more)], packed, target=IDS, model=model)
        self.assertRegex(done.notices[0], r"does more than call InOneRun, and the call to compare it with is unknown \(InOneRun\(input\) raises TypeError.*pass forward=")
        self.assertEqual(export([("all", more)], packed, target=IDS, model=model, forward=more).notices, ())
        self.refused("of the largest output", [("all", more)], packed, target=IDS, model=model, forward=lambda t: model(t[:, 0], t[:, 1]))
        net = Net(p=0.0)
        done = export([("all", lambda ids: net(ids) + 1)], model=net)
        self.assertRegex(done.notices[0], r"does more than call Net, and the call to compare it with is unknown \(.*of the largest output")
        done = export([("all", lambda ids: net(ids) + net.training)], model=net)
        self.assertRegex(done.notices[0], r"in train\(\) mode")
        self.assertEqual(export([("all", lambda ids: net(ids).transpose(1, 2))], model=net).notices, ())

    def test_models_that_are_called_otherwise(self) -> None:
        model, packed = InOneRun(), torch.stack([IDS, IDS], 1)

        def layers(without: str) -> Any:
            return [("body", lambda t: (model.net.body(t[:, 0], without), t[:, 1].float())),
                    ("head", lambda xy: model.net.head(xy[0]) + xy[1].unsqueeze(-1))]
        done = export(layers(""), packed, target=IDS, model=model)
        self.assertRegex(done.notices[0], r"not compared with the model: InOneRun\(input\) raises TypeError: .*more.*; pass forward=")
        self.assertNotIn("never call", done.notices[0])
        done = export(layers("module's dropout"), packed, target=IDS, model=model)
        self.assertRegex(done.notices[0], r"The layers never call net.drop$")

        def forward(t: torch.Tensor) -> Any:
            return model(t[:, 0], t[:, 1])
        self.assertEqual(export(layers(""), packed, target=IDS, model=model, forward=forward).notices, ())
        self.refused("that the layers lack: dropout", layers("dropout"), packed, target=IDS, model=model, forward=forward)
        self.refused("forward= raises TypeError", layers(""), packed, target=IDS, model=model, forward=lambda t: model(t))
        self.refused("forward= is a bool", layers(""), packed, target=IDS, model=model, forward=True)

    def test_what_targets_ignore_may_differ(self) -> None:
        class Blanks(InOneRun):
            def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
                return self.net(ids) * mask.unsqueeze(-1)
        model, mask = Blanks(), torch.ones(2, 8, dtype=torch.int64)
        mask[0, :2] = 0
        packed, layers = torch.stack([IDS, mask], 1), [("body", lambda t: model.net.body(t[:, 0])), ("head", model.net.head)]

        def forward(t: torch.Tensor) -> torch.Tensor:
            return model(t[:, 0], t[:, 1])
        done = export(layers, packed, target=IDS.masked_fill(mask == 0, -100), model=model, forward=forward)
        self.assertRegex(done.notices[0], "only at positions whose targets are not ignored")
        self.refused("of the largest output", layers, packed, target=IDS, model=model, forward=forward)

    def test_nothing_to_compare_with(self) -> None:
        with Folder() as folder, self.assertWarnsRegex(motley.ExportWarning, "not compared with a model"):
            motley.export([("a", nn.Linear(4, 4)), ("b", nn.Linear(4, 4))], total, (torch.randn(2, 4), torch.zeros(2)), folder.path("x"))

    def test_draws_that_are_not_dropout(self) -> None:
        for what, draw in (("Python's random", lambda: 1 + random.random()), ("NumPy", lambda: 1 + float(numpy.random.rand()))):
            model = Net(shakes=draw)
            self.refused(f"the model draws random numbers from {what}", model.listed(), model=model)
        model = Net(shakes=lambda: 1 + torch.randn(1))
        self.refused("in train.. mode the model has a random draw that the layers lack: normal numbers of .1. in Net", model.listed(), model=model)

    def test_layers_that_are_skipped_with_probability_zero(self) -> None:
        def never() -> float:
            return 1.0 if torch.rand([]) < 0.0 else 1.0
        model = Net(shakes=never)
        export(model.listed(), model=model)

    def test_buffers(self) -> None:
        model = Net(counts=True)
        self.refused("the new value of the buffer seen differs", model.listed(), model=model)

    def test_draws_in_another_order(self) -> None:
        class Two(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.a, self.b, self.drop_a, self.drop_b = nn.Linear(4, 4), nn.Linear(4, 4), nn.Dropout(0.5), nn.Dropout(0.5)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.drop_a(self.a(x)) + 2 * self.drop_b(self.b(x))
        model = Two()
        for swapped, right in ((False, True), (True, False)):
            def last(x: torch.Tensor) -> torch.Tensor:
                one, two = (model.drop_b, model.drop_a) if swapped else (model.drop_a, model.drop_b)
                later = 2 * two(model.b(x))
                return one(model.a(x)) + later
            layers = [("only", last)]
            if right:
                export(layers, torch.randn(2, 4), total, torch.zeros(2), model=model)
            else:
                self.refused(r"in train\(\) mode: [0-9.]+ of the largest", layers, torch.randn(2, 4), total, torch.zeros(2), model=model)

    def test_split(self) -> None:
        class Dropped(language_models.LlamaForCausalLM):
            def forward(self, ids: torch.Tensor) -> torch.Tensor:
                return F.dropout(super().forward(ids), 0.5, self.training)

        class DroppedInBlocks(language_models.LlamaForCausalLM):
            def __init__(self) -> None:
                super().__init__()
                for block in self.model.layers:
                    block.mlp.register_forward_hook(lambda module, inputs, output: F.dropout(output, 0.5, module.training))

        class Images(vision_models.ResNet):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return super().forward(F.dropout(x, 0.5, self.training))
        model = Dropped()
        self.refused("motley.split's layers of Dropped differ from the model: .*dropout of 0.5", motley.split(model))
        export(motley.split(DroppedInBlocks()))
        self.refused("dropout of 0.5", motley.split(Images()), torch.randn(2, 3, 32, 32), target=torch.randint(10, (2,)))

    def test_wrappers_of_adapters(self) -> None:
        class Wrapper(nn.Module):  # as peft's
            def __init__(self, model: nn.Module):
                super().__init__()
                self.base_model, self.peft_config = nn.ModuleDict({"model": model}), {"default": None}

            def get_base_model(self) -> nn.Module:
                return self.base_model["model"]

            def forward(self, *args: Any, **kwargs: Any) -> Any:
                return self.get_base_model()(*args, **kwargs)
        model = Wrapper(language_models.LlamaForCausalLM())
        for layers in (motley.split(model), motley.split(model.get_base_model())):
            with Folder() as folder:
                done = motley.export(layers, nn.CrossEntropyLoss(), (IDS, IDS), folder.path("x"), model=model)
                self.assertEqual(done.notices, ())
                with open(os.path.join(done.path, "package.json"), encoding="utf-8") as file:
                    names = {p["name"] for layer in json.load(file)["layers"] for p in layer["parameters"]}
            self.assertEqual(names, {name for name, _ in model.named_parameters()})
        self.refused("the layers belong to another LlamaForCausalLM than model=", motley.split(language_models.LlamaForCausalLM()), model=model)

    def test_functions_without_their_model(self) -> None:
        functions = {"a": nn.Linear(4, 4)}
        self.refused("no parameter that requires a gradient. .*pass model=", [("a", lambda x: functions["a"](x))], torch.randn(2, 4))


if __name__ == "__main__":
    unittest.main()
