#!/usr/bin/env python3
"""scripts/gpu-check on the far device, and its messages if there is no device to test.

usage: gpu_check_test.py BUILD FAR_LIBRARY
"""
import argparse
import contextlib
import io
import math
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench"))
from gpu_check.context import FAILED, NOT_RUN, OK, Context, NotRun, Outcome  # noqa: E402
from gpu_check import machine, speed           # noqa: E402
from gpu_check.report import Report            # noqa: E402

BUILD, LIBRARY = map(pathlib.Path, (sys.argv.pop(1), sys.argv.pop(1)))
PEER = sys.argv.pop(1)  # its PyTorch is the baseline: one that can load the library


def gpu_check(*words, **environment):
    return subprocess.run([sys.executable, ROOT / "scripts/gpu-check", *words], text=True,
                          capture_output=True, env={**os.environ, **environment})


class GpuCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.report = pathlib.Path(folder.name) / "report.md"

    def check_far_device(self, *words, build=BUILD, **environment):
        done = gpu_check("--device", "privateuseone:0", "--build", build, "--short", "--report",
                         self.report, *words, MOTLEY_DEVICE_LIBRARY=str(LIBRARY), **environment)
        return done, self.report.read_text() if self.report.exists() else ""

    def rows(self, report):
        """{check: (state, figures)}"""
        cells = [line.strip("|").split(" | ") for line in report.splitlines()
                 if line.startswith("|") and line.count(" | ") == 3]
        return {check.strip(): (state, figures) for check, state, figures, _ in cells}

    def test_every_check_runs_on_the_far_device(self):
        if subprocess.run([PEER, "-c", "import torch"], capture_output=True).returncode != 0:
            self.skipTest(f"{PEER} cannot import torch; apt-get install python3-torch")
        done, report = self.check_far_device("--python", PEER)
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

    def test_a_check_reports_its_outcome(self):
        done, _ = self.check_far_device("--minutes", "0.00001")
        self.assertIn("gpu-check: build: ok, ", done.stderr)
        self.assertIn("mixed plan: processor and device: not run, ", done.stderr)

    def test_checks_beyond_the_time_limit_are_not_run(self):
        done, report = self.check_far_device("--minutes", "0.00001")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.rows(report)["mixed plan: processor and device"],
                         ("not run", "the time limit was reached (--minutes)"))

    def test_a_missing_device_is_reported_at_once(self):
        done = gpu_check("--device", "privateuseone:0", "--report", self.report,
                         MOTLEY_DEVICE_LIBRARY="/no/such/library.so")
        self.assertEqual(done.returncode, 3)
        for words in ("there is no device 'privateuseone:0'", "cause: ", "try: "):
            self.assertIn(words, done.stderr)
        self.assertFalse(self.report.exists())
        done = gpu_check("--report", self.report, PATH="/no/programs")
        self.assertEqual(done.returncode, 3)
        self.assertIn("there is no nvidia-smi", done.stderr)

    def test_a_device_missing_for_motley_is_reported_before_the_checks(self):
        done, report = self.check_far_device("--device", "privateuseone:9")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("Motley finds cpu, privateuseone:0, privateuseone:1", done.stderr)
        done, report = self.check_far_device("--device", "mps")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("only a Mac has it", done.stderr)
        self.assertEqual(report, "")

    def test_wrong_arguments_are_status_2(self):
        for words in (["--minutes", "0"], ["--sideways"], ["--report", "/no/such/folder/a.md"],
                      ["--device", "gpu"], ["--device", "cuda"], ["--build", "/nope"],
                      ["--torch", "/nope"], ["--python", "no-such-python"]):
            self.assertEqual(gpu_check("--report", self.report, *words).returncode, 2, words)
            self.assertFalse(self.report.exists())


