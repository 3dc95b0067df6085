"""The machines of scripts/lan on which runs are disturbed, each with its own file system."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess

from fault_battery.waiting import Failed, until

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LAN = ROOT / "scripts/lan"
SWITCH = "motley-sw"
NAMES = ["m1", "m2", "m3"]
WORKERS = ["motley-stage", "motley-store"]


@contextlib.contextmanager
def uninterrupted():
    """Defers signals during operations that must not be interrupted midway."""
    before = signal.pthread_sigmask(
        signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Machines:
    """The machines exist inside the `with` block. At the launcher's runs directory, `folder`/runs, each
    machine sees its own directory."""

    def __init__(self, folder, cpu, mbps=1000):
        self.folder = folder
        self.cpu = cpu
        self.mbps = mbps  # of each machine's uplink, in each direction
        self.cluster = folder / "cluster.toml"
        self.namespaces = {}  # inode numbers; they outlive the names

    def __enter__(self):
        with uninterrupted():
            up = subprocess.run([LAN, "up", "-n", str(len(NAMES)), "--cpu", self.cpu, "--mbps",
                                 str(self.mbps)], check=False, stdout=subprocess.DEVNULL)
            if up.returncode != 0:
                raise Failed("scripts/lan up did not succeed")
            for name in NAMES:
                self.namespaces[name] = os.stat(f"/run/netns/motley-{name}").st_ino
        for name in NAMES:
            self.disk(name).mkdir(exist_ok=True)
        self.cluster.write_text(f"[network]\nbandwidth_mbps = {self.mbps}\n" +
                                "".join(self._section(name) for name in NAMES))
        return self

    def __exit__(self, *_):
        with uninterrupted():
            for name in NAMES:
                self.signal(name, signal.SIGKILL)
            subprocess.run([LAN, "down"], check=True)

    def _section(self, name):
        mount = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
        shell = [LAN, "exec", name, "unshare", "-m", "sh", "-c", mount, "sh", self.disk(name),
                 self.folder / "runs"]
        return (f'[[machine]]\nname = "{name}"\naddress = "10.77.0.{name[1:]}"\nthreads = 1\n'
                f"shell = {json.dumps([str(word) for word in shell])}\n")

    def disk(self, name):
        return self.folder / name

    def _processes(self, name):
        """[(pid, program)]"""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.stat(entry / "ns/net").st_ino == self.namespaces[name]:
                    found.append((int(entry.name), (entry / "comm").read_text().strip()))
        return found

    def workers(self, *names):
        """Process ids on the named machines, or on all."""
        return [pid for name in names or NAMES for pid, program in self._processes(name)
                if program in WORKERS]

    def signal(self, name, number):
        for pid, _ in self._processes(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def cut_off(self, name):
        """Simulates a power failure: the machine becomes unreachable and its disk is lost. The launcher is
        the parent of the worker processes here and would notice immediately if they were killed. They
        are therefore stopped, and the caller kills them later."""
        subprocess.run(["ip", "-n", SWITCH, "link", "set", f"port-{name}", "down"], check=True)
        self.signal(name, signal.SIGSTOP)
        subprocess.run(["ip", "netns", "delete", f"motley-{name}"], check=True)
        until(lambda: self._is_disk_gone(name), 10, f"the disk of {name} is removed")

    def _is_disk_gone(self, name):
        """Writes in progress at the stop may still complete."""
        shutil.rmtree(self.disk(name), ignore_errors=True)
        return not self.disk(name).exists()
