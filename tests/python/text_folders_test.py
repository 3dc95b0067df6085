"""Folders as people have them, and JSON over several lines: what is data is read, what is left out is named, what is unclear is refused."""

from __future__ import annotations

import json
import os
import unittest
from typing import Any, List

from support import Folder, motley
from text_fakes import QUIET, Tokenizer, chats, rows_of, write_lines

GOOD = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}


def write(path: str, content: Any = b"{}") -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


class Folders(unittest.TestCase):
    def test_what_is_no_data_is_left_out_and_named(self) -> None:
        with Folder() as folder:
            for name in ("README.md", "LICENSE.txt", "dataset_info.json", ".gitattributes", ".cache/x.jsonl", "__MACOSX/y.jsonl", "in/._b.jsonl", "in/a.png"):
                write(folder.path("all/" + name))
            write(folder.path("all/in/c.jsonl"), json.dumps(GOOD))
            os.symlink(folder.path(""), folder.path("all/link"))
            lines: List[str] = []
            data = motley.text(folder.path("all"), Tokenizer(), folder.path("data"), follow=lines.append)
            self.assertEqual(data.counts["documents"], 1)
            self.assertEqual(lines[0], f"text  9 files or folders are left out of {folder.path('all')}: .cache, .gitattributes, LICENSE.txt, README.md, "
                                       "__MACOSX and 4 more")
            os.remove(folder.path("all/in/c.jsonl"))  # now the notes are the data
            write(folder.path("all/README.md"), "abc")
            lines.clear()
            self.assertEqual(motley.text(folder.path("all"), Tokenizer(), folder.path("data"), follow=lines.append).manifest["kind"], "text")
            self.assertNotIn("README", lines[0])

    def test_the_output_and_other_prepared_texts_are_not_read(self) -> None:
        with Folder() as folder:
            write(folder.path("all/a.jsonl"), json.dumps(GOOD))
            for _ in range(2):
                for name in ("one", "two"):
                    data = motley.text(folder.path("all"), Tokenizer(), folder.path(f"all/{name}"), **QUIET)
                    self.assertEqual([source["name"] for source in data.manifest["sources"]], [folder.path("all/a.jsonl")])
            with self.assertRaisesRegex(motley.MotleyError, "has other files, such as"):
                motley.text(folder.path("all"), Tokenizer(), folder.path("all"), **QUIET)

    def test_files_of_several_splits_are_refused(self) -> None:
        for names in (("train-00000-of-00001.jsonl", "test-00000-of-00001.jsonl"), ("train/a.jsonl", "validation/a.jsonl"), ("dev.jsonl", "train_v2.jsonl")):
            with self.subTest(names), Folder() as folder:
                for name in names:
                    write(folder.path("all/" + name), json.dumps(GOOD))
                with self.assertRaisesRegex(motley.MotleyError, "files of several splits.*train: .*Pass the paths of those to train on"):
                    motley.text(folder.path("all"), Tokenizer(), folder.path("data"), **QUIET)
                self.assertEqual(len(motley.text([folder.path("all/" + name) for name in names], Tokenizer(), folder.path("data"), **QUIET)), 2)
        with Folder() as folder:
            for name in ("latest.jsonl", "trainer.jsonl", "train-0.jsonl", "train-1.jsonl"):
                write(folder.path("all/" + name), json.dumps(GOOD))
            self.assertEqual(len(motley.text(folder.path("all"), Tokenizer(), folder.path("data"), **QUIET)), 4)

    def test_folders_that_are_refused(self) -> None:
        for name, message in (("b.jsonl.gz", "b.jsonl.gz is compressed"), ("data-00000-of-00001.arrow", "Pass datasets.load_from_disk"),
                              ("a.png", r"has no data file that ends in .jsonl.*, but a.png")):
            with self.subTest(name), Folder() as folder:
                write(folder.path("all/" + name))
                with self.assertRaisesRegex(motley.MotleyError, message):
                    motley.text(folder.path("all"), Tokenizer(), folder.path("data"), **QUIET)

    def test_sources_that_are_no_files(self) -> None:
        with Folder() as folder:
            os.mkfifo(folder.path("a.jsonl"))
            for source, message in ((folder.path("a.jsonl"), "a pipe or a device"), ("a text\nand more", "Pass texts as records"),
                                    ("word " * 99, "Pass texts as records"), ("a\0b.jsonl", "Pass texts as records")):
                with self.assertRaisesRegex(motley.MotleyError, message):
                    motley.text(source, Tokenizer(), folder.path("data"), **QUIET)
            for path in (None, "", 3):
                with self.assertRaisesRegex(motley.MotleyError, "path is .*Pass the folder to write"):
                    motley.text([GOOD], Tokenizer(), path, **QUIET)  # type: ignore[arg-type]