class Troubles(unittest.TestCase):
    SEES_ONE = {"PyTorch": "2.9", "its CUDA": "12.8", "cards": 1}

    def test_a_missing_index_names_the_present_ones(self):
        _, cause, remedy = machine.pytorch_trouble("", self.SEES_ONE, "python3")
        self.assertEqual(cause, "the PyTorch of python3 sees cuda:0")
        self.assertIn("--device", remedy)

    def test_a_pytorch_is_needed_only_where_it_is_built_against(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        nvidia_smi = pathlib.Path(folder.name) / "nvidia-smi"
        nvidia_smi.write_text("#!/bin/sh\necho GPU 0: a card\n")
        nvidia_smi.chmod(0o755)
        path = unittest.mock.patch.dict(os.environ, PATH=f"{folder.name}:{os.environ['PATH']}")
        path.start()
        self.addCleanup(path.stop)
        given = argparse.Namespace(device="cuda:0", python="/bin/false", torch=None, build=None)
        self.assertIn("does not import torch", machine.device_trouble(given)[1])
        given.torch = ROOT
        self.assertIsNone(machine.device_trouble(given))


class Speed(unittest.TestCase):
    def test_is_reported_without_a_pytorch_to_compare_with(self):
        context = argparse.Namespace(given=argparse.Namespace(python="/usr/bin/python3"),
                                     short=True, card={})
        text = speed.figures_text(context, {"micro_batch": 2, "context": 16}, "fp32", 1234.0, None)
        self.assertTrue(text.startswith("1,234 tokens/s, eager PyTorch not run: python3 has no "
                                        "torch"), text)


class Attempts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        given = argparse.Namespace(device="cpu", short=True, minutes=1, build=BUILD)
        self.context = Context(given, ROOT, pathlib.Path(folder.name))
        self.context.begin_checks()

    def attempt(self, run, limit_s=30):
        outcome = self.context.attempt("a check", run, limit_s)
        return outcome.state, outcome.figures, outcome.output

    def test_a_failed_program_is_reported_with_its_output(self):
        state, figures, output = self.attempt(
            lambda: self.context.run("sh", "-c", "echo out; echo why >&2; exit 5"))
        self.assertEqual((state, figures), ("FAILED", "sh ended with status 5"))
        self.assertEqual(output, "out\nwhy\n")
        state, figures, _ = self.attempt(lambda: self.context.run("sh", "-c", "kill -SEGV $$"))
        self.assertEqual((state, figures), ("FAILED", "sh was ended by SIGSEGV"))

    def test_a_program_beyond_its_limit_is_killed_with_its_children(self):
        mark = self.context.folder / "mark"
        start = time.monotonic()
        state, figures, _ = self.attempt(
            lambda: self.context.run("sh", "-c", f"(sleep 3; touch {mark}) & sleep 60"), limit_s=1)
        self.assertEqual((state, figures), ("FAILED", "sh exceeded its time limit"))
        self.assertLess(time.monotonic() - start, 20)
        time.sleep(3)
        self.assertFalse(mark.exists())

    def test_skips_and_bugs_end_no_other_check(self):
        def not_run():
            raise NotRun("nothing here")

        self.assertEqual(self.attempt(not_run)[:2], ("not run", "nothing here"))
        self.assertEqual(self.attempt(lambda: 1 // 0)[0], "FAILED")
        self.assertEqual(self.attempt(lambda: self.context.run("/no/such/program"))[0], "FAILED")
        self.assertEqual(self.attempt(lambda: "12 ms")[:2], ("ok", "12 ms"))


    def test_the_build_does_not_count_in_the_time_limit(self):
        context = Context(self.context.given, ROOT, self.context.folder)
        self.assertEqual(context.attempt("build", lambda: "built", 1).state, OK)
        self.assertEqual(context.end_s, math.inf)
        context.begin_checks()
        self.assertLess(context.end_s, time.monotonic() + 61)

    def test_a_long_check_prints_its_progress(self):
        said = io.StringIO()
        with unittest.mock.patch("gpu_check.context.SIGN_EVERY_S", 0.2), \
                contextlib.redirect_stderr(said):
            self.attempt(lambda: self.context.run("sleep", "1"))
        self.assertIn("gpu-check: a check: for ", said.getvalue())


class Reports(unittest.TestCase):
    def test_the_summary_names_what_failed(self):
        report = Report({})
        for name, state in (("a", OK), ("b", FAILED), ("c", NOT_RUN), ("d", FAILED)):
            report.add(Outcome(name, state, "", 0.0))
        self.assertEqual(report.summary(), "1 ok, 2 FAILED (b, d), 1 not run")

    def test_names_and_folders_are_replaced(self):
        report = Report({"/home/anna": "HOME", "anna": "USER", "box": "HOST"})
        self.assertEqual(report.public("/home/anna/x anna@box: annas boxes box.lan"),
                         "HOME/x USER@HOST: annas boxes HOST.lan")


if __name__ == "__main__":
    unittest.main(verbosity=2)
