"""Sends the metrics of a run to Weights & Biases or Trackio: `python3 -m motley_log RUN --to wandb`.

Reads RUN/metrics.jsonl (docs/formats/metrics.md) of a completed run, or of a live run until its end. Writes nothing into the run
folder, and needs neither PyTorch nor Motley's programs.

Each call creates one run of the service, with all steps. After a resume, steps are not sent twice: their losses are the same.
Without a network, use WANDB_MODE=offline for Weights & Biases; Trackio stores its data on this machine.
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
    """An error for the user, with cause and hint."""


def open_file(path: str) -> BinaryIO:
    """Opens a regular file for reading. Other files, such as pipes, whose open may block, raise OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a regular file")
    return os.fdopen(descriptor, "rb")


class MetricsFollower:
    """Reads the steps of a growing metrics.jsonl, each once, also after a resume has truncated the file."""

    def __init__(self, path: str):
        self.path = path
        self.last_step = 0
        self.damaged = 0
        """The number of lines that are not a step."""
        self._offset = 0
        self._inode: Optional[int] = None

    def new_steps(self) -> Iterator[Dict[str, Any]]:
        """The steps of complete lines that were added since the last call."""
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
    """[name, grouped for charts by "/"] the numbers of a step; other values are omitted."""
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
    """The JSON object in a file; empty if it cannot be read."""
    try:
        with open_file(path) as file:
            found = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def rank_names(run: str) -> List[str]:
    """[rank] a name such as "0 (desk)", with the machine of the plan."""
    ranks = read_json(os.path.join(run, "plan.json")).get("ranks")
    machines = [rank.get("machine") if isinstance(rank, dict) else None for rank in ranks] if isinstance(ranks, list) else []
    return [f"{index} ({machine})" for index, machine in enumerate(machines)]


def configuration(run: str) -> Dict[str, Any]:
    """The content of config.toml, if this Python reads TOML (3.11 or later), and the plan's schedule and machines."""
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
    """Whether a launcher holds the folder (docs/formats/launches.md). The file of a killed launcher is recognized by its age."""
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
    """Sends all steps of the run, until its end if it is live. `package`: wandb, trackio or another object with init, log and
    finish."""
    follower = MetricsFollower(os.path.join(run, "metrics.jsonl"))
    ranks = rank_names(run)
    package.init(project=project, name=name, config=configuration(run))
    try:
        while True:
            is_live = is_under_way(run)  # checked first, so that the last steps of a run are read after its end
            for step in follower.new_steps():
                package.log(values_of(step, ranks), step=step["step"])
            if not is_live:
                return follower
            wait(POLL_S)
    finally:
        package.finish()


def main(words: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="motley_log", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN", help="the run's folder")
    parser.add_argument("--to", required=True, choices=PACKAGES, help="the Python package of the service")
    parser.add_argument("--project", default="motley", help="project of the service (default: motley)")
    parser.add_argument("--name", help="name of the run (default: the folder's name)")
    asked = parser.parse_args(words)
    try:
        if not os.path.isfile(os.path.join(asked.run, "metrics.jsonl")):
            raise Unusable(f"{asked.run} has no metrics.jsonl: it is not a run folder, or its first step has not ended. Give "
                           "the folder of a run")
        try:
            package = importlib.import_module(asked.to)
        except ImportError as error:
            raise Unusable(f"{asked.to} cannot be imported: {error}. `pip install {asked.to}`") from error
        name = asked.name or os.path.basename(os.path.abspath(asked.run))
        try:
            follower = send(asked.run, package, asked.project, name)
        except Exception as error:  # exceptions of the service: no key, no network
            raise Unusable(f"{asked.to} failed: {type(error).__name__}: {error}") from error
    except Unusable as error:
        print(f"motley_log: error: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 130
    if follower.damaged:
        print(f"motley_log: skipped {follower.damaged} damaged lines of {follower.path}", file=sys.stderr)
    print(f"sent {asked.run} up to step {follower.last_step}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
