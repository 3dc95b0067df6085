"""Models of Hugging Face folders. Those that need transformers are skipped without it."""

from __future__ import annotations

import json
import os
import pathlib
import types
import unittest
import unittest.mock
import warnings
from typing import Any, Dict, Optional

import torch
import torch.nn as nn

from support import Folder, imported, motley

from motley import folder_model, positions
from motley.interpret import Package

try:
    import transformers
except ImportError:
    transformers = None  # type: ignore[assignment]

needs_transformers = unittest.skipUnless(transformers, "needs transformers")

_SMALL = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 90}
_DINO = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 16, "patch_size": 8}
_VISION = {**{key: value for key, value in _SMALL.items() if key != "vocab_size"}, "image_size": 16, "patch_size": 8}


def described(folder: Folder, **config: Any) -> str:
    """A folder with a config.json."""
    path = folder.path("model")
    os.makedirs(path, exist_ok=True)
    pathlib.Path(path, "config.json").write_text(json.dumps(config))
    return path


class Configurations(unittest.TestCase):
    def refused(self, words: str, config: Dict[str, Any], is_estimate: bool = False, **options: Any) -> None:
        with Folder() as folder, self.assertRaisesRegex(motley.ExportError, words):
            folder_model.open_folder(described(folder, **config), None, None, **{"tokens": 8, **options}, is_estimate=is_estimate)

    def test_architectures_that_are_not_a_list_of_one_name(self) -> None:
        for given, words in (("LlamaForCausalLM", '"architectures": "LlamaForCausalLM"'), (5, 'has "architectures": 5'),
                             ([5], r'has "architectures": \[5\]'), (["A", "B"], "names 2 architectures"), (None, "names 0 architectures")):
            self.refused(words, {"architectures": given})

    def test_lengths_that_are_not_positive_integers(self) -> None:
        for tokens in (0, -1, True, "16", 2.0):
            self.refused(r"tokens= is .*example=\(input, target\)", {}, tokens=tokens)
            self.refused(r"tokens= is .*e\.g\. tokens=2048$", {}, True, tokens=tokens)

    def test_a_file_instead_of_a_folder(self) -> None:
        with Folder() as folder, self.assertRaisesRegex(motley.ExportError, "is the file .*config.json. Pass the folder"):
            motley.export(folder=described(folder) + "/config.json", tokens=8, path=folder.path("x"))

    def test_errors_of_estimate_do_not_mention_weights(self) -> None:
        with Folder() as folder, self.assertRaises(motley.ExportError) as raised:
            folder_model.open_folder(folder.path("none"), None, None, 8, is_estimate=True)
        self.assertNotIn("safetensors", str(raised.exception))

    def test_the_whole_cause_is_stated(self) -> None:
        class Config:
            @staticmethod
            def from_pretrained(_: str) -> None:
                raise ValueError("Validation error for field 'hidden_size':\n    expected int, got str")

        module = types.SimpleNamespace(__version__="5.0", AutoConfig=Config, Net=nn.Linear)
        with imported("transformers", module), Folder() as folder, self.assertRaisesRegex(motley.ExportError, "expected int, got str"):
            folder_model.create(described(folder, architectures=["Net"]))

    def test_models_without_an_embedding_of_ids(self) -> None:
        class Two(nn.Module):
            def get_input_embeddings(self) -> nn.Module:
                raise NotImplementedError("not handled")

        for model in (Two(), nn.Linear(2, 2)):
            with unittest.mock.patch.object(folder_model, "create", lambda *_: model), \
                    self.assertRaisesRegex(motley.ExportError, "has no embedding of ids. Pass loss= and example="):
                folder_model.open_folder("x", None, None, 8)


class Positioned(nn.Module):
    """A model with a configuration of positions, and a table of them or none."""

    def __init__(self, key: str, learned: Optional[int]):
        super().__init__()
        self.wte = nn.Embedding(50, 8)
        self.wpe = nn.Embedding(learned, 8) if learned else None
        self.config = types.SimpleNamespace(to_dict=lambda: {key: 12, "vocab_size": 50})


class Lengths(unittest.TestCase):
    def test_more_tokens_than_learned_positions_are_refused(self) -> None:
        for key, rows in (("n_positions", 12), ("max_position_embeddings", 14)):
            model = Positioned(key, rows)
            ids = torch.zeros(2, 13, dtype=torch.int64)
            for input in (ids, {"input_ids": ids}):
                with self.assertRaisesRegex(motley.ExportError, f'has 13 tokens.*"{key}": 12.*wpe.weight. Pass at most 12'):
                    positions.check(model, (input, ids))
            self.assertEqual(positions.check(model, (ids[:, :12], ids)), ())

    def test_more_tokens_than_other_positions_give_a_notice(self) -> None:
        ids = torch.zeros(2, 13, dtype=torch.int64)
        notice, = positions.check(Positioned("max_position_embeddings", None), (ids, ids))
        self.assertIn('"max_position_embeddings": 12', notice)
        self.assertEqual(positions.check(nn.Linear(2, 2), (ids, ids)), ())


