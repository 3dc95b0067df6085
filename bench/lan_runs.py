"""Runs of Motley on the machines of scripts/lan, for the benchmarks that compare such runs."""
import json
import os
import pathlib
import subprocess
import sys

# One host emulates several machines; all figures use one thread per machine.
os.environ.setdefault("MOTLEY_RUN_THREADS", "1")

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOTLEY = ROOT / "build/release/bin/motley"
LAN = ROOT / "scripts/lan"


def start(*command):
    return subprocess.Popen([str(word) for word in command], cwd=ROOT, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def finish(process):
    out, err = process.communicate()
    if process.returncode != 0:
        sys.exit(f"{' '.join(process.args)}\n{out}{err}")
    return out


def run(*command):
    return finish(start(*command))


def share_kernels(folder):
    """Makes PyTorch use the OpenBLAS kernels that Motley's workers use (docs/decisions/0021)."""
    facts = json.loads(run(MOTLEY, "doctor", "--run", folder / "doctor", "--json"))["machines"]
    core = facts["local"]["blas"].rpartition(", for ")[2]
    if core.isalnum():
        os.environ["OPENBLAS_CORETYPE"] = core


def write_cluster(path, machines, memory_gib=None, tokens_per_s=None):
    """memory_gib: declared by each machine; None = undeclared. tokens_per_s: of each machine; the devices are then
    virtual."""
    text = "[network]\ntrusted = true\n"
    for k, name in enumerate(machines):
        text += (f'\n[[machine]]\nname = "{name}"\naddress = "10.77.0.{name[1:]}"\n'
                 f'shell = ["{LAN}", "exec", "{name}"]\n')
        if memory_gib:
            text += f"memory_gib = {memory_gib[k]}\n"
        if tokens_per_s:
            text += f'devices = ["virtual"]\n[machine.virtual]\ntokens_per_s = {tokens_per_s[k]}\n'
    path.write_text(text)


def write_config(path, model, samples, steps, activations="auto"):
    """model: keys of [model] of a GPT with tied embedding and head, or {"path": a package}. With
    "micro_batch", the size is fixed instead of chosen by Motley."""
    model = dict(model)
    micro_batch = model.pop("micro_batch", 0)
    kind = 'kind = "package"' if "path" in model else 'kind = "gpt2"\ntied = true'
    path.write_text(
        f"[model]\n{kind}\n" +
        "".join(f"{key} = {json.dumps(value)}\n" for key, value in model.items()) +
        "[data]\nkind = \"synthetic\"\n"
        f"[train]\nsteps = {steps}\nglobal_batch = {samples}\neval_every = 0\nwarmup_steps = 1\n" +
        (f"micro_batch = {micro_batch}\n" if micro_batch else "") +
        f"[compression]\nactivations = \"{activations}\"\ngradients = \"auto\"\n"
        "[checkpoint]\nevery = 0\n")


def report_of(folder):
    return json.loads((folder / "report.json").read_text())


def sent_bytes(machines):
    return [int(run(LAN, "exec", name, "sh", "-c", "cat /sys/class/net/[!l]*/statistics/tx_bytes"))
            for name in machines]


def stolen():
    """CPU time of all cores taken by the host (steal), and total CPU time since boot, in ticks."""
    ticks = [int(word) for word in open("/proc/stat").readline().split()[1:]]
    return ticks[7], sum(ticks[:8])


def steal_since(before):
    """Steal time since `before`, in percent."""
    taken, all_ticks = (now - then for now, then in zip(stolen(), before))
    return 100 * taken / max(all_ticks, 1)


def shape_of(plan):
    """The machines of a plan's chunks in order, each with its number of layers."""
    return ", ".join(
        "+".join(plan["ranks"][r["rank"]]["machine"] for r in c["replicas"]) + f" {c['layer_count']}"
        for c in plan["chunks"])


def measure(folder, model, samples, machines):
    """The profile of all machines, measured concurrently."""
    cluster, config, profile = folder / "cluster.toml", folder / "all.toml", folder / "profile.json"
    write_cluster(cluster, machines)
    write_config(config, model, samples, 2)
    run(MOTLEY, "profile", config, "--measure", "--cluster", cluster, "--output", profile)
    return profile


def solo_rates(folder, model, samples, machines, shares, steps, profile, memory_gib=None):
    """Tokens/s (samples/s for models without tokens) of each machine alone, all concurrently. Batch sizes make them
    end together, with `samples` on the fastest. memory_gib: declared by each machine."""
    runs = []
    for name, share in zip(machines, shares):
        own_samples = max(1, round(samples * share / max(shares)))
        cluster, config = folder / f"{name}.cluster.toml", folder / f"{name}.toml"
        write_cluster(cluster, [name], memory_gib and [memory_gib])
        write_config(config, model, own_samples, steps)
        runs.append((start(MOTLEY, "launch", config, "--cluster", cluster, "--profile", profile,
                           "--run", folder / name), own_samples, folder / name))
    rates = []
    for process, own_samples, path in runs:
        finish(process)
        rates.append(own_samples * model.get("context", 1) / report_of(path)["step_s"]["measured"])
    return rates
