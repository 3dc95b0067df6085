"""Sends what a run measured to Weights & Biases or Trackio: `python3 -m motley_log RUN --to wandb`.

Reads RUN/metrics.jsonl (docs/formats/metrics.md), of a run that has ended or one that is under way, which it follows to its end.
Writes nothing into the run folder, and needs neither PyTorch nor Motley's programs.

Each call makes one run there, with all steps that there are. After a resume the steps that were sent already are not sent again: their
losses are the same. Without a network: WANDB_MODE=offline for Weights & Biases; Trackio keeps everything on this machine.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import stat
import sys
import time
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Optional

PACKAGES = ("wandb", "trackio")
LINE_BYTES_MAX = 16 << 20
STEP_MAX = 1 << 52
RECENT_S = 60
POLL_S = 1.0


class Unusable(Exception):
    """What, why, and what to do."""


def open_file(path: str) -> BinaryIO:
    """To be read. Whatever else has the name, as a pipe that would be waited for, is refused."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a regular file")
    return os.fdopen(descriptor, "rb")


class MetricsFollower:
    """The steps of a metrics.jsonl as they come: each once, also where a resume cuts the file."""

    def __init__(self, path: str):
        self.path = path
        self.last_step = 0
        self.damaged = 0
        """Lines that are no step."""
        self._offset = 0
        self._inode: Optional[int] = None

    def new_steps(self) -> Iterator[Dict[str, Any]]:
        """Those of whole lines that were added since the last call."""
        try:
            file = open_file(self.path)
        except FileNotFoundError:
            return
        with file:
            status = os.fstat(file.fileno())
            if status.st_size < self._offset or status.st_ino != self._inode:
                self._offset = 0
            self._inode = status.st_ino
            file.seek(self._offset)
            while True:
                line = file.readline(LINE_BYTES_MAX)
                if not line.endswith(b"\n") and len(line) < LINE_BYTES_MAX:
                    return
                self._offset += len(line)
                step = self._step(line)
                if step is not None and step["step"] > self.last_step:
                    self.last_step = step["step"]
                    yield step

    def _step(self, line: bytes) -> Optional[Dict[str, Any]]:
        try:
            step = json.loads(line)
            if isinstance(step, dict) and type(step.get("step")) is int and 0 < step["step"] <= STEP_MAX:
                return step
        except (ValueError, RecursionError):
            pass
        self.damaged += 1
        return None


def values_of(step: Dict[str, Any], ranks: List[str]) -> Dict[str, float]:
    """Its numbers by names that charts are grouped by. What is no number there is left out."""
    values: Dict[str, float] = {}

    def add(name: str, value: Any) -> None:
        if isinstance(value, bool):
            value = int(value)
        if isinstance(value, (int, float)):
            values[name] = value

    for key, value in step.items():
        if key in ("step", "time", "losses", "wait_s"):
            continue
        add(key.replace("eval_", "eval/", 1) if key.startswith("eval_") else key, value)
    losses = step.get("losses")
    for key, value in losses.items() if isinstance(losses, dict) else ():
        add(f"losses/{key}", value)
    waits = step.get("wait_s")
    for rank, value in enumerate(waits) if isinstance(waits, list) else ():
        add(f"wait_s/{ranks[rank] if rank < len(ranks) else rank}", value)
    return values


def read_json(path: str) -> Dict[str, Any]:
    """The object in a file; nothing where there is none that can be read."""
    try:
        with open_file(path) as file:
            found = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def rank_names(run: str) -> List[str]:
    """Such as "0 (desk)", by rank, as the plan has them."""
    ranks = read_json(os.path.join(run, "plan.json")).get("ranks")
    machines = [rank.get("machine") if isinstance(rank, dict) else None for rank in ranks] if isinstance(ranks, list) else []
    return [f"{index} ({machine})" for index, machine in enumerate(machines)]


def configuration(run: str) -> Dict[str, Any]:
    """config.toml, where this Python reads TOML (3.11 or later), and the plan's schedule and machines."""
    config: Dict[str, Any] = {}
    try:
        toml = importlib.import_module("tomllib")
        with open_file(os.path.join(run, "config.toml")) as file:
            config = toml.load(file)
    except (ImportError, OSError, ValueError):
        pass
    plan = read_json(os.path.join(run, "plan.json"))
    config["plan"] = {key: plan[key] for key in ("schedule", "micro_batch", "micro_batches", "predicted_step_s") if key in plan}
    config["plan"]["ranks"] = rank_names(run)
    return config


def is_under_way(run: str) -> bool:
    """Whether a launcher holds the folder (docs/formats/launches.md). One that was killed is seen by its file's age."""
    folder = os.path.join(run, "launches")
    try:
        newest = max((name for name in os.listdir(folder) if name.endswith(".json")), default=None)
        if newest is None:
            return False
        path = os.path.join(folder, newest)
        return read_json(path).get("state") == "held" and abs(time.time() - os.path.getmtime(path)) < RECENT_S
    except OSError:
        return False


def send(run: str, package: Any, project: str, name: str, wait: Callable[[float], None] = time.sleep) -> MetricsFollower:
    """All steps of the run, to its end where it is under way. `package`: wandb, trackio or what has their init, log and finish."""
    follower = MetricsFollower(os.path.join(run, "metrics.jsonl"))
    ranks = rank_names(run)
    package.init(project=project, name=name, config=configuration(run))
    try:
        while True:
            goes_on = is_under_way(run)  # asked first: what came before it ended is then read once more
            for step in follower.new_steps():
                package.log(values_of(step, ranks), step=step["step"])
            if not goes_on:
                return follower
            wait(POLL_S)
    finally:
        package.finish()


def main(words: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="motley_log", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN", help="the run's folder")
    parser.add_argument("--to", required=True, choices=PACKAGES, help="the Python package that takes it")
    parser.add_argument("--project", default="motley", help="there (default: motley)")
    parser.add_argument("--name", help="of the run there (default: the folder's name)")
    asked = parser.parse_args(words)
    try:
        if not os.path.isfile(os.path.join(asked.run, "metrics.jsonl")):
            raise Unusable(f"{asked.run} has no metrics.jsonl: it is no run folder, or its first step is not done. Give the folder of a run")
        try:
            package = importlib.import_module(asked.to)
        except ImportError as error:
            raise Unusable(f"this Python cannot import {asked.to}: {error}. `pip install {asked.to}`") from error
        name = asked.name or os.path.basename(os.path.abspath(asked.run))
        try:
            follower = send(asked.run, package, asked.project, name)
        except Exception as error:  # its own kinds: no key, no network
            raise Unusable(f"{asked.to} did not take the run: {type(error).__name__}: {error}") from error
    except Unusable as error:
        print(f"motley_log: error: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 130
    if follower.damaged:
        print(f"motley_log: {follower.damaged} lines of {follower.path} are no steps and were left out", file=sys.stderr)
    print(f"sent {asked.run} up to step {follower.last_step}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
