"""A run that is disturbed; its state is read from the files that it writes."""
import json
import re
import subprocess
import time

from fault_battery.machines import NAMES
from fault_battery.waiting import Failed, until

EVERY = 5           # steps between checkpoints
STANDSTILL_S = 120  # a run without progress for this long has failed

# These settings round identically under every partition of the layers; the battery relies on it.
SETTINGS = [f"checkpoint.every={EVERY}", "checkpoint.copies=1", "run.restarts=3", "comm.patience_s=4",
            "parallel.replicas=false", "compression.activations=none"]


class Training:
    """Runs inside the `with` block. Its files are in `folder`; its output is in `output`."""

    def __init__(self, options, machines, name, steps, profile):
        self.machines = machines
        self.name = name
        self.steps = steps
        self.folder = options.folder / "runs" / name
        self.output = options.folder / f"{name}.log"
        self.command = [options.build / "bin/motley", "train", options.config, "--run", self.folder,
                        "--cluster", machines.cluster]
        for setting in [*SETTINGS, f"train.steps={steps}"]:
            self.command += ["--set", setting]
        for machine in NAMES:
            self.command += ["--pin", f"always {machine}"]
        self.command += ["--profile", profile] if profile.exists() else []

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill_launcher()

    def start(self, *more):
        with self.output.open("a") as output:
            self.launcher = subprocess.Popen([*self.command, *more], stdin=subprocess.DEVNULL,
                                             stdout=output, stderr=output)

    def kill_launcher(self):
        self.launcher.kill()
        self.launcher.wait()

    def last_step(self):
        """The last record in metrics.jsonl."""
        path = self.folder / "metrics.jsonl"
        steps = re.findall(r'^{"step":(\d+),.*}$', path.read_text() if path.exists() else "", re.M)
        return int(steps[-1]) if steps else 0

    def step_s(self):
        return json.loads((self.folder / "report.json").read_text())["step_s"]["measured"]

    def manifests(self):
        """Paths of the committed checkpoints, by step."""
        return {int(path.parent.name.removeprefix("step-")): path
                for path in self.folder.glob("checkpoints/step-*/manifest.json")}

    def saved_step(self):
        return max(self.manifests(), default=0)

    def steps_after_losses(self):
        """For each automatic resume, the first step done afterwards."""
        log = self.folder / "log/motley.log"
        text = log.read_text() if log.exists() else ""
        return [int(step) for step in re.findall(r"recovered: step (\d+) completed", text)]

    def first_step_said(self, since_bytes):
        """The first step reported in the output after that byte offset; None before."""
        found = re.search(rb"^step (\d+)/", self.output.read_bytes()[since_bytes:], re.M)
        return found and int(found[1])

    def machine_of(self, stage):
        plan = json.loads((self.folder / "plan.json").read_text())
        return plan["ranks"][plan["chunks"][stage]["replicas"][0]["rank"]]["machine"]

    def wait(self, condition, limit_s, what):
        """until(), for a condition that becomes true before the run ends."""
        def come_or_ended():
            ended = self.launcher.poll() is not None
            found = condition()
            if not found and ended:
                raise Failed(f"{what}: the run ended before, status {self.launcher.returncode}")
            return found
        return until(come_or_ended, limit_s, what)

    def has_copies(self, step):
        """Whether each file of that checkpoint is on two machines. A copy gets its final name when it is
        complete."""
        manifest = self.manifests().get(step)
        if not manifest:
            return False
        files = [file for file in json.loads(manifest.read_text())["files"]
                 if file["name"].endswith(".safetensors")]
        return all(len(self._copies(step, file["name"])) >= 2 for file in files)

    def _copies(self, step, file):
        return [name for name in NAMES if (self.machines.disk(name) / self.name / "checkpoints" /
                                           f"step-{step:06}" / file).exists()]

    def brought_bytes(self):
        """The files received from other machines in the last resume. A file that the machine already had is
        a second link there; an unneeded one is a hole."""
        found = [path.stat() for name in NAMES for path in self.machines.disk(name).glob(
            f"{self.name}/checkpoints/.step-*.restored/*.safetensors")]
        return sum(file.st_blocks * 512 for file in found if file.st_nlink == 1)

    def end(self):
        """Waits for the run's end; returns the hash of the final parameters."""
        step, since_s = self.last_step(), time.monotonic()
        while self.launcher.poll() is None:
            if self.last_step() != step:
                step, since_s = self.last_step(), time.monotonic()
            if time.monotonic() - since_s > STANDSTILL_S:
                raise Failed(f"the run stands still after step {step}")
            time.sleep(0.1)
        if self.launcher.returncode != 0:
            raise Failed(f"the run ended with status {self.launcher.returncode}")
        if left := self.machines.workers():
            raise Failed(f"processes were left: {left}")
        return json.loads(self.manifests()[self.steps].read_text())["parameter_hash"]
