"""Texts become rows with the tokens of the tokenizer, with targets for answers alone, and documents that are separate."""

from __future__ import annotations

import os
import unittest
from typing import Any, Dict, List
from unittest import mock

import numpy
import torch
import torch.nn as nn

from support import Folder, motley
from text_fakes import (ASSISTANT, BOS, EOS, NEWLINE, PAD, QUIET, USER, Decoder, Recurrent, Tokenizer, chats, rows_of,
                        write_lines)
from motley import losses
from motley.text import documents, packing, sources, tokenize, training_data

CROSS_ENTROPY = losses.parse(nn.CrossEntropyLoss())


def b(text: str) -> List[int]:
    return Tokenizer()(text)["input_ids"]


def answers(row: Dict[str, List[int]]) -> List[int]:
    return [target for target in row["labels"] if target != -100]


class Prepared(unittest.TestCase):
    def prepared(self, source: Any, tokenizer: Any = None, **options: Any) -> motley.Texts:
        with Folder() as folder:
            self.lines: List[str] = []
            return motley.text(source, tokenizer or Tokenizer(), folder.path("data"), **{"follow": self.lines.append, **options})

    def test_a_chat_is_trained_on_its_answers(self) -> None:
        chat = [{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}, {"role": "user", "content": "so"},
                              {"role": "assistant", "content": "no"}]}]
        ids = [BOS, USER, *b("hi"), NEWLINE, ASSISTANT, *b("yes"), EOS, NEWLINE, USER, *b("so"), NEWLINE, ASSISTANT, *b("no"), EOS, NEWLINE]
        marked = rows_of(self.prepared(chat))[0]
        self.assertEqual(marked["input_ids"], ids)
        self.assertEqual(answers(marked), [*b("yes"), EOS, *b("no"), EOS])
        self.assertTrue(all(target in (-100, following) for target, following in zip(marked["labels"], ids[1:] + [-100])))
        by_prefix = rows_of(self.prepared(chat, Tokenizer(marks=False)))[0]
        self.assertEqual((by_prefix["input_ids"], answers(by_prefix)), (ids, [*b("yes"), EOS, NEWLINE, *b("no"), EOS, NEWLINE]))
        last = rows_of(self.prepared(chat, train_on="completion"))[0]
        self.assertEqual((last["input_ids"], answers(last)), (ids, [*b("no"), EOS, NEWLINE]))
        self.assertEqual(rows_of(self.prepared(chat, train_on="all"))[0]["labels"], ids[1:] + [-100])
        self.assertIn("⟦yes<1>⟧", self.prepared(chat).shown(0, Tokenizer()))

    def test_pairs_are_trained_on_completions(self) -> None:
        texts = rows_of(self.prepared([{"prompt": "2+2=", "completion": "4"}]))[0]
        self.assertEqual((texts["input_ids"], answers(texts)), ([*b("2+2=4"), EOS], [*b("4"), EOS]))
        chat = {"prompt": [{"role": "user", "content": "hi"}], "completion": [{"role": "assistant", "content": "yes"}]}
        self.assertEqual(answers(rows_of(self.prepared([chat]))[0]), [*b("yes"), EOS, NEWLINE])
        alpaca = {"instruction": "add {input}", "input": "2 2", "output": "4"}
        as_chat = rows_of(self.prepared([alpaca]))[0]
        self.assertEqual(as_chat["input_ids"], [BOS, USER, *b("add {input}\n\n2 2"), NEWLINE, ASSISTANT, *b("4"), EOS, NEWLINE])
        without = rows_of(self.prepared([alpaca], Tokenizer(template=False)))[0]
        self.assertEqual(answers(without), [*b("4"), EOS])
        self.assertIn("### Instruction:\nadd {input}\n\n### Input:\n2 2\n\n### Response:\n4", Tokenizer().decode(without["input_ids"]))
        self.assertEqual(rows_of(self.prepared([{"text": "abc"}]))[0]["labels"], [*b("bc"), EOS, -100])

    def test_long_documents(self) -> None:
        chat = [{"messages": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "x" * n}]} for n in (3, 30)]
        data = self.prepared(chat, max_length=12)
        self.assertEqual((len(data), data.length, data.counts["truncated"], data.counts["truncated_tokens"]), (2, 12, 1, 25))
        self.assertTrue(any("1 document is longer than max_length=12 and truncated, by 25 tokens" in line for line in self.lines))
        split = rows_of(self.prepared(chat, max_length=12, overflow="split"))
        self.assertTrue(any("1 document is left out, or pieces of one are" in line for line in self.lines))
        whole = rows_of(self.prepared(chat))[1]["input_ids"]
        self.assertEqual([token for row in split[1:] for token in row["input_ids"]], whole[:36])  # a last piece of one token has no target
        self.assertEqual([self.prepared(chat, length=length).counts["truncated"] for length in (12, 40)], [1, 0])
        self.assertEqual([self.prepared(chat, length=length).length for length in (12, 40)], [12, 40])
        self.assertEqual(self.prepared(chat, max_length=12, overflow="drop").counts["too_long"], 1)
        late = [{"messages": [{"role": "user", "content": "u" * 30}, {"role": "assistant", "content": "x"}]}]
        self.assertEqual(self.prepared(chat + late, max_length=12).counts["without_answer"], 1)
        with self.assertRaisesRegex(motley.MotleyError, "no document is left to train on, of 1 records: 1 without answer.*max_length="):
            self.prepared(late, max_length=12)
        with Folder() as folder:
            with open(folder.path("a.txt"), "w", encoding="utf-8") as file:
                file.write("x" * 30)
            self.assertEqual([len(row["input_ids"]) for row in rows_of(self.prepared(folder.path("a.txt"), max_length=12))], [12, 12, 7])

    def test_packed_rows_have_the_same_documents(self) -> None:
        plain, packed = self.prepared(chats(200), max_length=64), self.prepared(chats(200), max_length=64, packing=True)
        self.assertLess(len(packed), 0.8 * len(plain))
        self.assertEqual(packed.length, 64)
        found = []
        for row in rows_of(packed):
            for number in range(1, max(row["document_ids"]) + 1):
                where = [k for k, document in enumerate(row["document_ids"]) if document == number]
                self.assertEqual([row["position_ids"][k] for k in where], list(range(len(where))))
                found.append(([row["input_ids"][k] for k in where], [row["labels"][k] for k in where]))
        self.assertEqual(sorted(found), sorted((row["input_ids"], row["labels"]) for row in rows_of(plain)))
        padded = packed[len(packed) - 1]
        self.assertTrue((padded["input_ids"][padded["document_ids"] == 0] == PAD).all() and (padded["labels"][padded["document_ids"] == 0] == -100).all())

    def test_packing_is_best_fit_decreasing(self) -> None:
        self.assertEqual(packing.packed([3, 9, 5, 2, 5, 1], 10), [[1, 5], [2, 4], [0, 3]])
        self.assertEqual(packing.packed([10, 10], 10), [[0], [1]])
        self.assertEqual(packing.packed([], 10), [])

    def test_processes_and_interrupts_do_not_change_the_result(self) -> None:
        with Folder() as folder, mock.patch.object(sources, "RECORDS", 10):
            path = write_lines(chats(95), folder.path("chat.jsonl"))
            first = motley.text(path, Tokenizer(), folder.path("one"), packing=True, max_length=64, **QUIET)
            others = {"two": motley.text(path, Tokenizer(), folder.path("two"), packing=True, max_length=64, processes=2, **QUIET)}
            broken = Tokenizer()
            broken.fails_at = 56
            with self.assertRaises(KeyboardInterrupt):
                motley.text(path, broken, folder.path("three"), packing=True, max_length=64, **QUIET)
            again = Tokenizer()
            others["three"] = motley.text(path, again, folder.path("three"), packing=True, max_length=64, **QUIET)
            self.assertEqual(again.calls, 45, "five chunks of ten were done")
            for name, other in others.items():
                self.assertEqual(other.manifest, first.manifest, name)
                for file in first.manifest["files"]:
                    with open(os.path.join(first.path, file + ".npy"), "rb") as one, open(os.path.join(other.path, file + ".npy"), "rb") as two:
                        self.assertEqual(one.read(), two.read(), (name, file))
                self.assertFalse(os.path.exists(folder.path(f"{name}/parts")))

    def test_a_second_call_returns_what_is_there(self) -> None:
        with Folder() as folder:
            path = write_lines(chats(20), folder.path("chat.jsonl"))
            lines: List[str] = []
            motley.text(path, Tokenizer(), folder.path("data"), **QUIET)
            again = Tokenizer()
            motley.text(path, again, folder.path("data"), follow=lines.append)
            self.assertEqual(again.calls, 0)
            self.assertIn("is up to date", lines[0])
            self.assertEqual(len(motley.text(path, Tokenizer(), folder.path("data"), max_length=8, **QUIET).manifest["sources"]), 1)
            write_lines(chats(21), path)
            self.assertEqual(motley.text(path, Tokenizer(), folder.path("data"), **QUIET).counts["documents"], 21)
            os.remove(folder.path("data/targets.npy"))
            self.assertEqual(len(motley.text(path, Tokenizer(), folder.path("data"), **QUIET)), 21)
            for other in (Tokenizer(marks=False),):
                self.assertEqual(motley.text(path, other, folder.path("data"), **QUIET).manifest["answers_found_by"], "prefix")

    def test_few_records_are_in_memory(self) -> None:
        tokenizer, lead = Tokenizer(), []

        class Rows:
            column_names = ["messages"]

            def __iter__(self) -> Any:
                for k, row in enumerate(chats(300)):
                    lead.append(k - tokenizer.calls)
                    yield row

        with mock.patch.object(sources, "RECORDS", 10), mock.patch.object(tokenize, "_EVERY_S", 0.0):
            counts = self.prepared(Rows(), tokenizer).counts
            self.assertEqual(counts["documents"] + counts["empty"], 300)
        self.assertLessEqual(max(lead[300:]), 10)  # the first pass computes the hash
        self.assertRegex(self.lines[0], r"text  10 records  [0-9]+ tokens  [0-9,]+ tokens/s")

    def test_no_document_changes_its_neighbours(self) -> None:
        data = self.prepared(chats(40), packing=True, max_length=64)
        torch.manual_seed(3)
        model = Decoder()
        given = training_data(data, None, CROSS_ENTROPY, None, None)
        call = given.forward(model)
        assert call is not None
        row = {name: tensor[:1] for name, tensor in given.example()[0].items()}
        count = int(row["document_ids"].max())
        self.assertGreater(count, 2)
        right = call(row)
        for number in range(1, count + 1):
            own = row["document_ids"] == number
            changed = call({**row, "input_ids": torch.where(own, (row["input_ids"] + 5) % 200, row["input_ids"])})
            self.assertTrue(torch.equal(changed[~own], right[~own]), number)
            self.assertFalse(torch.equal(changed[own], right[own]), number)
            ids = row["input_ids"][own][None]  # the document alone
            alone = model(input_ids=ids, attention_mask=torch.ones_like(ids))["logits"][0]
            self.assertLess(float((alone - right[own]).abs().max()), 1e-5)

    def test_models_that_do_not_separate_documents_are_refused(self) -> None:
        given = training_data(self.prepared(chats(40), packing=True, max_length=64), None, CROSS_ENTROPY, None, None)
        with self.assertRaisesRegex(motley.MotleyError, "a document changes the outputs of others.*packing=False"):
            given.forward(Recurrent())
        windowed = Decoder()
        windowed.config = mock.Mock(spec=["sliding_window"], sliding_window=32)
        with self.assertRaisesRegex(motley.ExportError, "attends to 32 tokens at most"):
            given.forward(windowed)
        windowed.config = mock.Mock(spec=["sliding_window", "layer_types"], sliding_window=32, layer_types=["full_attention"] * 2)
        self.assertIsNotNone(given.forward(windowed))
        windowed.config = mock.Mock(spec=["attention_chunk_size", "layer_types"], attention_chunk_size=32, layer_types=["chunked_attention", "full_attention"])
        with self.assertRaisesRegex(motley.ExportError, "attends to 32 tokens at most"):
            given.forward(windowed)
        windowed.config.layer_types = ["full_attention"] * 2
        self.assertIsNotNone(given.forward(windowed))
        class Wrapper(nn.Module):
            """As peft's: it names some arguments and passes the others on."""

            def __init__(self, base: nn.Module):
                super().__init__()
                self.base = base

            def get_base_model(self) -> nn.Module:
                return self.base

            def forward(self, input_ids: Any = None, attention_mask: Any = None, **others: Any) -> Any:
                return self.base(input_ids=input_ids, attention_mask=attention_mask, **others)

        self.assertIsNotNone(given.forward(Wrapper(Decoder())))
        with self.assertRaisesRegex(motley.ExportError, "Embedding takes no input_ids and no position_ids and no attention_mask"):
            documents.check_takes(nn.Embedding(3, 3), 8)

    def test_data_of_a_training(self) -> None:
        data = self.prepared(chats(30))
        given = training_data(data, data, CROSS_ENTROPY, None, None)
        inputs, targets = given.example()
        self.assertEqual({name: tensor.dtype for name, tensor in inputs.items()}, dict.fromkeys(("input_ids", "attention_mask"), torch.int64))
        self.assertEqual(targets.shape, (4, data.length))
        given.check({"input_ids": 264, "attention_mask": None}, 264, -100, True)
        with self.assertRaisesRegex(motley.MotleyError, r"inputs\['input_ids'\]"):
            given.check({"input_ids": 9, "attention_mask": None}, 264, -100, True)
        with self.assertRaisesRegex(motley.MotleyError, "the loss ignores the target 0"):
            training_data(data, None, losses.parse(nn.CrossEntropyLoss(ignore_index=0)), None, None)
        with self.assertRaisesRegex(motley.MotleyError, "Prepare it with the same packing= and length="):
            training_data(data, self.prepared(chats(5), max_length=8), CROSS_ENTROPY, None, None)
        self.assertEqual(training_data(data, self.prepared(chats(5), length=data.length), CROSS_ENTROPY, None, None).held_out[1].shape[1], data.length)
        with self.assertRaisesRegex(motley.MotleyError, "pad= does not apply"):
            training_data(data, None, CROSS_ENTROPY, None, {})
        with Folder() as folder:
            data = motley.text(chats(9), Tokenizer(), folder.path("data"), **QUIET)
            section = training_data(data, data, CROSS_ENTROPY, None, None).write(folder.path("set"))
            self.assertEqual(section, {"kind": "arrays", "path": folder.path("set")})
            self.assertEqual(sorted(os.listdir(folder.path("set"))), sorted(f"{part}{name}.npy" for part in ("", "eval_") for name in data.manifest["files"]))
            kept = numpy.load(folder.path("set/targets.npy"))
            motley.text(chats(9, seed=4), Tokenizer(), folder.path("data"), **QUIET)
            self.assertTrue(numpy.array_equal(numpy.load(folder.path("set/targets.npy")), kept), "links are not written through")


if __name__ == "__main__":
    unittest.main()
