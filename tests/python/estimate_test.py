"""`motley.estimate` with a substitute for `motley plan`, and a model instead of a configuration."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pathlib
import runpy
import stat
import sys
import unittest
import unittest.mock
import warnings
from typing import Iterator

import torch
import torch.nn as nn

from folder_test import IDS, Positions, empty
from support import Folder, motley

from motley import folder_model, weights

PROGRAM = """#!{python}
import json, os, shutil, sys
config = sys.argv[sys.argv.index("plan") + 1]
work = {work!r}
shutil.copy(config, work)
if {arguments!r}:
    sys.exit("wrong " + config)
package = os.path.join(os.path.dirname(config), "model.motley")
if not os.path.exists(package):
    sys.exit(f"not a package of a model, {{package}}")
shutil.copy(os.path.join(package, "package.json"), work)
held = os.stat(os.path.join(package, "weights.safetensors"))
print(f"size {{held.st_size}}, {{[line.strip() for line in open(config)]}}")
with open(sys.argv[sys.argv.index("--output") + 1], "w") as out:
    json.dump({{"arguments": sys.argv[3:5]}}, out)
sys.exit({status})
"""


@contextlib.contextmanager
def program(status: int, invalid: bool = False) -> Iterator[str]:
    """A folder with the program `motley`, on PATH, and copies of its arguments' files. `invalid`: it refuses its arguments."""
    with Folder() as folder:
        path = folder.path("motley")
        pathlib.Path(path).write_text(PROGRAM.format(python=sys.executable, work=folder.path(""), status=status, arguments=invalid))
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        opened = folder_model.Opened(empty(), nn.CrossEntropyLoss(), (IDS, IDS), ("a notice",))
        with unittest.mock.patch.object(folder_model, "open_folder", lambda *_, **__: opened), \
                unittest.mock.patch.dict(os.environ, {"PATH": folder.path("") + os.pathsep + os.environ["PATH"]}):
            yield folder.path("")


class Estimate(unittest.TestCase):
    def test_plans_the_package_that_an_export_would_write(self) -> None:
        with program(0) as given, Folder() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = motley.estimate("Net-1B", "c.toml", tokens=IDS.size(1), global_batch=64, parallel__pins=["never x"])
            self.assertTrue(found.fits)
            self.assertEqual(found.notices, ("a notice",))
            self.assertEqual(found.plan, {"arguments": ["--cluster", "c.toml"]})
            config = pathlib.Path(given, "estimate.toml").read_text()
            self.assertIn('kind = "package"', config)
            self.assertIn("global_batch = 64", config)
            self.assertIn('pins = ["never x"]', config)
            motley.export(Positions(), nn.CrossEntropyLoss(), (IDS, IDS), folder.path("x"), name="Net-1B")
            planned, exported = (json.loads(pathlib.Path(path, "package.json").read_text()) for path in (given, folder.path("x")))
            self.assertIn(f"size {exported['weights']['bytes']},", found.text)
            for package in (planned, exported):
                package.pop("made_by")
                package["weights"].pop("sha256")
            self.assertEqual(planned, exported)

    def test_a_model_that_does_not_fit_is_a_result_and_other_statuses_are_errors(self) -> None:
        with program(6):
            self.assertFalse(motley.estimate("x", "c.toml", tokens=9).fits)
        with program(3), self.assertRaisesRegex(motley.MotleyError, "ended with status 3"):
            motley.estimate("x", "c.toml", tokens=9)

    def test_arguments_are_checked_before_the_model_is_traced(self) -> None:
        with program(0, invalid=True), unittest.mock.patch.object(folder_model, "open_folder", lambda *_, **__: self.fail("traced")):
            with self.assertRaisesRegex(motley.MotleyError, "invalid settings, cluster or links:\nwrong settings"):
                motley.estimate("x", "c.toml", tokens=9)
            for key in ("train__x__y", "train__"):
                with self.assertRaisesRegex(motley.MotleyError, f"the setting {key} is not a section and a name"):
                    motley.estimate("x", "c.toml", tokens=9, **{key: 1})
            with self.assertRaisesRegex(motley.MotleyError, "model.path is set"):
                motley.estimate("x", "c.toml", tokens=9, model__path="y")

    def test_keys_of_several_sections_are_refused(self) -> None:
        out = io.StringIO()
        arguments = ["motley", "estimate", "x", "--cluster", "c.toml", "--tokens", "9", "--set", "train.x.y=1"]
        with unittest.mock.patch.object(sys, "argv", arguments), contextlib.redirect_stderr(out), self.assertRaises(SystemExit) as end:
            runpy.run_module("motley", run_name="__main__")
        self.assertEqual(end.exception.code, 1)
        self.assertIn("--set train.x.y=1: a key is a section and a name", out.getvalue())

    def test_the_command_prints_the_plan(self) -> None:
        for status, expected in ((0, 0), (6, 1), (3, 1)):
            out = io.StringIO()
            arguments = ["motley", "estimate", "x", "--cluster", "c.toml", "--tokens", "9", "--set", "train.precision=bf16"]
            with program(status), unittest.mock.patch.object(sys, "argv", arguments), contextlib.redirect_stdout(out), \
                    contextlib.redirect_stderr(out), self.assertRaises(SystemExit) as end:
                runpy.run_module("motley", run_name="__main__")
            self.assertEqual(end.exception.code, expected)
            self.assertIn("""'precision = "bf16"'""", out.getvalue())

    def test_weights_of_the_outline_are_a_sparse_file(self) -> None:
        with Folder() as folder:
            path = folder.path("w.safetensors")
            weights.write_zeros(path, {"a": torch.empty(1 << 24, device="meta")})
            held = os.stat(path)
            self.assertGreater(held.st_size, 1 << 26)
            self.assertLess(held.st_blocks * 512, 1 << 20)


if __name__ == "__main__":
    unittest.main()
