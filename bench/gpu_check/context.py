"""State shared by all checks: paths, running programs under a time limit, and recording the outcome
of a check."""
import dataclasses
import getpass
import math
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

SIGN_EVERY_S = 30  # seconds

OK, FAILED, NOT_RUN = "ok", "FAILED", "not run"


class Failed(Exception):
    """A check failed: a sentence, and the output of the program concerned."""

    def __init__(self, reason, output=""):
        super().__init__(reason)
        self.output = output


class NotRun(Exception):
    """A check does not apply, for this reason."""


@dataclasses.dataclass
class Part:
    """One line of the report: run() returns its figures, or raises one of the above."""
    run: object
    title: str = ""


@dataclasses.dataclass
class Outcome:
    name: str
    state: str
    figures: str
    seconds: float
    output: str = ""


class Context:
    def __init__(self, given, root, folder):
        self.given = given
        self.root = root
        self.folder = folder  # of this run, removed with it
        self.device = given.device
        self.short = given.short
        self.end_s = math.inf          # of all checks; the build has no limit
        self.limit_end_s = self.end_s  # of the check in progress
        self.check = ""                # its name
        self.card = {}            # device properties from PyTorch and Motley
        self.has_pytorch = False  # for comparison
        self.build = (given.build or root / "build/gpu-check").resolve()

    @property
    def motley(self):
        return self.build / "bin/motley"

    @property
    def is_cuda(self):
        return self.device.startswith("cuda")

    def begin_checks(self):
        """Starts the time limit of --minutes."""
        self.end_s = time.monotonic() + 60 * self.given.minutes

    def say(self, text):
        print(f"gpu-check: {self.check}: {text}", file=sys.stderr, flush=True)

    def attempt(self, name, run, limit_s):
        """Records the outcome of one check; exceptions are caught here."""
        self.check = name
        self.say("…")
        start_s = time.monotonic()
        self.limit_end_s = min(self.end_s, start_s + limit_s)
        output = ""
        try:
            if start_s >= self.end_s:
                raise NotRun("the time limit was reached (--minutes)")
            state, figures = OK, run()
        except NotRun as reason:
            state, figures = NOT_RUN, str(reason)
        except Failed as failure:
            state, figures, output = FAILED, str(failure), failure.output
        except Exception as mistake:  # a bug in one check ends no other check
            state, figures = FAILED, f"the check itself failed: {type(mistake).__name__}: {mistake}"
        outcome = Outcome(name, state, figures, time.monotonic() - start_s, output)
        self.say(f"{state}, {outcome.seconds:.0f} s; {figures}")
        return outcome

    def environment(self, **more):
        """The environment with a private cache directory: no state is shared with other runs or left behind."""
        return {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache"), **more}

    def run(self, *words, cwd=None, **more):
        """Returns the program's standard output. Raises Failed if it exits with another status than 0 or
        exceeds the check's time limit, and NotRun if it exceeds the limit of all checks; then the
        program and its children are killed."""
        process = subprocess.Popen([str(word) for word in words], cwd=cwd or self.folder, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, start_new_session=True,
                                   env=self.environment(**more))
        try:
            out, err = self.wait_for(process)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            if time.monotonic() >= self.end_s:
                raise NotRun("the time limit was reached (--minutes)") from None
            raise Failed(f"{pathlib.Path(words[0]).name} exceeded its time limit", out + err) from None
        except BaseException:  # also on KeyboardInterrupt
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        if process.returncode != 0:
            how = (f"ended with status {process.returncode}" if process.returncode > 0 else
                   f"was ended by {signal.Signals(-process.returncode).name}")
            raise Failed(f"{pathlib.Path(words[0]).name} {how}", out + err)
        return out

    def wait_for(self, process):
        """Returns the output; prints a line at intervals to show progress."""
        start_s = time.monotonic()
        end_s = max(self.limit_end_s, start_s + 1)
        while True:
            left_s = end_s - time.monotonic()
            try:
                return process.communicate(timeout=min(SIGN_EVERY_S, left_s))
            except subprocess.TimeoutExpired:
                if left_s <= SIGN_EVERY_S:
                    raise
                self.say(f"for {time.monotonic() - start_s:.0f} s")

    def private_words(self):
        """Strings that must not be in a report, and their replacements."""
        words = {str(self.folder): "FOLDER", str(self.root): "MOTLEY",
                 str(self.build): "BUILD", str(pathlib.Path.home()): "HOME",
                 socket.getfqdn(): "HOST", socket.gethostname(): "HOST"}
        try:
            words[getpass.getuser()] = "USER"
        except (KeyError, OSError):
            pass
        return words