class Json(unittest.TestCase):
    def test_objects_over_several_lines(self) -> None:
        records = chats(3)
        with Folder() as folder:
            right = rows_of(motley.text(write_lines(records, folder.path("right.jsonl")), Tokenizer(), folder.path("data"), **QUIET))
            for text in ("\n".join(json.dumps(record, indent=2) for record in records), "\ufeff\r\n" + "".join(json.dumps(record, indent="\t") for record in records)):
                for name in ("a.json", "a.jsonl"):
                    write(folder.path(name), text)
                    self.assertEqual(rows_of(motley.text(folder.path(name), Tokenizer(), folder.path("data"), **QUIET)), right)

    def test_their_errors_have_a_line(self) -> None:
        good = json.dumps(GOOD, indent=1)
        count = good.count("\n") + 1
        for text, message in ((good + "\n" + good[:-2], f"a.json has JSON over several lines that is not valid: .* at line {2 * count - 1}"),
                              (good + '\n{"text": 3}', f"a.json:{count + 1}: 'text' is a number"),
                              (good + '\n{"text": NaN}', f"a.json has JSON over several lines that is not valid, at line {count + 1}: NaN"),
                              (good.encode() + b'\n{"text": "\xff"}', r"a.json: byte \d+ \(0xff\) is not UTF-8"),
                              (json.dumps({"data": [GOOD, GOOD]}, indent=1), "a.json:1: .*'data' is a list of 2 objects"),
                              ("{\n}", "a.json:1: it has no keys")):
            with self.subTest(text), Folder() as folder:
                write(folder.path("a.json"), text)
                with self.assertRaisesRegex(motley.MotleyError, message):
                    motley.text(folder.path("a.json"), Tokenizer(), folder.path("data"), **QUIET)

    def test_lines_end_only_where_a_file_has_line_feeds(self) -> None:
        record = {"text": "a\u2028b\u2029c\x85d\x0be"}
        with Folder() as folder:
            write(folder.path("a.jsonl"), json.dumps(record, ensure_ascii=False) + "\n")
            data = motley.text(folder.path("a.jsonl"), Tokenizer(), folder.path("data"), **QUIET)
            self.assertEqual(rows_of(data), rows_of(motley.text([record], Tokenizer(), folder.path("list"), **QUIET)))

    def test_other_encodings_are_refused(self) -> None:
        for name, content, message in (("a.jsonl", json.dumps(GOOD).encode("utf-16-le"), "is UTF-16 without a byte order mark.*UTF-16LE"),
                                       ("a.txt", "abc".encode("utf-16-be"), "UTF-16BE"), ("a.txt", "abc".encode("utf-32"), "is UTF-32. Convert it"), ("a.txt", "abc".encode("utf-32-le"), "character 1 is a zero"),
                                       ("a.txt", b"abc\0def", "character 3 is a zero"), ("a.txt", "ça".encode("latin-1"), "CP1252")):
            with self.subTest(content), Folder() as folder:
                write(folder.path(name), content)
                with self.assertRaisesRegex(motley.MotleyError, message):
                    motley.text(folder.path(name), Tokenizer(), folder.path("data"), **QUIET)


class Rows(unittest.TestCase):
    def test_rows_that_are_not_like_json(self) -> None:
        circular: Any = {"text": "a"}
        circular["self"] = circular
        for record in (circular, {1: 2, "text": "a"}):
            with Folder() as folder, self.assertRaisesRegex(motley.MotleyError, "a row is not like JSON"):
                motley.text([record], Tokenizer(), folder.path("data"), **QUIET)
        with Folder() as folder:  # what is not trained on may be anything, and has no address in its hash
            first = motley.text([{"text": "abc", "image": object()}], Tokenizer(), folder.path("data"), **QUIET)
            again = Tokenizer()
            self.assertEqual(motley.text([{"text": "abc", "image": object()}], again, folder.path("data"), **QUIET).manifest, first.manifest)
            self.assertEqual(again.calls, 0)

    def test_errors_of_a_dataset(self) -> None:
        class Rows:
            column_names = ["text"]

            def __iter__(self) -> Any:
                yield {"text": "abc"}
                raise ZeroDivisionError("in a function of the dataset")

        with Folder() as folder, self.assertRaisesRegex(motley.MotleyError, "the Rows cannot be read: ZeroDivisionError: in a function"):
            motley.text(Rows(), Tokenizer(), folder.path("data"), **QUIET)


if __name__ == "__main__":
    unittest.main()
