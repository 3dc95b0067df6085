"""The examples that need only PyTorch run and print what their documentation states."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import stat
import subprocess
import sys
import unittest
from typing import List

import training_test
from support import Folder

REPOSITORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
EXAMPLES = os.path.join(REPOSITORY, "examples")


def lines_of(path: str) -> List[str]:
    with open(path, encoding="utf-8") as file:
        return [line for line in file if line.strip()]


class Digits(unittest.TestCase):
    def test_ten_lines_take_a_script_to_a_cluster(self) -> None:
        before, after = (lines_of(os.path.join(EXAMPLES, "digits", name)) for name in ("digits_torch.py", "digits_motley.py"))
        written = [line for line in difflib.unified_diff(before, after, n=0) if line.startswith("+") and not line.startswith("+++")]
        self.assertTrue(0 < len(written) <= 10, written)

    def test_the_changed_script_runs_up_to_the_program_and_back(self) -> None:
        with Folder() as folder:
            script = shutil.copytree(os.path.join(EXAMPLES, "digits"), folder.path("digits"))
            program = folder.path("motley")
            with open(program, "w") as file:
                file.write(training_test.PROGRAM)
            os.chmod(program, os.stat(program).st_mode | stat.S_IXUSR)
            environment = {**os.environ, "PATH": folder.path("") + os.pathsep + os.environ["PATH"],
                           "PYTHONPATH": os.path.join(REPOSITORY, "python")}
            done = subprocess.run([sys.executable, "digits_motley.py"], cwd=script, env=environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertRegex(done.stdout, r'got \["launch", "--cluster", "cluster.toml"\]')
            self.assertRegex(done.stdout, r"accuracy on held-out digits: [0-9.]+%")


class Zoo(unittest.TestCase):
    def test_each_configuration_names_a_script_that_writes_its_package(self) -> None:
        folder = os.path.join(EXAMPLES, "zoo")
        table = "".join(lines_of(os.path.join(EXAMPLES, "README.md")))
        configurations = sorted(name for name in os.listdir(folder) if name.endswith(".toml"))
        self.assertGreaterEqual(len(configurations), 8)
        for name in configurations:
            with self.subTest(name):
                text = "".join(lines_of(os.path.join(folder, name)))
                command = re.search(r"python3 (\w+\.py) (\w+) && motley train (\S+)", text)
                assert command is not None
                self.assertEqual((command[2] + ".toml", command[3]), (name, name))
                self.assertIn(f'path = "{command[2]}.motley"', text)
                self.assertIn(f'"{command[2]}"', "".join(lines_of(os.path.join(folder, command[1]))))
                self.assertIn(f"`{name}` | `{command[1]}`", table)


if __name__ == "__main__":
    unittest.main()
