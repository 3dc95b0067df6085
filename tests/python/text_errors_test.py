"""Errors in records, files and arguments are found before any training, with their places, and nothing is taken silently."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import unittest
from typing import Any, Dict, List, Tuple

from support import Folder, motley
from text_fakes import Tokenizer, chats
from text_fakes import QUIET, rows_of, write_lines

GOOD = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}

BAD: List[Tuple[bytes, str]] = [
    (b'{"messages": [', r"no valid JSON: Expecting value at column \d+"),
    (b'{"a": 1} {"b": 2}', "no valid JSON: Extra data"),
    (b'{"text": "\xff"}', r"byte 10 \(0xff\) is not UTF-8"),
    (b'{"text": "a", "text": "b"}', "the key 'text' occurs twice"),
    (b'{"text": NaN}', "NaN is not JSON"),
    (b'{"text": "\\ud800"}', "'text' has half of a surrogate pair"),
    (b"[" * 100000, "nested too deeply"),
    (b'"text"', "a text instead of an object"),
    (b"{}", "it has no keys, and none of 'messages'"),
    (b'{"conversations": [{"from": "observation", "value": "a"}]}', r"conversations\[0\]\['from'\] is .observation., and none of human"),
    (b'{"messages": [], "system": 3}', "'system' is a number instead of a text"),
    (b'{"messages": [{"role": "system", "content": "a"}], "system": "b"}', "both 'system' and a first message of the role 'system'"),
    (b'{"messages": [{"role": "assistant", "content": "a", "weight": 0.5}]}', r"messages\[0\]\['weight'\] is 0.5"),
    (b'{"messages": [{"role": "assistant", "content": "a", "tool_calls": 3}]}', r"messages\[0\]\['tool_calls'\] is a number instead of a list"),
    (b'{"messages": [{"role": "assistant", "function_call": {"name": "f"}}]}', "the older form of 'tool_calls'"),
    (b'{"messages": [], "functions": [{}]}', "'functions' is not read: they are the older form of 'tools'"),
    (b'{"messages": [], "chat_template_kwargs": 3}', "'chat_template_kwargs' is a number instead of an object"),
    (b'{"prompt": "a", "chosen": "b", "rejected": "c"}', "rename 'chosen' to 'completion' and remove 'rejected'"),
    (b'{"chosen": [], "rejected": []}', "rename 'chosen' to 'messages'"),
    (b'{"prompt": "a", "completion": "b", "label": false}', "'label' says whether the completion is wanted"),
    (b'{"instruction": "a", "output": "b", "history": [["c", "d"]]}', "'history' is not read"),
    (b'{"question": "a", "answer": "b"}', "Rename 'question' to 'prompt' and 'answer' to 'completion'"),
    (b'{"data": [{"text": "a"}, {"text": "b"}]}', "'data' is a list of 2 objects; if these are the records"),
    (b'{"prompt": "a"}', "'completion' is missing"),
    (b'{"instruction": "a", "output": null}', "'output' is null"),
    (b'{"text": 3}', "'text' is a number instead of a text"),
    (b'{"messages": "a"}', "'messages' is a text instead of a list"),
    (b'{"messages": [{"content": "a"}]}', r"messages\[0\] has no 'role'"),
    (b'{"messages": [{"role": "user"}]}', r"messages\[0\]\['content'\] is missing"),
    (b'{"messages": [{"role": "user", "content": [{"type": "image"}]}]}', "a part that is not text"),
    (b'{"messages": [{"role": "user", "content": "a"}]}', "the conversation has no message of the role 'assistant'"),
    (b'{"messages": [{"role": "judge", "content": "a"}, {"role": "assistant", "content": "b"}]}', "the chat template raises ValueError: .* judge"),
    (b'{"messages": [], "tools": "["}', "'tools' is no valid JSON"),
]

FILES: List[Tuple[str, bytes, str]] = [
    ("a.csv", b"text\nabc\n", 'is a table. Pass datasets.load_dataset\\("csv"'),
    ("a.yaml", b"text: abc\n", "ends in none of .jsonl"),
    ("a.jsonl", gzip.compress(b"{}"), "is compressed. Unpack it with `gunzip"),
    ("a.jsonl", '{"text": "a"}'.encode("utf-16"), "is UTF-16"),
    ("a.jsonl", b"PAR1....PAR1", "is a parquet file"),
    ("a.jsonl", b"", "no document is left to train on, of 0 records"),
    ("a.jsonl", b'{"text": ""}\n\n{"text": " "}\n', "of 2 records: 2 empty, 1 blank"),
    ("a.json", b'[{"text": "a"},', "begins with . and is no valid JSON array"),
    ("a.txt", b"abc\xffd", r"a.txt: byte 3 \(0xff\) is not UTF-8"),
    ("a.jsonl", b'{"text": "abc"}\n{"prompt": "a", "completion": "b"}\n', r"several kinds: texts .*a.jsonl:1\), pairs of prompt and completion .*a.jsonl:2"),
]


class Errors(unittest.TestCase):
    def refused(self, source: Any, message: str, tokenizer: Any = None, **options: Any) -> None:
        with Folder() as folder, self.assertRaisesRegex(motley.MotleyError, "(?s)" + message):
            motley.text(source, tokenizer or Tokenizer(), folder.path("data"), **{**QUIET, **options})

    def test_each_bad_line_is_listed(self) -> None:
        for bad in (BAD[:20], BAD[20:]):
            with self.subTest(bad[0]), Folder() as folder:
                path = folder.path("chat.jsonl")
                with open(path, "wb") as file:
                    for line, _ in bad:
                        file.write(json.dumps(GOOD).encode() + b"\n" + line + b"\n")
                with self.assertRaises(motley.MotleyError) as raised:
                    motley.text(path, Tokenizer(), folder.path("data"), **QUIET)
                lines = str(raised.exception).splitlines()
                self.assertEqual(lines[0], f"{len(bad)} records have errors:")
                for k, (found, (_, message)) in enumerate(zip(lines[1:], bad)):
                    self.assertRegex(found, f"^  {path}:{2 * k + 2}: .*{message}")
                self.assertIn("skip_errors=True", lines[-1])
                self.assertFalse(os.path.exists(folder.path("data/manifest.json")))
                shown: List[str] = []
                data = motley.text(path, Tokenizer(), folder.path("data"), skip_errors=True, follow=shown.append)
                self.assertEqual((data.counts["documents"], data.counts["errors"]), (len(bad), len(bad)))
                self.assertTrue(any(f"{len(bad)} records with errors are left out; the first: {path}:2" in line for line in shown))

    def test_the_list_of_errors_is_bounded(self) -> None:
        with Folder() as folder:
            path = write_lines([{}] * 5000, folder.path("chat.jsonl"))
            with self.assertRaises(motley.MotleyError) as raised:
                motley.text(path, Tokenizer(), folder.path("data"), **QUIET)
            self.assertIn("5,000 records have errors", str(raised.exception))
            self.assertIn("and 4,980 more", str(raised.exception))
            self.assertEqual(str(raised.exception).count("chat.jsonl:"), 20)

    def test_files_that_are_refused(self) -> None:
        for name, content, message in FILES:
            with self.subTest(content), Folder() as folder:
                with open(folder.path(name), "wb") as file:
                    file.write(content)
                self.refused(folder.path(name), message)

    def test_files_that_break_off_are_refused_with_skip_errors_too(self) -> None:
        with Folder() as folder:
            write_lines([GOOD], folder.path("a.jsonl"))
            with open(folder.path("b.jsonl"), "wb") as file:
                file.write(gzip.compress(json.dumps(GOOD).encode()))
            self.refused([folder.path("a.jsonl"), folder.path("b.jsonl")], "b.jsonl.* is compressed", skip_errors=True)

    def test_tokenizers_that_cannot_be_told_apart(self) -> None:
        class Unknown:
            eos_token_id = 1

            def __call__(self, texts: Any, **_: Any) -> Any:
                return {"input_ids": [[1, 2]] * len(texts)}

        self.refused([{"text": "a"}], "has neither backend_tokenizer nor get_vocab", Unknown(), train_on="all")

    def test_files_that_are_read(self) -> None:
        for name, content in (("a.jsonl", b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\r\n\r\n"), ("a.json", json.dumps([GOOD], indent=2).encode()),
                              ("a.ndjson", json.dumps({**GOOD, "text": "other", "prompt": None}).encode())):
            with self.subTest(name), Folder() as folder:
                os.mkdir(folder.path("in"))
                with open(folder.path(f"in/{name}"), "wb") as file:
                    file.write(content)
                for source in (folder.path(f"in/{name}"), [folder.path(f"in/{name}")], folder.path("in")):
                    data = motley.text(source, Tokenizer(), folder.path("data"), **QUIET)
                    self.assertEqual(rows_of(data), rows_of(motley.text([GOOD], Tokenizer(), folder.path("list"), **QUIET)))

    def test_arguments(self) -> None:
        self.refused("/nowhere.jsonl", "/nowhere.jsonl does not exist")
        self.refused({"train": [GOOD]}, "a dict with the keys 'train'. Pass one of its splits")
        self.refused(3, "the source is a int")
        self.refused([], "an empty list")
        self.refused([GOOD, "a"], "neither paths nor records")
        self.refused([GOOD], "max_length is 1", max_length=1)
        self.refused([GOOD], "max_length is None", max_length=None)
        self.refused([GOOD], "overflow is 'cut'", overflow="cut")
        self.refused([GOOD], "train_on is 'answers'", train_on="answers")
        self.refused([GOOD], "length is 1", length=1)
        self.refused([GOOD], "the tokenizer has no chat template", Tokenizer(template=False))
        self.refused([{"text": "abc"}], "these are texts", train_on="assistant")
        with self.assertRaisesRegex(motley.MotleyError, "the tokenizer is a str"):
            motley.text([GOOD], "llama", "/nowhere/data")
        for pad in (-1, 1 << 31, True):
            self.refused([GOOD], "the id of the padding is", pad_id=pad)
        unpadded = Tokenizer()
        unpadded.pad_token_id = unpadded.eos_token_id = None  # type: ignore[assignment]
        self.refused([GOOD], "the id of the padding is None.*Pass pad_id=", unpadded)
        with Folder() as folder:
            os.mkdir(folder.path("data"))
            write_lines([GOOD], folder.path("data/mine.jsonl"))
            with self.assertRaisesRegex(motley.MotleyError, "has other files, such as mine.jsonl"):
                motley.text([GOOD], Tokenizer(), folder.path("data"))

    def test_a_template_that_changes_earlier_messages_is_refused(self) -> None:
        two = {"messages": GOOD["messages"] * 2}
        self.refused([GOOD, two], "1 record has an error:\n  row 1 of the list: the chat template renders the first 2 messages alone in another way",
                     Tokenizer(marks=False, forgetful=True))
        first = {"messages": GOOD["messages"][1:]}
        self.refused([first], "the first message is the assistant's", Tokenizer(marks=False))

    def test_damaged_files(self) -> None:
        """Of 200 damaged files each is refused with a place, or has exactly the records that the damaged bytes have."""
        records, refused = chats(12), 0
        whole = b"".join(json.dumps(record).encode() + b"\n" for record in records)
        for seed in range(200):
            damaged = damage(whole, random.Random(seed))
            with Folder() as folder:
                path = folder.path("chat.jsonl")
                with open(path, "wb") as file:
                    file.write(damaged)
                try:
                    data = motley.text(path, Tokenizer(), folder.path("data"), **QUIET)
                except motley.MotleyError as error:
                    self.assertRegex(str(error), "chat.jsonl|no document is left|several kinds", seed)
                    refused += 1
                    continue
                lines = [line for line in damaged.split(b"\n") if line.strip()]
                self.assertEqual(data.counts["records"], len(lines), seed)
                self.assertEqual(data.counts["documents"] + data.counts["without_answer"] + data.counts["empty"], len(lines), seed)
                self.assertEqual([row["input_ids"] for row in rows_of(data)], [expected(json.loads(line)) for line in lines], seed)
                self.assertEqual(data.manifest["sources"][0]["sha256"], hashlib.sha256(damaged).hexdigest())
        self.assertGreater(refused, 100)


def expected(record: Dict[str, Any]) -> List[int]:
    return Tokenizer().apply_chat_template(record["messages"], tokenize=True, return_dict=True)["input_ids"]


def damage(content: bytes, chance: random.Random) -> bytes:
    """One of: cut off, bits flipped, a part removed, a part repeated, random bytes inserted, zeros."""
    made = bytearray(content)
    place = chance.randrange(len(made))
    size = chance.randint(1, 40)
    kind = chance.randrange(6)
    if kind == 0:
        del made[place:]
    elif kind == 1:
        for _ in range(chance.randint(1, 8)):
            made[chance.randrange(len(made))] ^= 1 << chance.randrange(8)
    elif kind == 2:
        del made[place:place + size]
    elif kind == 3:
        made[place:place] = made[place:place + size]
    elif kind == 4:
        made[place:place] = bytes(chance.randrange(256) for _ in range(size))
    else:
        made[place:place + size] = bytes(len(made[place:place + size]))
    return bytes(made)


if __name__ == "__main__":
    unittest.main()
