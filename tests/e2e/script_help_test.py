"""Every script of scripts/ and bench/ explains itself with --help, and does nothing else."""
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def scripts():
    for path in sorted([*ROOT.glob("scripts/*"), *ROOT.glob("bench/*")]):
        if path.is_file() and os.access(path, os.X_OK) and path.read_bytes().startswith(b"#!"):
            yield path


class ScriptHelp(unittest.TestCase):
    def test_every_script_explains_itself(self):
        found = list(scripts())
        self.assertGreater(len(found), 40)
        for path in found:
            command = [sys.executable, path] if b"python" in path.read_bytes().split(b"\n")[0] else [path]
            with self.subTest(script=path.name):
                done = subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=120, cwd="/", check=False,
                                      stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(path.name, done.stdout)


if __name__ == "__main__":
    unittest.main()
