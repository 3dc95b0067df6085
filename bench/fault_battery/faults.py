"""Injects faults one after another: when each fault occurs, the action, and its measured cost."""
import contextlib
import dataclasses
import os
import random
import shutil
import signal
import time

from fault_battery.machines import NAMES, Machines
from fault_battery.training import EVERY, STANDSTILL_S, Training
from fault_battery.waiting import Failed, until

STAGES = range(len(NAMES))

# From docs/failures.md.
IN_PLACE_MAX_S = 15
WITHOUT_MACHINE_MAX_S = 30
ORPHANS_MAX_S = 1  # lifetime of workers without a launcher

MOMENT_MAX_STEPS = EVERY - 1  # after a checkpoint's commit, before the next checkpoint


@dataclasses.dataclass
class Fault:
    label: str
    seconds: float        # until the next step
    limit_s: float
    steps_again: int
    brought_bytes: int
    steal: float          # share of the cores' time that the host took meanwhile


def core_times():
    """(total, stolen) time of all cores, in ticks since system start."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return sum(ticks), ticks[7]


class Steal:
    def __init__(self):
        self.since = core_times()

    def share(self):
        total, stolen = (now - then for now, then in zip(core_times(), self.since))
        return stolen / max(total, 1)


class Battery:
    """Each part of the battery is a method; failed checks are appended to `problems`."""

    def __init__(self, options, report):
        self.options = options
        self.report = report
        self.random = random.Random(options.seed)
        self.profile = options.folder / "profile.json"  # of the first run, reused by all others
        self.hashes = {}  # of undisturbed runs, by step count
        self.step_s = {}  # step time of the same runs
        self.faults = []
        self.problems = []

    @contextlib.contextmanager
    def training(self, name, steps):
        """A run on its own machines. Its checkpoints are preserved only after a failed check."""
        try:
            with Machines(self.options.folder, self.options.cpu) as machines:
                with Training(self.options, machines, name, steps, self.profile) as run:
                    yield run
        except Failed as failed:
            raise Failed(f"{name}: {failed}") from failed
        shutil.rmtree(run.folder / "checkpoints")
        for machine in NAMES:
            shutil.rmtree(machines.disk(machine) / name, ignore_errors=True)  # one may be missing

    def undisturbed(self, steps=None):
        """The expected parameter hash of runs with this number of steps."""
        steps = steps or self.options.steps
        if steps not in self.hashes:
            self.hashes[steps] = None
            with self.training(f"undisturbed-{steps}", steps) as run:
                self.hashes[steps] = run.end()
                self.step_s[steps] = run.step_s()
                if not self.profile.exists():
                    shutil.copy(run.folder / "profile.json", self.profile)
            self.report(f"undisturbed: {steps} steps of {self.step_s[steps]:.2f} s, parameters "
                      f"{self.hashes[steps]}")
        if not self.hashes[steps]:
            raise Failed(f"there is no undisturbed run of {steps} steps to compare with")
        return self.hashes[steps]

    def kills(self):
        self._strike_stages("kills", "killed", list(STAGES) * self.options.kills, signal.SIGKILL)

    def freeze(self):
        self._strike_stages("freeze", "frozen", list(STAGES) * self.options.freezes,
                            signal.SIGSTOP)

    def power(self):
        for machine in NAMES:
            try:
                self._cut_off(machine)
            except Failed as failed:
                self.problems.append(str(failed))

    def launcher(self):
        steps = self.options.short
        expected = self.undisturbed(steps)
        with self.training("launcher", steps) as run:
            self._wait_for_moment(run, 0)
            last, said = run.last_step(), run.output.stat().st_size
            steal, at_s = Steal(), time.monotonic()
            run.kill_launcher()
            until(lambda: not run.machines.workers(), ORPHANS_MAX_S, "all workers are gone")
            self.report(f"launcher: killed; its workers were gone {time.monotonic() - at_s:.2f} s "
                      "later")
            run.start("--resume")
            first = run.wait(lambda: run.first_step_said(said), STANDSTILL_S, "it is resumed")
            self._note(run, "launcher killed", IN_PLACE_MAX_S, at_s, steal, last, first)
            self._compare(run, expected)

    def _strike_stages(self, name, verb, stages, number):
        steps = self.options.steps
        expected = self.undisturbed(steps)
        with self.training(name, steps) as run:
            saved = 0
            for stage in stages:
                self._wait_for_moment(run, saved)
                machine = run.machine_of(stage)
                pids = run.machines.workers(machine)
                if len(pids) != 1:
                    raise Failed(f"{machine} has workers {pids}, and not one")
                self._strike(run, f"stage {stage} ({machine}) {verb}", IN_PLACE_MAX_S,
                             lambda: os.kill(pids[0], number))
                if pids[0] in run.machines.workers(machine):
                    self.problems.append(f"{name}: process {pids[0]} is still there")
                saved = run.saved_step()
            self._compare(run, expected)

    def _cut_off(self, machine):
        steps = self.options.short
        expected = self.undisturbed(steps)
        with self.training(f"power-{machine}", steps) as run:
            self._wait_for_moment(run, 0)
            begun_s = time.monotonic()
            run.wait(lambda: self._are_copies_there(run), steps * STANDSTILL_S, "copies")
            self.report(f"power: {machine}: copies of step {run.saved_step()} are there "
                      f"{time.monotonic() - begun_s:.1f} s later, in step {run.last_step() + 1}")
            self._strike(run, f"machine {machine} gone", WITHOUT_MACHINE_MAX_S,
                         lambda: run.machines.cut_off(machine))
            run.machines.signal(machine, signal.SIGKILL)
            self._compare(run, expected)

    def _are_copies_there(self, run):
        """Whether the newest checkpoint has its copies. Fails if too few steps remain to lose a machine."""
        if run.last_step() > run.steps - 2:
            raise Failed(f"up to step {run.last_step()} no checkpoint had its copies on other "
                         "machines while it was the newest; no machine was cut off")
        return run.has_copies(run.saved_step())

    def _wait_for_moment(self, run, saved):
        """Waits for a checkpoint later than `saved`, plus a random delay."""
        run.wait(lambda: run.saved_step() > saved, EVERY * STANDSTILL_S,
                 f"a checkpoint after step {saved}")
        time.sleep(self.random.uniform(0, MOMENT_MAX_STEPS) * self.step_s[run.steps])
        if run.last_step() > run.steps - 2:
            raise Failed("the run is too short for so many faults")

    def _strike(self, run, label, limit_s, do):
        """Runs the action and waits until training has resumed."""
        losses, last = len(run.steps_after_losses()), run.last_step()
        steal, at_s = Steal(), time.monotonic()
        do()

        def first_step():
            nonlocal last  # one that was nearly done may still complete
            last = max(last, run.last_step())
            return run.steps_after_losses()[losses:]
        first = run.wait(first_step, STANDSTILL_S, f"{label}: the run goes on")[0]
        self._note(run, label, limit_s, at_s, steal, last, first)

    def _note(self, run, label, limit_s, at_s, steal, last, first):
        fault = Fault(label, time.monotonic() - at_s, limit_s, last - first + 1,
                      run.brought_bytes(), steal.share())
        self.faults.append(fault)
        seconds = f"{fault.seconds:.1f} s to the next step"
        self.report(f"{run.name}: {label} in step {last + 1}: {seconds}, {fault.steps_again} again, "
                  f"{fault.brought_bytes / 1e6:.1f} MB brought, steal {fault.steal:.0%}")
        if fault.seconds > limit_s:
            self.problems.append(f"{run.name}: {label}: {seconds}, more than {limit_s}")

    def _compare(self, run, expected):
        found = run.end()
        if found != expected:
            raise Failed(f"it ended with parameters {found}, and not {expected}")
        self.report(f"{run.name}: ended with the undisturbed run's parameters, steps of "
                  f"{run.step_s():.2f} s; no process is left")