@needs_transformers
class Transformers(unittest.TestCase):
    def folder(self, folder: Folder, model: str, config: Any, write: bool = True) -> str:
        torch.manual_seed(0)
        path = folder.path("model")
        if write:
            getattr(transformers, model)(config).save_pretrained(path)
        else:
            config.architectures = [model]
            config.save_pretrained(path)
        return path

    def export(self, folder: Folder, path: str, **options: Any) -> motley.Exported:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return motley.export(folder=path, path=folder.path("x"), **options)

    def test_a_vision_model_whose_initialisers_loop(self) -> None:
        with Folder() as folder:
            path = self.folder(folder, "ViTForImageClassification", transformers.ViTConfig(**_VISION, num_labels=5))
            done = self.export(folder, path, loss=nn.CrossEntropyLoss(), example=(torch.rand(2, 3, 16, 16), torch.tensor([0, 4])))
            loaded = transformers.ViTForImageClassification.from_pretrained(path).state_dict()  # the folder has other names
            for name, tensor in Package.open(done.path).tensors.items():
                self.assertTrue(torch.equal(tensor, loaded[name]), name)
            for is_estimate, words in ((False, r"not a causal language model.*pass loss= and example="), (True, "run motley plan")):
                with self.assertRaisesRegex(motley.ExportError, words):
                    folder_model.open_folder(path, None, None, 8, is_estimate)

    def test_models_of_several_kinds_are_created(self) -> None:
        text = {**_SMALL, "max_position_embeddings": 16}
        for name, config in (("SiglipModel", transformers.SiglipConfig(text_config=text, vision_config=_VISION)),
                             ("Dinov2ForImageClassification", transformers.Dinov2Config(**_DINO)),
                             ("Gemma3ForConditionalGeneration", transformers.Gemma3Config(
                                 text_config={**_SMALL, "head_dim": 8, "num_key_value_heads": 2}, vision_config=_VISION, mm_tokens_per_image=4))):
            with self.subTest(name), Folder() as folder:
                folder_model.create(self.folder(folder, name, config, write=False))

    def test_other_models_than_language_models(self) -> None:
        for name, config in (("BertForSequenceClassification", transformers.BertConfig(**_SMALL)),
                             ("T5ForConditionalGeneration", transformers.T5Config(vocab_size=90, d_model=32, num_layers=1)),
                             ("CLIPModel", transformers.CLIPConfig()), ("LlamaModel", transformers.LlamaConfig(**_SMALL))):
            with self.subTest(name), Folder() as folder, self.assertRaisesRegex(motley.ExportError, f"names {name}, which is not a causal"):
                folder_model.open_folder(self.folder(folder, name, config, write=False), None, None, 8)

    def test_experts_whose_names_are_converted(self) -> None:
        with Folder() as folder:
            path = self.folder(folder, "MixtralForCausalLM", transformers.MixtralConfig(**_SMALL, num_key_value_heads=2, num_local_experts=2))
            with self.assertRaisesRegex(motley.ExportError, "transformers converts .*experts.*Load the model with from_pretrained"):
                self.export(folder, path, tokens=8)

    def test_texts_longer_than_the_positions(self) -> None:
        with Folder() as folder:
            path = self.folder(folder, "GPT2LMHeadModel", transformers.GPT2Config(vocab_size=90, n_embd=32, n_layer=1, n_head=4, n_positions=16))
            with self.assertRaisesRegex(motley.ExportError, '"n_positions": 16, the size of transformer.wpe.weight. Pass at most 16'):
                self.export(folder, path, tokens=17)
        with Folder() as folder:
            path = self.folder(folder, "LlamaForCausalLM", transformers.LlamaConfig(**_SMALL, max_position_embeddings=16))
            self.assertIn('"max_position_embeddings": 16', self.export(folder, path, tokens=17).notices[0])
            self.assertEqual(self.export(folder, path, tokens=16).notices, ())

    def test_tied_embeddings_with_different_values(self) -> None:
        with Folder() as folder:
            path = self.folder(folder, "LlamaForCausalLM", transformers.LlamaConfig(**_SMALL, tie_word_embeddings=False))
            config = pathlib.Path(path, "config.json")
            config.write_text(json.dumps({**json.loads(config.read_text()), "tie_word_embeddings": True}))
            with self.assertRaisesRegex(motley.ExportError, "lm_head.weight are one tensor in the model, and have different values"):
                self.export(folder, path, tokens=8)


if __name__ == "__main__":
    unittest.main()
