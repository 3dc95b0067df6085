"""The model files of a package, and frozen 16-bit weights."""

from __future__ import annotations

import hashlib
import json
import os
import unittest
from typing import Any, Dict

import torch
import torch.nn as nn

from support import Folder, motley
from motley import weights
from motley.model_files import companions
import language_models

IDS = torch.randint(50, (2, 8))


class Config:
    """Behaves like transformers' configurations, which need not be installed."""

    model_type = "odd"

    def __init__(self, path: str = "", **values: Any):
        self._name_or_path = path
        self._values = {"model_type": "odd", "dtype": "bfloat16", **values}

    def to_json_string(self) -> str:
        return json.dumps(self._values)


class Model(nn.Module):
    def __init__(self, config: Any):
        super().__init__()
        self.config = config
        self.embed, self.head = nn.Embedding(50, 4), nn.Linear(4, 50, bias=False)

    def get_input_embeddings(self) -> nn.Module:
        return self.embed

    def get_output_embeddings(self) -> nn.Module:
        return self.head

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.embed(ids))


class Tokenizer:
    def save_pretrained(self, folder: str) -> None:
        for name in ("vocab.txt", "README.md"):
            with open(os.path.join(folder, name), "w") as file:
                file.write(name)


def exported(folder: Folder, model: nn.Module, **options: Any) -> Dict[str, Any]:
    done = motley.export([("all", model)], nn.CrossEntropyLoss(), (IDS, IDS), folder.path("x"), model=model, **options)
    with open(os.path.join(done.path, "package.json"), encoding="utf-8") as file:
        description = json.load(file)
    found = {}
    for entry in description.get("files", []):
        with open(os.path.join(done.path, "files", entry["name"]), "rb") as file:
            content = file.read()
        assert entry["bytes"] == len(content) and entry["sha256"] == hashlib.sha256(content).hexdigest()
        found[entry["name"]] = content.decode()
    return found


class ModelFiles(unittest.TestCase):
    def test_the_configuration_is_of_what_is_written(self) -> None:
        with Folder() as folder:
            config = json.loads(exported(folder, Model(Config(layers=2, tie_word_embeddings=True)))["config.json"])
            self.assertEqual(config, {"model_type": "odd", "dtype": "float32", "layers": 2, "tie_word_embeddings": False, "architectures": ["Model"]})
            tied = Model(Config())
            tied.head.weight = tied.embed.weight
            self.assertTrue(json.loads(exported(folder, tied)["config.json"])["tie_word_embeddings"], "replaced, with its files")
            self.assertEqual(exported(folder, language_models.GPT2LMHeadModel()), {}, "of a model that is not transformers'")

    def test_files_come_from_the_models_folder_or_are_given(self) -> None:
        with Folder() as folder:
            os.mkdir(folder.path("theirs"))
            for name in ("tokenizer.json", "vocab.txt", "model.safetensors", "train.py"):
                with open(os.path.join(folder.path("theirs"), name), "w") as file:
                    file.write("theirs")
            found = exported(folder, Model(Config(folder.path("theirs"))))
            self.assertEqual(sorted(found), ["config.json", "tokenizer.json", "vocab.txt"])
            both = exported(folder, Model(Config(folder.path("theirs"))), files=Tokenizer())
            self.assertEqual((both["vocab.txt"], both["tokenizer.json"]), ("vocab.txt", "theirs"))
            plain = exported(folder, language_models.GPT2LMHeadModel(), files=folder.path("theirs"))
            self.assertEqual(sorted(plain), ["tokenizer.json", "vocab.txt"])
            for given, message in ((folder.path("nowhere"), "not an existing folder"), (7, "not an existing folder"), (folder.path("x"), "no file that belongs")):
                with self.assertRaisesRegex(motley.ExportError, message):
                    exported(folder, language_models.GPT2LMHeadModel(), files=given)
            with self.assertRaisesRegex(motley.ExportError, "configuration of Model is not valid JSON: (Infinity|NaN) is not valid"):
                exported(folder, Model(Config(limit=float("inf"))))

    def test_the_names_are_those_that_readers_take(self) -> None:
        for name in companions():
            self.assertRegex(name, r"^[A-Za-z0-9][A-Za-z0-9._-]*\.(json|txt|model|spm|jinja|tiktoken)$")
            self.assertFalse(name.endswith(".index.json"))


class SmallerFloats(unittest.TestCase):
    def test_what_is_frozen_keeps_its_type_and_is_left_as_it_was(self) -> None:
        for dtype in (torch.bfloat16, torch.float16):
            model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))
            model[0].to(dtype).requires_grad_(False)
            before = model[0].weight.clone()
            with Folder() as folder:
                motley.export(motley.split(model), nn.CrossEntropyLoss(), (torch.randn(2, 4), torch.tensor([0, 1])), folder.path("x"))
                written = weights.read(folder.path("x/weights.safetensors"))["0.weight"]
            self.assertEqual(written.dtype, dtype)
            self.assertTrue(torch.equal(written, before))
            self.assertEqual((model[0].weight.dtype, torch.equal(model[0].weight, before)), (dtype, True))

    def test_what_trains_is_its_owners_choice(self) -> None:
        model = nn.Sequential(nn.Linear(4, 4).bfloat16(), nn.Linear(4, 3))
        with Folder() as folder, self.assertRaisesRegex(motley.ExportError, r"0.weight is bfloat16; packages train float32 parameters.*\.float\(\)"):
            motley.export(motley.split(model), nn.CrossEntropyLoss(), (torch.randn(2, 4), torch.tensor([0, 1])), folder.path("x"))
        self.assertEqual(model[0].weight.dtype, torch.bfloat16)


if __name__ == "__main__":
    unittest.main()
