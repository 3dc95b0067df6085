#!/usr/bin/env python3
"""scripts/gpu-check, rehearsed on the far device, and what it says where there is nothing to try.

usage: gpu_check_test.py BUILD FAR_LIBRARY
"""
import argparse
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench"))
from gpu_check.context import Context, NotRun  # noqa: E402
from gpu_check.report import Report            # noqa: E402

PEER = "/usr/bin/python3"  # whose PyTorch is the rival
BUILD, LIBRARY = map(pathlib.Path, (sys.argv.pop(1), sys.argv.pop(1)))


def gpu_check(*words, **environment):
    return subprocess.run([sys.executable, ROOT / "scripts/gpu-check", *words], text=True,
                          capture_output=True, env={**os.environ, **environment})


class GpuCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.report = pathlib.Path(folder.name) / "report.md"

    def rehearse(self, *words, build=BUILD, **environment):
        done = gpu_check("--device", "privateuseone:0", "--build", build, "--short", "--report",
                         self.report, *words, MOTLEY_DEVICE_LIBRARY=str(LIBRARY), **environment)
        return done, self.report.read_text() if self.report.exists() else ""

    def rows(self, report):
        """{check: (state, figures)}"""
        cells = [line.strip("|").split(" | ") for line in report.splitlines()
                 if line.startswith("|") and line.count(" | ") == 3]
        return {check.strip(): (state, figures) for check, state, figures, _ in cells}

    def test_rehearsal_tries_everything(self):
        if subprocess.run([PEER, "-c", "import torch"], capture_output=True).returncode != 0:
            self.skipTest(f"{PEER} cannot import torch; apt-get install python3-torch")
        done, report = self.rehearse("--python", PEER)
        self.assertEqual(done.returncode, 0, done.stderr + report)
        rows = self.rows(report)
        for check in ("tests on the device: stage_trainer_test",
                      "plan independence: one process and two on the device",
                      "plan independence: losses beside the processor's",
                      "speed: a tiny GPT, fp32", "mixed plan: processor and device"):
            self.assertEqual(rows[check][0], "ok", f"{check}\n{report}")
        self.assertEqual(rows["compute-sanitizer"][0], "not run")
        self.assertRegex(rows["speed: a tiny GPT, fp32"][1], r"tokens/s, eager PyTorch [\d,]+: ")
        self.assertRegex(rows["mixed plan: processor and device"][1], r"predicted [\d.]+ ms")
        for private in (socket.gethostname(), str(ROOT), tempfile.gettempdir() + "/motley"):
            self.assertNotIn(private, report)

    def test_without_a_build_that_alone_is_reported(self):
        done, report = self.rehearse(build=self.report.parent)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.rows(report), {"build": ("FAILED", "there is no bin/motley in BUILD")})

    def test_what_there_is_no_time_for_is_left_out(self):
        done, report = self.rehearse("--minutes", "0.00001")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.rows(report)["mixed plan: processor and device"],
                         ("not run", "the time was over (--minutes)"))

    def test_a_device_that_is_not_there_is_said_at_once(self):
        done = gpu_check("--device", "privateuseone:0", "--report", self.report,
                         MOTLEY_DEVICE_LIBRARY="/no/such/library.so")
        self.assertEqual(done.returncode, 3)
        for words in ("there is no device 'privateuseone:0'", "cause: ", "try: "):
            self.assertIn(words, done.stderr)
        self.assertFalse(self.report.exists())
        done = gpu_check("--report", self.report, PATH="/no/programs")
        self.assertEqual(done.returncode, 3)
        self.assertIn("there is no nvidia-smi", done.stderr)

    def test_wrong_arguments_are_status_2(self):
        for words in (["--minutes", "0"], ["--sideways"], ["--report", "/no/such/folder/a.md"]):
            self.assertEqual(gpu_check(*words).returncode, 2, words)


class Attempts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        given = argparse.Namespace(device="cpu", short=True, minutes=1, build=BUILD)
        self.context = Context(given, ROOT, pathlib.Path(folder.name))

    def attempt(self, run, limit_s=30):
        outcome = self.context.attempt("a check", run, limit_s)
        return outcome.state, outcome.figures, outcome.output

    def test_a_program_that_fails_is_told_with_what_it_said(self):
        state, figures, output = self.attempt(
            lambda: self.context.run("sh", "-c", "echo out; echo why >&2; exit 5"))
        self.assertEqual((state, figures), ("FAILED", "sh ended with status 5"))
        self.assertEqual(output, "out\nwhy\n")
        state, figures, _ = self.attempt(lambda: self.context.run("sh", "-c", "kill -SEGV $$"))
        self.assertEqual((state, figures), ("FAILED", "sh was ended by SIGSEGV"))

    def test_a_program_that_does_not_end_is_ended_with_its_children(self):
        mark = self.context.folder / "mark"
        start = time.monotonic()
        state, figures, _ = self.attempt(
            lambda: self.context.run("sh", "-c", f"(sleep 3; touch {mark}) & sleep 60"), limit_s=1)
        self.assertEqual((state, figures), ("FAILED", "sh was not over in time"))
        self.assertLess(time.monotonic() - start, 20)
        time.sleep(3)
        self.assertFalse(mark.exists())

    def test_what_cannot_be_tried_and_mistakes_stay_in_their_check(self):
        def not_run():
            raise NotRun("nothing here")

        self.assertEqual(self.attempt(not_run)[:2], ("not run", "nothing here"))
        self.assertEqual(self.attempt(lambda: 1 // 0)[0], "FAILED")
        self.assertEqual(self.attempt(lambda: self.context.run("/no/such/program"))[0], "FAILED")
        self.assertEqual(self.attempt(lambda: "12 ms")[:2], ("ok", "12 ms"))


class Reports(unittest.TestCase):
    def test_names_and_folders_are_taken_out(self):
        report = Report({"/home/anna": "HOME", "anna": "USER", "box": "HOST"})
        self.assertEqual(report.public("/home/anna/x anna@box: annas boxes box.lan"),
                         "HOME/x USER@HOST: annas boxes HOST.lan")


if __name__ == "__main__":
    unittest.main(verbosity=2)
