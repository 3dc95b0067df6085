"""The tensors of a folder whose names, values or files do not fit the model."""

from __future__ import annotations

import json
import os
import pathlib
import unittest
from typing import Any, Dict

import torch
import torch.nn as nn

from folder_test import Positions, empty, export, trained, written
from support import Folder, motley

from motley import weights
from motley.interpret import Package


def state() -> Dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return trained(Positions())


class Library(Positions):
    """With a configuration, as models of transformers."""

    config: Dict[str, Any] = {}


class Shards(unittest.TestCase):
    def refused(self, words: str, tensors: Dict[str, torch.Tensor], make: Any = Positions, omitted: str = "") -> None:
        with Folder() as folder:
            path = written(folder, tensors)
            if omitted:
                self.omit(path, omitted)
            with self.assertRaisesRegex(motley.ExportError, words):
                export(folder, empty(make), "x", folder=path)

    @staticmethod
    def omit(path: str, file: str) -> None:
        index = pathlib.Path(path, "model.safetensors.index.json")
        files = json.loads(index.read_text())["weight_map"]
        index.write_text(json.dumps({"weight_map": {name: own for name, own in files.items() if own != file}}))

    def test_tied_tensors_that_are_stored_twice(self) -> None:
        tensors = state()
        embedding = tensors["embed.weight"]
        for other in (embedding.clone(), embedding.float()):
            with Folder() as folder:
                done = export(folder, empty(), "x", folder=written(folder, {**tensors, "head.weight": other}))
                self.assertTrue(torch.equal(Package.open(done.path).tensors["embed.weight"], embedding.float()))
        changed = embedding.clone()
        changed[-1, -1] += 1
        self.refused('embed.weight and head.weight are one tensor in the model, and have different values.*"tie_word_embeddings": false',
                     {**tensors, "head.weight": changed})
        self.refused("head.weight has the shape", {**tensors, "head.weight": changed[1:]})

    def test_values_are_compared_in_pieces(self) -> None:
        with Folder() as folder:
            values = torch.arange(3 << 20).float()
            other = values.clone()
            other[-1] = 0
            for name, tensor in (("a", values), ("b", values), ("c", other), ("d", values.to(torch.float64)), ("e", values * float("nan"))):
                weights.write(folder.path(name), {name: tensor})
            a, b, c, d, e = (weights.stored(folder.path(name))[name] for name in "abcde")
            self.assertTrue(a.equals(a) and a.equals(b) and a.equals(d) and e.equals(e._replace(path=folder.path("e"))))
            self.assertFalse(a.equals(c) or a.equals(e) or a.equals(a._replace(shape=(3, 1 << 20))))

    def test_a_single_file_is_read_instead_of_an_index(self) -> None:
        tensors = state()
        with Folder() as folder:
            path = written(folder, {name: tensor + 1 for name, tensor in tensors.items()})
            weights.write(os.path.join(path, "model.safetensors"), tensors)
            done = export(folder, empty(), "x", folder=path)
            self.assertTrue(torch.equal(Package.open(done.path).tensors["embed.weight"], tensors["embed.weight"].float()))

    def test_names_that_a_library_converts(self) -> None:
        tensors = state()
        tensors["blocks.1.experts.0.weight"] = tensors.pop("blocks.1.1.weight")
        words = "has no values for blocks.1.1.weight, and has blocks.1.experts.0.weight, which .* lacks"
        self.refused(f"{words}. If transformers converts such names .* from_pretrained and export it from memory", tensors, Library)
        self.refused(f"{words}. Use the class of the saved model", tensors)

    def test_a_part_of_the_folders_model(self) -> None:
        tensors = {f"model.{name}": tensor for name, tensor in state().items()}
        tensors["lm_head.weight"] = tensors["model.embed.weight"].clone()
        self.refused('has model.embed.weight, and Library has embed.weight: .*such as LlamaForCausalLM instead of LlamaModel: "architectures"',
                     tensors, Library)

    def test_an_index_that_omits_a_file(self) -> None:
        self.refused("does not list model-1.safetensors, which has them. Download the folder again", state(), omitted="model-1.safetensors")

    def test_parameters_that_nothing_in_the_folder_resembles(self) -> None:
        tensors = {name: tensor for name, tensor in state().items() if name != "blocks.1.1.weight"}
        self.refused("has no values for blocks.1.1.weight. If the folder is incomplete, download it again.*from_pretrained and export it",
                     tensors, Library)
        self.refused("has no values for blocks.1.1.weight.*create the model with its weights", tensors)

    def test_surplus_bytes(self) -> None:
        with Folder() as folder:
            path = written(folder, state())
            with open(os.path.join(path, "model-1.safetensors"), "ab") as file:
                file.write(bytes(100))
            with self.assertRaisesRegex(motley.ExportError, "model-1.safetensors has 100 bytes after its last tensor"):
                export(folder, empty(), "x", folder=path)

    def test_limits_of_memory_that_are_not_positive_numbers(self) -> None:
        for memory in ("1G", -1, 0, True, float("nan")):
            with self.assertRaisesRegex(motley.ExportError, "memory= is .*a number above 0"):
                motley.export(Positions(), nn.CrossEntropyLoss(), None, "x", memory=memory)  # type: ignore[arg-type]


if __name__ == "__main__":
    unittest.main()
