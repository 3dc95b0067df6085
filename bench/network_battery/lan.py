"""Three machines on a home network: network namespaces on one switch, each with its own sshd, home
directory and disk. Commands reach m2 and m3 by ssh from m1, through the network."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import uuid

from fault_battery.waiting import Failed, until

NAMES = ["m1", "m2", "m3"]
NET = "10.79.0"
SSH_ONLY = "tcp dport 22 accept; tcp sport 22 accept; "


def call(*words, check=True, **more):
    return subprocess.run([str(word) for word in words], check=check, **more)


class Lan:
    """The network exists inside the `with` block. `prefix` begins the names of its namespaces."""

    def __init__(self, folder, build, prefix):
        self.folder = folder
        self.build = build
        self.prefix = prefix
        self.runs = folder / "runs"  # mount point of each machine's own disk
        self.cluster = folder / "cluster.toml"

    def namespace(self, name):
        return f"{self.prefix}-{name}"

    def disk(self, name):
        return self.folder / f"disk-{name}"

    def home(self, name):
        return self.folder / f"home-{name}"

    def programs(self, name):
        return self.folder / f"bin-{name}"

    def __enter__(self):
        self._end_namespaces()
        self.runs.mkdir(parents=True, exist_ok=True)
        call("ip", "netns", "add", self.namespace("sw"))
        call("ip", "-n", self.namespace("sw"), "link", "add", "bridge0", "type", "bridge")
        call("ip", "-n", self.namespace("sw"), "link", "set", "bridge0", "up")
        for name in NAMES:
            self._make_machine(name)
        self.cluster.write_text("[network]\ntrusted = false\n" +
                                "".join(self._section(name) for name in NAMES))
        return self

    def __exit__(self, *_):
        self._end_namespaces()

    def _end_namespaces(self):
        for name in [*NAMES, "sw"]:
            if not os.path.exists(f"/run/netns/{self.namespace(name)}"):
                continue
            for pid in self.pids(name):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            call("ip", "netns", "delete", self.namespace(name))

    def _make_machine(self, name):
        namespace, port, address = self.namespace(name), f"port-{name}", f"{NET}.{name[1:]}"
        call("ip", "netns", "add", namespace)
        call("ip", "link", "add", "eth0", "netns", namespace, "type", "veth", "peer", "name", port,
             "netns", self.namespace("sw"))
        call("ip", "-n", self.namespace("sw"), "link", "set", port, "master", "bridge0", "up")
        call("ip", "-n", namespace, "link", "set", "lo", "up")
        call("ip", "-n", namespace, "address", "add", f"{address}/24", "dev", "eth0")
        call("ip", "-n", namespace, "link", "set", "eth0", "up")
        for folder in [self.disk(name), self.home(name), self.programs(name)]:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        for program in ["motley", "motley-stage", "motley-store"]:
            (self.programs(name) / program).symlink_to(self.build / "bin" / program)
        if name != "m1":
            self._start_sshd(name, address)

    def _start_sshd(self, name, address):
        keys = self.folder / f"sshd-{name}"
        shutil.rmtree(keys, ignore_errors=True)
        keys.mkdir(mode=0o700)
        for key in ["host_key", "user_key"]:
            call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", keys / key)
        shutil.copy(keys / "user_key.pub", keys / "authorized_keys")
        (keys / "sshd_config").write_text(
            f"ListenAddress {address}:22\nHostKey {keys}/host_key\nUsePAM no\nStrictModes no\n"
            f"AuthorizedKeysFile {keys}/authorized_keys\nPermitRootLogin prohibit-password\n"
            f"PidFile {keys}/sshd.pid\nPrintMotd no\n")
        (keys / "ssh_config").write_text(
            f"Host {name}\nHostName {address}\nUser root\nIdentityFile {keys}/user_key\n"
            "IdentitiesOnly yes\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
            "LogLevel ERROR\nBatchMode yes\nConnectTimeout 10\n")
        self.switch_on(name)

    def switch_on(self, name):
        keys = self.folder / f"sshd-{name}"
        os.makedirs("/run/sshd", exist_ok=True)
        (keys / "sshd.pid").unlink(missing_ok=True)
        call(*self.inside(name), shutil.which("sshd"), "-f", keys / "sshd_config", "-E",
             keys / "sshd.log")
        until(lambda: (keys / "sshd.pid").exists(), 20, f"the sshd of {name} listens")

    def switch_off(self, name):
        """Ends all processes of a machine and its network at once. It has another boot id from then on."""
        self.link(name, "down")
        for pid in self.pids(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        (self.folder / f"boot-{name}").write_text(f"{uuid.uuid4()}\n")

    def freeze(self, name, is_frozen=True):
        """Stops or continues all workers of a machine."""
        for pid in self.workers(name):
            os.kill(pid, signal.SIGSTOP if is_frozen else signal.SIGCONT)

    def lose_packets(self, percent):
        """Drops this share of the packets that each machine receives."""
        for name in NAMES:
            call("ip", "netns", "exec", self.namespace(name), "nft", "-f", "-", text=True,
                 input="table inet sv_loss {\n chain c {\n  type filter hook input priority 0;\n"
                       f"  iif != lo numgen random mod 100 < {percent} drop\n }}\n}}\n")

    def inside(self, name):
        """The command prefix that runs a command on a machine, with its disk and home directory.

        Machines reached by ssh do not have the caller's OPENBLAS_CORETYPE, and other kernels give other bits.
        """
        mount = ('mount --bind "$1" "$2" && mount --bind "$3" /root && cd "$2" && '
                 '{ ! test -e "$4" || mount --bind "$4" /proc/sys/kernel/random/boot_id; } && '
                 'shift 4 && HOME=/root exec env -u OPENBLAS_CORETYPE "$@"')
        return ["ip", "netns", "exec", self.namespace(name), "unshare", "-m", "--propagation",
                "private", "sh", "-c", mount, "sh", self.disk(name), self.runs, self.home(name),
                self.folder / f"boot-{name}"]

    def _section(self, name):
        text = (f'[[machine]]\nname = "{name}"\naddress = "{NET}.{name[1:]}"\nthreads = 1\n'
                f'motley_dir = "{self.programs(name)}"\n')
        if name != "m1":
            shell = ["ssh", "-F", str(self.folder / f"sshd-{name}/ssh_config"), "-T", name]
            text += f"shell = {json.dumps(shell)}\n"
        return text

    def pids(self, name):
        found = call("ip", "netns", "pids", self.namespace(name), check=False,
                     capture_output=True, text=True).stdout
        return [int(word) for word in found.split()]

    def workers(self, *names):
        found = []
        for name in names or NAMES:
            for pid in self.pids(name):
                with contextlib.suppress(OSError):
                    if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "motley-stage":
                        found.append(pid)
        return found

    def link(self, name, state):
        call("ip", "-n", self.namespace("sw"), "link", "set", f"port-{name}", state)

    def firewall(self, name, chain, rules, verdict="drop"):
        """Sets the accepting rules of `chain` (input or output) on a machine, and the verdict for the rest."""
        own = "iif lo accept" if chain == "input" else "oif lo accept"
        lines = [own, *(rule.strip() for rule in rules.split(";") if rule.strip()), verdict]
        call("ip", "netns", "exec", self.namespace(name), "nft", "-f", "-", text=True,
             input=f"table inet sv_{chain} {{\n chain c {{\n  type filter hook {chain} priority 0;\n  " +
             "\n  ".join(lines) + "\n }\n}\n")

    def no_firewall(self):
        for name in NAMES:
            call("ip", "netns", "exec", self.namespace(name), "nft", "flush", "ruleset")

    def dies_at_start(self, name, is_dying=True):
        """Sets whether the worker of a machine is killed at each start."""
        program = self.programs(name) / "motley-stage"
        program.unlink()
        if is_dying:
            program.write_text("#!/bin/sh\nkill -9 $$\n")
            program.chmod(0o755)
        else:
            program.symlink_to(self.build / "bin/motley-stage")


class Run:
    """A training run on a Lan."""

    def __init__(self, lan, config, name, steps, profile, settings=()):
        self.lan = lan
        self.name = name
        self.steps = steps
        self.folder = lan.disk("m1") / name
        self.output = lan.folder / f"{name}.log"
        self.output.unlink(missing_ok=True)
        self.command = [*lan.inside("m1"), lan.programs("m1") / "motley", "launch", config, "--run",
                        lan.runs / name, "--cluster", lan.cluster]
        for setting in [f"train.steps={steps}", "checkpoint.every=25", "run.restarts=3",
                        "parallel.replicas=false", "compression.activations=none", *settings]:
            self.command += ["--set", setting]
        for machine in NAMES:
            self.command += ["--pin", f"always {machine}"]
        if profile.exists():
            self.command += ["--profile", profile]
        self.begun_s = time.monotonic()
        self.start()

    def start(self, *more):
        with self.output.open("a") as output:
            self.launcher = subprocess.Popen([str(word) for word in [*self.command, *more]],
                                             stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def last_step(self):
        path = self.folder / "metrics.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        for line in reversed(lines):
            with contextlib.suppress(json.JSONDecodeError):
                return json.loads(line)["step"]
        return 0

    def said(self):
        return self.output.read_text(errors="replace")

    def restarts(self):
        return self.said().count("the run continues from step") + self.said().count(
            "the run restarts from the beginning\n")

    def repeated(self):
        return sum(int(count) for count in re.findall(r", (\d+) steps? (?:is|are) repeated",
                                                      self.said()))

    def wait_step(self, step, limit_s):
        def there():
            if self.launcher.poll() is not None:
                raise Failed(f"the run ended with status {self.launcher.returncode}")
            return self.last_step() >= step
        until(there, limit_s, f"step {step}")

    def wait_words(self, words, limit_s):
        def there():
            if words in self.said():
                return True
            if self.launcher.poll() is not None:
                raise Failed(f"the run ended with status {self.launcher.returncode}")
            return False
        until(there, limit_s, f"'{words}'")

    def end(self, limit_s):
        """The exit status, and the hash of the last checkpoint if all steps are done."""
        until(lambda: self.launcher.poll() is not None, limit_s, "the run's end")
        manifest = self.folder / f"checkpoints/step-{self.steps:06}/manifest.json"
        found = json.loads(manifest.read_text())["parameter_hash"] if manifest.exists() else ""
        return self.launcher.returncode, found

    def stop(self):
        if self.launcher.poll() is None:
            for pid in self.lan.pids("m1"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.launcher.wait()
