"""Damaged sources of each kind, and damaged files of a prepared folder: each is refused with its name, or the rows are those of its bytes.

MOTLEY_DAMAGED_FILES is the number of each kind; 200 take some minutes.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import unittest
from typing import Any, Callable, Dict, List
from unittest import mock

from support import Folder, motley
from text_errors_test import damage
from text_fakes import QUIET, Tokenizer, chats, rows_of, write_lines
from motley.text import sources

COUNT = int(os.environ.get("MOTLEY_DAMAGED_FILES", "30"))


def prepared(source: Any, folder: str, **options: Any) -> motley.Texts:
    return motley.text(source, Tokenizer(), folder, **{"max_length": 64, "packing": True, "overflow": "split", **QUIET, **options})


def contents(folder: str) -> Dict[str, bytes]:
    found = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            found[name] = file.read()
    return found


class Sources(unittest.TestCase):
    def each(self, name: str, content: str, records_of: Callable[[bytes], List[Any]]) -> None:
        refused = 0
        with Folder() as folder:
            for seed in range(COUNT):
                damaged = damage(content.encode(), random.Random(seed))
                with open(folder.path(name), "wb") as file:
                    file.write(damaged)
                try:
                    data = prepared(folder.path(name), folder.path("data"))
                except motley.MotleyError as error:
                    self.assertRegex(str(error), f"{name}|no document is left|several kinds", seed)
                    refused += 1
                    continue
                expected = prepared(records_of(damaged), folder.path("expected"))
                self.assertEqual(rows_of(data), rows_of(expected), seed)
        self.assertGreater(refused, COUNT // 4)

    def test_arrays(self) -> None:
        self.each("a.json", json.dumps(chats(8), indent=1), json.loads)

    def test_objects_over_several_lines(self) -> None:
        def objects(content: bytes) -> List[Any]:
            return json.loads(b"[" + content.replace(b"\n}\n{\n", b"\n},\n{\n") + b"]")

        self.each("a.json", "\n".join(json.dumps(record, indent=1) for record in chats(8)), objects)

    def test_sharegpt(self) -> None:
        records = [{"conversations": [{"from": message["role"], "value": message["content"]} for message in record["messages"]]} for record in chats(8)]
        self.each("a.jsonl", "\n".join(map(json.dumps, records)), lambda content: [json.loads(line) for line in content.split(b"\n") if line.strip()])

    def test_texts(self) -> None:
        self.each("a.txt", "abc ö kalo\nmi ner" * 3, lambda content: [{"text": content.decode("utf-8")}])


class Prepared(unittest.TestCase):
    """What an earlier call left is either as it was or written anew."""

    def test_manifests(self) -> None:
        with Folder() as folder:
            source, refused = write_lines(chats(8), folder.path("a.jsonl")), 0
            right = rows_of(prepared(source, folder.path("data")))
            manifest = folder.path("data/manifest.json")
            with open(manifest, "rb") as file:
                whole = file.read()
            for seed in range(COUNT):
                with open(manifest, "wb") as file:
                    file.write(damage(whole, random.Random(seed)))
                try:
                    data = prepared(source, folder.path("data"))
                except motley.MotleyError as error:
                    self.assertRegex(str(error), "manifest.json", seed)
                    refused += 1
                    os.remove(manifest)
                    continue
                self.assertEqual(rows_of(data), right, seed)
                data.summary(), data.shown(0, Tokenizer())
            self.assertGreater(refused, COUNT // 4)

    def test_arrays(self) -> None:
        with Folder() as folder:
            source = write_lines(chats(8), folder.path("a.jsonl"))
            data = prepared(source, folder.path("data"))
            right, whole = rows_of(data), contents(folder.path("data"))
            for seed in range(COUNT):
                chance = random.Random(seed)
                name = chance.choice(data.manifest["files"]) + ".npy"
                with open(folder.path(f"data/{name}"), "wb") as file:
                    file.write(damage(whole[name], chance))
                self.assertEqual(rows_of(prepared(source, folder.path("data"))), right, seed)

    def test_parts_of_an_interrupted_call(self) -> None:
        with Folder() as folder, mock.patch.object(sources, "RECORDS", 2):
            source = write_lines(chats(8), folder.path("a.jsonl"))
            right = rows_of(prepared(source, folder.path("right")))
            broken = Tokenizer()
            broken.fails_at = 7
            with self.assertRaises(KeyboardInterrupt):
                motley.text(source, broken, folder.path("data"), max_length=64, packing=True, overflow="split", **QUIET)
            whole = contents(folder.path("data/parts"))
            self.assertGreater(len(whole), 1)
            for seed in range(COUNT):
                shutil.rmtree(folder.path("data"))
                os.makedirs(folder.path("data/parts"))
                chance = random.Random(seed)
                hit = chance.choice(sorted(whole))
                for name, content in whole.items():
                    with open(folder.path(f"data/parts/{name}"), "wb") as file:
                        file.write(damage(content, chance) if name == hit else content)
                self.assertEqual(rows_of(prepared(source, folder.path("data"))), right, seed)


if __name__ == "__main__":
    unittest.main()
