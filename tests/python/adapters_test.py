"""Packages of models with adapters: names, configurations and notices, and the layers of virtual tokens."""

from __future__ import annotations

import json
import os
import unittest
import warnings
from typing import Any, Dict, Tuple

import torch
import torch.nn as nn

import adapted_models
import language_models
from support import Folder, motley
from motley.interpret import Package

IDS = torch.randint(50, (2, 8), generator=torch.Generator().manual_seed(3))

BASE = "base_model.model."


def exported(folder: Folder, model: nn.Module, ids: torch.Tensor = IDS, **options: Any) -> Tuple[motley.Exported, Dict[str, Any]]:
    """The export of `model` while peft is imported, and its package.json."""
    with adapted_models.peft(), warnings.catch_warnings():
        warnings.simplefilter("ignore", motley.ExportWarning)
        layers = motley.split(model, ids, forward=options.get("forward"))
        done = motley.export(layers, nn.CrossEntropyLoss(), (ids, IDS), folder.path("x"), **options)
    with open(os.path.join(done.path, "package.json"), encoding="utf-8") as file:
        return done, json.load(file)


def trained_by(package: Dict[str, Any]) -> "set[str]":
    return {entry["name"] for layer in package["layers"] for entry in layer["parameters"]}


class Names(unittest.TestCase):
    def test_each_tensor_of_the_adapter_has_the_name_that_peft_saves(self) -> None:
        for kind, more in (("lora", set()), ("dora", {"lora_magnitude_vector"}), ("ia3", set())):
            model = adapted_models.llama(kind)
            with Folder() as folder, self.subTest(kind):
                done, package = exported(folder, model)
                self.assertEqual(done.notices, ())
                self.assertEqual(set(package["adapter"]), trained_by(package))
                self.assertEqual(set(package["adapter"]), {name for name, p in model.named_parameters() if p.requires_grad})
                self.assertEqual(set(package["adapter"].values()), {name.replace(".default", "") for name in package["adapter"]})
                self.assertTrue(all(any(word in name for name in package["adapter"]) for word in more))
                with open(os.path.join(done.path, "files", "adapter_config.json"), encoding="utf-8") as file:
                    config = json.load(file)
                self.assertEqual(config, {"peft_type": "LORA", "inference_mode": True, "task_type": "CAUSAL_LM", "auto_mapping": None,
                                          "target_modules": ["q_proj", "v_proj"]})

    def test_without_a_task_the_configuration_names_the_base(self) -> None:
        model = adapted_models.llama()
        model.peft_config["default"] = adapted_models.Config(task_type=None)
        with Folder() as folder:
            done, _ = exported(folder, model)
            with open(os.path.join(done.path, "files", "adapter_config.json"), encoding="utf-8") as file:
                mapping = json.load(file)["auto_mapping"]
        self.assertEqual(mapping, {"base_model_class": "LlamaForCausalLM", "parent_library": "language_models"})

    def test_of_several_adapters_the_trained_one_counts(self) -> None:
        with Folder() as folder:
            done, package = exported(folder, adapted_models.llama("lora", ("mine", "other")))
            self.assertEqual(done.notices, ())
            self.assertEqual(len(package["adapter"]), 8)
            self.assertTrue(all(".mine." in name for name in package["adapter"]))

    def test_without_the_wrapper_of_peft_the_names_are_the_same(self) -> None:
        adapted = adapted_models.llama()
        model = adapted.get_base_model()
        model.peft_config = adapted.peft_config
        with Folder() as folder:
            _, package = exported(folder, model)
        self.assertEqual(len(package["adapter"]), 8)
        for name, theirs in package["adapter"].items():
            self.assertEqual(theirs, BASE + name.replace(".default", ""))

    def test_what_trains_besides_the_adapter_is_in_its_file(self) -> None:
        model = adapted_models.llama()
        norm = "base_model.model.model.norm.weight"
        model.get_parameter(norm).requires_grad_(True)
        with Folder() as folder:
            done, package = exported(folder, model)
        self.assertEqual(package["adapter"][norm], norm)
        self.assertEqual(set(package["adapter"]), trained_by(package))
        self.assertIn(f"{norm} is trained in addition to the adapter", done.notices[0])


