#!/usr/bin/python3
"""`motley_log`: the records sent for live and ended runs, with a fake package in wandb's place."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from typing import Any, Dict, List, Tuple

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

import motley_log  # noqa: E402


class Recorder:
    """Has the interface common to wandb and trackio."""

    def __init__(self) -> None:
        self.begun: List[Dict[str, Any]] = []
        self.logged: List[Tuple[int, Dict[str, float]]] = []
        self.finished = 0

    def init(self, **how: Any) -> None:
        self.begun.append(how)

    def log(self, values: Dict[str, float], step: int) -> None:
        self.logged.append((step, values))

    def finish(self) -> None:
        self.finished += 1


def line(step: int, **more: Any) -> str:
    return json.dumps({"step": step, "loss": 2.5, **more}) + "\n"


class Log(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_folder = folder.name
        os.mkdir(os.path.join(self.run_folder, "launches"))
        self.recorder = Recorder()

    def write(self, name: str, text: str, mode: str = "w") -> None:
        with open(os.path.join(self.run_folder, name), mode) as file:
            file.write(text)

    def send(self, wait: Any = None) -> motley_log.MetricsFollower:
        return motley_log.send(self.run_folder, self.recorder, "p", "n", wait or self.fail)

    def test_sends_each_number_by_name(self) -> None:
        self.write("plan.json", '{"ranks": [{"machine": "desk"}], "schedule": "1f1b"}')
        self.write("metrics.jsonl", line(1, skipped=True, time=1.5, eval_loss=3, losses={"codec": 0.5}, wait_s=[0.25, 0.5], grad_norm=None, more={"a": 1}))
        self.send()
        self.assertEqual(self.recorder.begun[0]["config"]["plan"], {"schedule": "1f1b", "ranks": ["0 (desk)"]})
        self.assertEqual(self.recorder.logged, [(1, {"loss": 2.5, "skipped": 1, "eval/loss": 3, "losses/codec": 0.5, "wait_s/0 (desk)": 0.25,
                                                     "wait_s/1": 0.5})])
        self.assertEqual(self.recorder.finished, 1)

    def test_follows_a_run_to_its_end_and_sends_no_step_twice(self) -> None:
        self.write("launches/000001.json", '{"state": "held"}')
        self.write("metrics.jsonl", line(1) + line(2) + '{"step": 3, "lo')
        rounds = []

        def wait(_: float) -> None:
            rounds.append([step for step, _ in self.recorder.logged])
            if len(rounds) == 1:
                self.write("metrics.jsonl", 'ss": 2.5}\n' + line(4), "a")
            elif len(rounds) == 2:
                self.write("metrics.jsonl", line(1) + line(2))  # a resume truncates the file
            elif len(rounds) == 3:
                self.write("metrics.jsonl", line(3) + line(4) + line(5), "a")
                self.write("launches/000001.json", '{"state": "free"}')

        self.send(wait)
        self.assertEqual(rounds, [[1, 2], [1, 2, 3, 4], [1, 2, 3, 4]])
        self.assertEqual([step for step, _ in self.recorder.logged], [1, 2, 3, 4, 5])

    def test_ends_with_a_launcher_that_was_killed(self) -> None:
        self.write("launches/000001.json", '{"state": "held"}')
        os.utime(os.path.join(self.run_folder, "launches/000001.json"), (1, 1))
        self.write("metrics.jsonl", line(1))
        self.assertEqual(self.send().last_step, 1)

    def test_leaves_out_what_is_no_step(self) -> None:
        self.write("metrics.jsonl", "no json\n[1]\n" + "[" * 100_000 + "\n" + '{"step": "2"}\n{"step": true}\n' + line(7))
        follower = self.send()
        self.assertEqual(follower.damaged, 5)
        self.assertEqual([step for step, _ in self.recorder.logged], [7])

    def test_takes_no_step_that_no_run_reaches(self) -> None:
        self.write("metrics.jsonl", '{"step": 99999999999999999999999}\n' + line(1) + line(2))
        follower = self.send()
        self.assertEqual((follower.damaged, follower.last_step), (1, 2))

    def test_waits_at_no_pipe(self) -> None:
        for name in ("plan.json", "config.toml"):
            os.mkfifo(os.path.join(self.run_folder, name))
        self.write("metrics.jsonl", line(1))
        self.assertEqual(self.send().last_step, 1)

    def test_ends_with_a_launcher_whose_clock_was_ahead(self) -> None:
        self.write("launches/000001.json", '{"state": "held"}')
        os.utime(os.path.join(self.run_folder, "launches/000001.json"), (1 << 33, 1 << 33))
        self.write("metrics.jsonl", line(1))
        self.assertEqual(self.send().last_step, 1)

    def test_says_why_a_package_refused(self) -> None:
        def refuse(**_: Any) -> None:
            raise RuntimeError("no API key")

        self.write("metrics.jsonl", line(1))
        self.recorder.init = refuse  # type: ignore[method-assign]
        sys.modules["trackio"] = self.recorder  # type: ignore[assignment]
        self.addCleanup(sys.modules.pop, "trackio")
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(motley_log.main([self.run_folder, "--to", "trackio"]), 3)
        self.assertIn("no API key", said.getvalue())

    def test_says_what_is_missing(self) -> None:
        for words in ([self.run_folder, "--to", "wandb"], ["/nowhere", "--to", "trackio"]):
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                self.assertEqual(motley_log.main(words), 3)
            self.assertIn("metrics.jsonl", said.getvalue())
        self.write("metrics.jsonl", line(1))
        said = io.StringIO()
        sys.modules["trackio"] = None  # type: ignore[assignment]
        self.addCleanup(sys.modules.pop, "trackio")
        with contextlib.redirect_stderr(said):
            self.assertEqual(motley_log.main([self.run_folder, "--to", "trackio"]), 3)
        self.assertIn("pip install trackio", said.getvalue())


if __name__ == "__main__":
    unittest.main(verbosity=2)
