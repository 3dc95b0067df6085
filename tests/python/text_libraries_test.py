"""Texts prepared by Motley and by trl and transformers: the same tokens, masks and positions, and the same losses. Skipped without these
libraries; MOTLEY_PROGRAM names the program for the trainings. Nothing is downloaded:

    MOTLEY_PROGRAM=build/release/bin/motley python tests/python/run.py text_libraries_test
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import re
import sys
import unittest
from typing import Any, Dict, List
from unittest import mock

import numpy
import torch
import torch.nn as nn

from support import Folder, motley
from text_errors_test import damage
from text_fakes import QUIET, write_lines

_EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
sys.path += [os.path.join(_EXAMPLES, "same_steps"), os.path.join(_EXAMPLES, "texts")]
import small_chats  # noqa: E402
from data_order import samples_of  # noqa: E402

MISSING = [name for name in ("transformers", "trl", "datasets", "pyarrow") if importlib.util.find_spec(name) is None]
PROGRAM = os.environ.get("MOTLEY_PROGRAM")

DIALOGUES, LENGTH, STEPS, BATCH = 2000, 128, 20, 4

LARGEST_DIFFERENCE = 1e-5


def small_model(tokenizer: Any, kind: str = "llama") -> Any:
    import transformers

    torch.manual_seed(5)
    sizes: Dict[str, Any] = dict(vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                                 max_position_embeddings=LENGTH, pad_token_id=tokenizer.pad_token_id, bos_token_id=tokenizer.bos_token_id,
                                 eos_token_id=tokenizer.eos_token_id)
    if kind == "qwen3":
        return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**sizes, head_dim=8))
    if kind == "gemma3":  # the window of the first layer is a row
        return transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(
            **sizes, head_dim=8, query_pre_attn_scalar=8, sliding_window=LENGTH, layer_types=["sliding_attention", "full_attention"]))
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes))


def by_trl(records: List[Dict[str, Any]], tokenizer: Any, folder: Folder, **options: Any) -> Any:
    """The trainer, with the prepared data and the collator."""
    import datasets
    import trl

    config = trl.SFTConfig(output_dir=folder.path("trl"), max_length=LENGTH, shuffle_dataset=False, use_cpu=True, bf16=False, report_to=[],
                           gradient_checkpointing=False, disable_tqdm=True, **options)
    return trl.SFTTrainer(model=small_model(tokenizer), args=config, train_dataset=datasets.Dataset.from_list(records), processing_class=tokenizer)


def shifted(labels: torch.Tensor) -> torch.Tensor:
    """The targets for labels that transformers shifts itself."""
    return torch.cat([labels[:, 1:], torch.full_like(labels[:, :1], -100)], 1)


@unittest.skipIf(MISSING, f"needs {', '.join(MISSING)}")
class Libraries(unittest.TestCase):
    def rows_are_trls(self, data: motley.Texts, trainer: Any) -> None:
        self.assertEqual(len(data), len(trainer.train_dataset))
        for k in range(len(data)):
            batch = trainer.data_collator([trainer.train_dataset[k]])
            count = batch["input_ids"].size(1)
            row = {name: torch.from_numpy(array)[None].long() for name, array in data[k].items()}
            self.assertTrue(torch.equal(row["input_ids"][:, :count], batch["input_ids"]), k)
            self.assertTrue(torch.equal(row["labels"][:, :count], shifted(batch["labels"])), k)
            self.assertTrue((row["labels"][:, count:] == -100).all())
            if data.packing:
                self.assertTrue(torch.equal(row["position_ids"][:, :count], batch["position_ids"]), k)
                self.assertTrue(torch.equal(row["document_ids"][:, :count], (batch["position_ids"] == 0).cumsum(1)), k)
                self.assertTrue((row["document_ids"][:, count:] == 0).all())
            else:
                self.assertTrue(torch.equal(row["attention_mask"][:, :count], batch["attention_mask"]), k)
                self.assertTrue((row["attention_mask"][:, count:] == 0).all())

    def compared(self, records: List[Dict[str, Any]], packing: bool, train: bool = False, tokenizer: Any = None, kind: str = "llama",
                 **options: Any) -> None:
        tokenizer = tokenizer or small_chats.tokenizer()
        with Folder() as folder:
            data = motley.text(write_lines(records, folder.path("texts.jsonl")), tokenizer, folder.path("data"), max_length=LENGTH, packing=packing, **QUIET)
            trainer = by_trl(records, tokenizer, folder, packing=packing, **options)
            self.rows_are_trls(data, trainer)
            if train and PROGRAM:
                self.losses_are_trls(data, trainer, small_model(tokenizer, kind), folder)

    def losses_are_trls(self, data: motley.Texts, trainer: Any, model: Any, folder: Folder) -> None:
        """Against a plain loop on the batches of trl's collator, with the loss and the masks that transformers itself computes."""
        run = motley.train(model, nn.CrossEntropyLoss(), data, motley=PROGRAM, run=folder.path("run"), steps=STEPS, global_batch=BATCH, micro_batch=2,
                           lr=3e-3, schedule="constant", warmup_steps=0, clip=0.0, weight_decay=0.0, beta2=0.999, data__holdout=0.0, run__threads=1, **QUIET)
        with open(os.path.join(run.run, "metrics.jsonl"), encoding="utf-8") as file:
            found = [json.loads(line)["loss"] for line in file]
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
        model.train()
        right = []
        for step in range(STEPS):
            batch = trainer.data_collator([trainer.train_dataset[k] for k in samples_of(step, BATCH, len(data))])
            given = {name: batch[name] for name in ("input_ids", "labels", "position_ids", "attention_mask") if name in batch}
            loss = model(**given, use_cache=False).loss  # as trl: with a cache, transformers does not separate documents
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right.append(float(loss.detach()))
        apart = max(abs(a - b) / b for a, b in zip(found, right))
        print(f"{type(model).__name__}, packing={data.packing}: losses {right[0]:.4f} to {right[-1]:.4f}, the largest difference {apart:.1e}", file=sys.stderr)
        self.assertEqual(len(found), STEPS)
        self.assertLess(right[-1], right[0])
        self.assertLessEqual(apart, LARGEST_DIFFERENCE)

    def test_chats_unpacked(self) -> None:
        self.compared(small_chats.dialogues(DIALOGUES), False, True, assistant_only_loss=True)

    def test_chats_packed(self) -> None:
        self.compared(small_chats.dialogues(DIALOGUES), True, True, assistant_only_loss=True)

    def test_other_models(self) -> None:
        """Their losses; Gemma 3 has layers with a window, here of a row."""
        for kind in ("qwen3", "gemma3"):
            for packing in (False, True):
                with self.subTest(kind=kind, packing=packing):
                    self.compared(small_chats.dialogues(100), packing, True, kind=kind, assistant_only_loss=True)

    def test_pairs_and_texts(self) -> None:
        chats = [{"prompt": record["messages"][:-1], "completion": record["messages"][-1:]} for record in small_chats.dialogues(100)
                 if len(json.dumps(record["messages"][:-1], ensure_ascii=False)) < 200]
        self.assertGreater(len(chats), 10)
        chance = random.Random(2)
        pairs = [{"prompt": small_chats.sentence(chance, 5), "completion": " " + small_chats.sentence(chance, 5)} for _ in range(100)]
        texts = [{"text": small_chats.sentence(chance, 40)} for _ in range(100)]
        for records in (chats, pairs, texts):
            for packing in (False, True):
                self.compared(records, packing)

    @unittest.skipUnless(PROGRAM, "needs MOTLEY_PROGRAM")
    def test_the_lines_of_the_documentation(self) -> None:
        """docs/python.md, "Texts", as they stand, on a small model in bfloat16; with two steps."""
        import transformers

        with open(os.path.join(_EXAMPLES, "..", "docs", "python.md"), encoding="utf-8") as file:
            found = re.search(r"### Texts\n.*?```python\n(.*?)```", file.read(), re.DOTALL)
        assert found is not None
        self.assertLessEqual(len([line for line in found[1].splitlines() if line.strip()]), 11)
        train, before = motley.train, os.getcwd()

        def short(*given: Any, **settings: Any) -> Any:
            return train(*given, **{**settings, "steps": 2, "global_batch": 2, "motley": PROGRAM, **QUIET})

        with Folder() as folder, mock.patch.object(motley, "train", short):
            os.chdir(folder.path(""))
            try:
                small_chats.write_model("Llama-3.2-1B-Instruct")
                transformers.AutoModelForCausalLM.from_pretrained("Llama-3.2-1B-Instruct").to(torch.bfloat16).save_pretrained("Llama-3.2-1B-Instruct")
                write_lines(small_chats.dialogues(40), "chats.jsonl")
                exec(found[1], {})
                model, tokenizer = (kind.from_pretrained("tuned") for kind in (transformers.AutoModelForCausalLM, transformers.AutoTokenizer))
            finally:
                os.chdir(before)
        asked = tokenizer.apply_chat_template([{"role": "user", "content": "kalo"}], add_generation_prompt=True, return_tensors="pt", return_dict=True)
        self.assertGreater(model.generate(**asked, max_new_tokens=4).size(1), asked["input_ids"].size(1))

    def test_prefixes_find_the_same_answers(self) -> None:
        """But for the line that the template puts after each answer."""
        with Folder() as folder:
            marked, plain = (motley.text(small_chats.dialogues(200), small_chats.tokenizer(template), folder.path(name), max_length=LENGTH, **QUIET)
                             for name, template in (("marked", small_chats.MARKED), ("plain", small_chats.PLAIN)))
            self.assertEqual((marked.manifest["answers_found_by"], plain.manifest["answers_found_by"]), ("generation", "prefix"))
            end = small_chats.tokenizer()("\n")["input_ids"][0]
            for k in range(len(marked)):
                one, other = marked[k], plain[k]
                self.assertTrue(numpy.array_equal(one["input_ids"], other["input_ids"]))
                differ = one["labels"] != other["labels"]
                self.assertTrue((other["labels"][differ] == end).all() and (one["labels"][differ] == -100).all())

    def test_files_and_datasets_give_the_same_rows(self) -> None:
        import datasets
        import pyarrow
        import pyarrow.parquet

        records = small_chats.dialogues(1100)
        with Folder() as folder:
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), folder.path("chat.parquet"), row_group_size=300)
            given = {"jsonl": write_lines(records, folder.path("chat.jsonl")), "parquet": folder.path("chat.parquet"),
                     "dataset": datasets.Dataset.from_list(records), "stream": datasets.Dataset.from_list(records).to_iterable_dataset()}
            made = {name: motley.text(source, small_chats.tokenizer(), folder.path(f"{name}.data"), max_length=LENGTH, packing=True, **QUIET)
                    for name, source in given.items()}
            for name, data in made.items():
                self.assertTrue(all(numpy.array_equal(one, other) for one, other in zip(data.arrays()[0].values(), made["jsonl"].arrays()[0].values())), name)
                self.assertEqual(data.counts, made["jsonl"].counts, name)
            with self.assertRaisesRegex(motley.MotleyError, "Pass one of its splits"):
                motley.text(datasets.DatasetDict(train=given["dataset"]), small_chats.tokenizer(), folder.path("splits"))

    def test_damaged_parquet_files(self) -> None:
        """Of 200 damaged files each is refused with its name, or has the rows that pyarrow reads in it."""
        import pyarrow
        import pyarrow.parquet

        tokenizer, records, refused = small_chats.tokenizer(), small_chats.dialogues(60), 0
        with Folder() as folder:
            path = folder.path("chat.parquet")
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), path, row_group_size=20, write_page_checksum=True)
            with open(path, "rb") as file:
                whole = file.read()
            right = motley.text(path, tokenizer, folder.path("right"), **QUIET)
            for seed in range(200):
                with open(path, "wb") as file:
                    file.write(damage(whole, random.Random(seed)))
                try:
                    data = motley.text(path, tokenizer, folder.path("data"), **QUIET)
                except motley.MotleyError as error:
                    self.assertIn("chat.parquet", str(error), seed)
                    refused += 1
                    continue
                same = data.manifest["sources"] == right.manifest["sources"]
                rows = pyarrow.parquet.read_table(path).to_pylist()
                self.assertTrue(same or data.counts["records"] == len(rows), seed)
                self.assertTrue(all(numpy.array_equal(one, other) for one, other in zip(data.arrays()[0].values(), right.arrays()[0].values()))
                                or rows != records, seed)
        print(f"{refused} of 200 damaged parquet files are refused", file=sys.stderr)
        self.assertGreater(refused, 150)


if __name__ == "__main__":
    unittest.main()
