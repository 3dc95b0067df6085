"""The usual forms of conversations, and the variables of chat templates: they become the same rows, or other ones where they mean something else."""

from __future__ import annotations

import datetime
import json
import unittest
from typing import Any, Dict, List
from unittest import mock

from support import Folder, motley
from text_fakes import ASSISTANT, BOS, EOS, NEWLINE, QUIET, USER, Tokenizer, rows_of
from motley.text import prepare

U, A = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}
LAST = [{"role": "user", "content": "so"}, {"role": "assistant", "content": "no"}]


def b(text: str) -> List[int]:
    return Tokenizer()(text)["input_ids"]


def prepared(records: Any, tokenizer: Any = None, **options: Any) -> motley.Texts:
    with Folder() as folder:
        return motley.text(records, tokenizer or Tokenizer(), folder.path("data"), **{**QUIET, **options})


def rows(records: Any, tokenizer: Any = None, **options: Any) -> List[Dict[str, List[int]]]:
    return rows_of(prepared(records, tokenizer, **options))


def answers(records: Any, tokenizer: Any = None, **options: Any) -> List[int]:
    return [target for target in rows(records, tokenizer, **options)[0]["labels"] if target != -100]


class Conversations(unittest.TestCase):
    def test_sharegpt(self) -> None:
        given = [{"from": "system", "value": "s"}, {"from": "human", "value": "hi"}, {"from": "gpt", "value": "yes"}]
        right = rows([{"messages": [{"role": "system", "content": "s"}, U, A]}])
        self.assertEqual(rows([{"id": 1, "conversations": given}]), right)
        self.assertEqual(rows([{"messages": given}]), right)
        self.assertEqual(rows([{"conversations": [U, A]}]), rows([{"messages": [U, A]}]))
        self.assertEqual(rows([{"system": "s", "conversations": given[1:]}]), right)

    def test_a_system_message_beside_the_others(self) -> None:
        system = {"role": "system", "content": "s"}
        self.assertEqual(rows([{"system": "s", "messages": [U, A]}]), rows([{"messages": [system, U, A]}]))
        self.assertEqual(rows([{"system": "", "messages": [U, A]}]), rows([{"messages": [U, A]}]))
        self.assertEqual(rows([{"system": "s", "prompt": [U], "completion": [A]}]), rows([{"prompt": [system, U], "completion": [A]}]))
        self.assertEqual(rows([{"system": "s", "instruction": "hi", "output": "yes"}]), rows([{"prompt": [system, U], "completion": [A]}]))
        with self.assertRaisesRegex(motley.MotleyError, "'system' is not read: the tokenizer has no chat template"):
            prepared([{"system": "s", "instruction": "hi", "output": "yes"}], Tokenizer(template=False))

    def test_contents_in_parts(self) -> None:
        parts = [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]
        record = [{"messages": [{"role": "user", "content": parts}, A]}]
        for tokenizer in (Tokenizer(), Tokenizer(marks=False)):
            self.assertEqual(rows(record, tokenizer), rows([{"messages": [U, A]}], tokenizer))
        for each in (record, [{"messages": [U, A]}]):
            self.assertEqual(rows(each, Tokenizer(parts_only=True)), rows([{"messages": [U, A]}]))

    def test_marked_messages_are_not_trained_on(self) -> None:
        for mark in ({"weight": 0}, {"train": False}):
            chat = [{"messages": [U, {**A, **mark}, *LAST]}]
            self.assertEqual(answers(chat), [*b("no"), EOS])
            self.assertEqual(answers(chat, Tokenizer(marks=False)), [*b("no"), EOS, NEWLINE])
        self.assertEqual(answers([{"messages": [U, {**A, "weight": 1}, *LAST]}]), [*b("yes"), EOS, *b("no"), EOS])
        self.assertEqual(answers([{"prompt": [U], "completion": [{**A, "weight": 0}, *LAST]}]), [*b("no"), EOS])
        self.assertEqual(prepared([{"messages": [U, {**A, "weight": 0}]}, {"messages": [U, A]}]).counts["without_answer"], 1)

    def test_pairs_with_several_turns(self) -> None:
        pair = [{"prompt": [U, A, U], "completion": [A, *LAST]}]
        whole = [*b("yes"), EOS, NEWLINE, USER, *b("so"), NEWLINE, ASSISTANT, *b("no"), EOS, NEWLINE]
        for tokenizer in (Tokenizer(), Tokenizer(marks=False)):
            for train_on in (None, "completion"):
                self.assertEqual(answers(pair, tokenizer, train_on=train_on), whole)
        self.assertEqual(answers(pair, train_on="assistant"), [*b("yes"), EOS, *b("no"), EOS])
        self.assertEqual(answers(pair, Tokenizer(marks=False), train_on="assistant"), [*b("yes"), EOS, NEWLINE, *b("no"), EOS, NEWLINE])

    def test_blank_answers(self) -> None:
        blank = {"messages": [U, {"role": "assistant", "content": " "}]}
        data = prepared([blank, {"messages": [U, A]}, {"messages": blank["messages"] + LAST}])
        self.assertEqual((data.counts["documents"], data.counts["empty"]), (2, 1))
        with self.assertRaisesRegex(motley.MotleyError, "no document is left to train on, of 1 records: 1 empty"):
            prepared([blank])

    def test_null_is_a_value_in_a_file_and_a_missing_key_in_a_table(self) -> None:
        call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": {"x": None, "y": 1}}}]}
        record = {"messages": [U, call]}
        with Folder() as folder:
            for name, text in (("a.jsonl", json.dumps(record)), ("a.json", json.dumps([record])), ("b.json", json.dumps(record, indent=1))):
                with open(folder.path(name), "w", encoding="utf-8") as file:
                    file.write(text)
                self.assertIn('{"x": null, "y": 1}', motley.text(folder.path(name), Tokenizer(), folder.path("data"), **QUIET).shown(0, Tokenizer()))
        self.assertIn('{"y": 1}', prepared([record]).shown(0, Tokenizer()))

    def test_arguments_of_tools(self) -> None:
        def chat(arguments: Any) -> Any:
            call = {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": arguments}}]}
            return [{"messages": [U, call, {"role": "tool", "content": "3"}, A]}]

        right = rows(chat({"x": "ö"}))
        self.assertEqual(rows(chat('{"x": "ö"}')), right)
        self.assertIn('{"x": "\\u00f6"}', Tokenizer().decode(right[0]["input_ids"]))
        with self.assertRaisesRegex(motley.MotleyError, "the arguments of 'f' are no valid JSON"):
            prepared(chat('{"x": '))


class Variables(unittest.TestCase):
    def test_variables_of_the_template(self) -> None:
        chat = {"messages": [U, A]}
        glad = rows([chat], chat_template_kwargs={"mood": "glad"})[0]["input_ids"]
        self.assertEqual(glad[:5], [BOS, *b("glad")])
        self.assertEqual(rows([{**chat, "chat_template_kwargs": {"mood": "sad"}}], chat_template_kwargs={"mood": "glad"})[0]["input_ids"][:4], [BOS, *b("sad")])
        with Folder() as folder:
            for mood in ("glad", "sad"):
                data = motley.text([chat], Tokenizer(), folder.path("data"), chat_template_kwargs={"mood": mood}, **QUIET)
                self.assertEqual(data[0]["input_ids"][1:1 + len(mood)].tolist(), b(mood))
        for given, message in (({"tools": []}, "has 'tools', which motley.text decides"), ({"a": {1}}, "is not like JSON"), ([1], "Pass a dictionary")):
            with self.assertRaisesRegex(motley.MotleyError, message):
                prepared([chat], chat_template_kwargs=given)

    def test_a_date_does_not_change_from_day_to_day(self) -> None:
        def written(data: motley.Texts) -> List[str]:
            return [Tokenizer().decode(row["input_ids"][1:11]) for row in rows_of(data)]

        chat = {"messages": [U, A]}
        lines: List[str] = []
        with Folder() as folder, mock.patch.object(prepare.datetime, "date", mock.Mock(wraps=datetime.date)) as clock:
            path = folder.path("data")
            clock.today.return_value = datetime.date(2026, 3, 1)
            self.assertEqual(written(motley.text([chat], Tokenizer(dated=True), path, follow=lines.append)), ["2026-03-01"])
            self.assertIn("writes a date, here 2026-03-01 in all records", lines[-1])
            clock.today.return_value = datetime.date(2026, 3, 2)
            again = Tokenizer(dated=True)
            motley.text([chat], again, path, **QUIET)
            self.assertEqual(again.calls, 0, "up to date")
            self.assertEqual(written(motley.text([chat] * 2, Tokenizer(dated=True), path, **QUIET)), ["2026-03-01"] * 2)
            self.assertEqual(written(motley.text([chat], Tokenizer(dated=True), path, date="2020-02-29", **QUIET)), ["2020-02-29"])
            broken = Tokenizer(dated=True)
            broken.fails_at = 2
            with self.assertRaises(KeyboardInterrupt):
                motley.text([chat] * 3, broken, folder.path("other"), **QUIET)
            clock.today.return_value = datetime.date(2026, 3, 3)
            self.assertEqual(written(motley.text([chat] * 3, Tokenizer(dated=True), folder.path("other"), **QUIET)), ["2026-03-02"] * 3)
        with self.assertRaisesRegex(motley.MotleyError, "date= has no effect"):
            prepared([chat], date="2020-02-29")
        computed = Tokenizer(dated=True)
        computed.chat_template = "strftime_now(form)"
        with self.assertRaisesRegex(motley.MotleyError, "a format that it computes"):
            prepared([chat], computed)
        with self.assertRaisesRegex(motley.MotleyError, "date is 'today'"):
            prepared([chat], Tokenizer(dated=True), date="today")


if __name__ == "__main__":
    unittest.main()