class NoFolder(unittest.TestCase):
    """Of these an adapter's file would lack tensors, and peft would open it with random ones."""

    def notice(self, model: nn.Module, message: str) -> None:
        with Folder() as folder:
            done, package = exported(folder, model)
        self.assertNotIn("adapter", package)
        self.assertNotIn("files", package)
        self.assertEqual(len(done.notices), 1)
        self.assertRegex(done.notices[0], f"the whole model and not the adapter's folder: .*{message}.* call model.load_state")

    def test_a_part_of_the_adapter_is_frozen(self) -> None:
        model = adapted_models.llama()
        for name, parameter in model.named_parameters():
            parameter.requires_grad_("lora_B" in name)
        self.notice(model, "lack .*lora_A.*, which the adapter has and the run does not train")

    def test_a_part_of_the_adapter_is_not_used(self) -> None:
        model = adapted_models.llama()
        spare = adapted_models.Lora(nn.Linear(4, 4).requires_grad_(False), 4, ["default"], dora=False)
        model.get_base_model().model.layers[0].mlp.spare = spare
        self.notice(model, "lack .*spare.lora_A.default.weight, .*spare.lora_B.default.weight, which the adapter has")

    def test_two_adapters_train(self) -> None:
        model = adapted_models.llama("lora", ("mine", "other"))
        for name, parameter in model.named_parameters():
            parameter.requires_grad_("lora_" in name)
        self.notice(model, "the adapters mine, other are trained together")

    def test_peft_saves_a_result_of_what_trains(self) -> None:
        model = adapted_models.PromptModel(language_models.LlamaForCausalLM(), 3, encoded=True)
        self.notice(model, "prompt_embeddings in the adapter's file is computed from parameters")


class VirtualTokens(unittest.TestCase):
    def test_their_outputs_are_left_out_and_the_prompt_learns(self) -> None:
        model = adapted_models.PromptModel(language_models.LlamaForCausalLM(), 3, encoded=False)
        with Folder() as folder:
            done, description = exported(folder, model)
            package = Package.open(done.path)
            self.assertEqual(done.notices, ())
            self.assertEqual(description["adapter"], {"prompt_encoder.default.weight": "prompt_embeddings"})
            ids = torch.randint(50, (5, 8))
            found = package.train(ids, ids)
        loss = nn.functional.cross_entropy(model(ids)["logits"][:, 3:].flatten(0, 1), ids.flatten(), reduction="sum")
        self.assertLessEqual(abs(float(found.loss) - float(loss.detach())), 1e-6 * float(loss.detach()))
        right, = torch.autograd.grad(loss, [model.prompt_encoder["default"].weight])
        difference = found.gradients["prompt_encoder.default.weight"] - right
        self.assertLessEqual(float(difference.abs().max()), 1e-6 * float(right.abs().max()))

    def test_the_limit_of_ids_follows_from_a_later_layer(self) -> None:
        """The first layer has the prompt alone; ids are looked up where their embeddings are used."""
        model = adapted_models.PromptModel(language_models.LlamaForCausalLM(), 3, encoded=True)
        packed = torch.stack([IDS, torch.ones_like(IDS)], 1)
        with Folder() as folder:
            _, package = exported(folder, model, packed, forward=lambda t: model(t[:, 0])["logits"][:, 3:])
        self.assertEqual(package["input_limit"], 50)
        first = package["layers"][0]
        self.assertIn("prompt_encoder.default.0.weight", {entry["name"] for entry in first["parameters"]})
        self.assertNotIn("base_model.model.embed_tokens.weight", {entry["name"] for entry in first["constants"]})


if __name__ == "__main__":
    unittest.main()
