#!/usr/bin/python3
"""Compares Motley's codecs with the same operations in PyTorch on one core, alternating per round.

    taskset -c 0 /usr/bin/python3 bench/codec_speed_peer.py [--mib 256] [--slice-kib 256] [--rounds 5]

Prints medians in GB/s of fp32 values, each counted once, and the ratio of Motley's rate to PyTorch's.
build/core/bin/codec_speed measures Motley. PyTorch (python3-torch) runs eagerly and writes into
preallocated tensors where its operations support that. Its int8 uses blocks of 128 values with the
largest magnitude mapped to 127, like Motley's. Its topk covers the slice, or at most 16 MiB of it,
because it takes seconds. "mask" is topk by a threshold: a comparison and a gather with nonzero().
One slice is one tensor.
"""
import argparse
import json
import os
import statistics
import subprocess
import time

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
import torch  # noqa: E402

MOTLEY = "build/core/bin/codec_speed"
TOPK_VALUES_MAX = 4 << 20
DENSITY = 0.01
MOMENTUM = 0.9
CHAINS = ["fp16", "bf16", "int8", "int4", "topk(0.01)", "topk(0.01)|fp16"]


class Half:
    def __init__(self, count, dtype):
        self.wire = torch.empty(count, dtype=dtype)
        self.residual = torch.zeros(count)

    def encode(self, gradient):
        self.wire.copy_(gradient)

    def decode(self, out):
        out.copy_(self.wire)

    def add(self, out):
        out.add_(self.wire)

    def feedback(self, gradient):
        self.encode(self.residual.add_(gradient))
        self.residual.sub_(self.wire)


class Int8:
    def __init__(self, count):
        self.wire = torch.empty(count // 128, 128, dtype=torch.int8)
        self.scratch = torch.empty(count // 128, 128)
        self.residual = torch.zeros(count)

    def encode(self, gradient):
        blocks = gradient.view(-1, 128)
        torch.abs(blocks, out=self.scratch)
        self.scale = self.scratch.amax(1, keepdim=True).div_(127).clamp_min_(1e-30)
        torch.div(blocks, self.scale, out=self.scratch)
        self.wire.copy_(self.scratch.round_())

    def decode(self, out):
        torch.mul(self.wire, self.scale, out=out.view(-1, 128))

    def add(self, out):
        out.view(-1, 128).addcmul_(self.wire.to(torch.float32), self.scale)

    def feedback(self, gradient):
        self.encode(self.residual.add_(gradient))
        self.residual.view(-1, 128).sub_(torch.mul(self.wire, self.scale, out=self.scratch))


class Sparse:
    """select(magnitudes) returns the indices to send; make() creates a separate selector for each operation."""

    def __init__(self, count, make):
        self.plain, self.fed_back, self.gathered = make(), make(), make()
        self.residual, self.velocity = torch.zeros(count), torch.zeros(count)
        self.gathered_residual = torch.zeros(count)
        self.scratch = torch.empty(count)

    def send(self, values, select):
        self.places = select(torch.abs(values, out=self.scratch))
        self.values = values[self.places]

    def encode(self, gradient):
        self.send(gradient, self.plain)

    def feedback(self, gradient):
        self.send(self.residual.add_(gradient), self.fed_back)
        self.residual[self.places] = 0

    def momentum(self, gradient):
        self.velocity.mul_(MOMENTUM).add_(gradient)
        self.send(self.gathered_residual.add_(self.velocity), self.gathered)
        self.gathered_residual[self.places] = self.velocity[self.places] = 0

    def decode(self, out):
        out.zero_()[self.places] = self.values

    def add(self, out):
        out.index_add_(0, self.places, self.values)


def largest(magnitudes):
    return torch.topk(magnitudes, int(DENSITY * magnitudes.numel()), sorted=False).indices


class Above:
    """A threshold that adapts to the selected share, as Motley's does. The initial value fits normally distributed
    values."""

    def __init__(self):
        self.threshold = 2.576

    def __call__(self, magnitudes):
        places = (magnitudes >= self.threshold).nonzero().squeeze(1)
        self.threshold *= (max(places.numel(), 1) / (DENSITY * magnitudes.numel())) ** 0.125
        return places


class Timed:
    """Runs one codec over all slices and records the seconds of each operation."""

    def __init__(self, gradient, slice_values, make):
        self.gradients = gradient.split(slice_values)
        self.outs = torch.zeros_like(gradient).split(slice_values)
        self.coders = [make(slice.numel()) for slice in self.gradients]
        self.bytes = 4 * gradient.numel()
        self.rates = {}

    def round(self, keep):
        for operation in ("encode", "momentum", "feedback", "decode", "add"):
            if not hasattr(self.coders[0], operation):
                continue
            slices = self.outs if operation in ("decode", "add") else self.gradients
            start = time.thread_time()
            for coder, slice in zip(self.coders, slices):
                getattr(coder, operation)(slice)
            if keep:
                rate = self.bytes / (time.thread_time() - start)
                self.rates.setdefault(operation, []).append(rate)


def motley_round(a, rates):
    command = [MOTLEY, "--json", "--rounds", "1", "--mib", str(a.mib),
               "--slice-kib", str(a.slice_kib), *CHAINS]
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        measured = json.loads(line)
        codec = rates.setdefault(measured.pop("codec"), {})
        for operation, rate in measured.items():
            if rate > 0:
                codec.setdefault(operation, []).append(rate)


def peers(a):
    values = a.mib << 18
    slice_values = (a.slice_kib << 8) or values
    gradient = torch.randn(values)
    few = gradient[:min(values, TOPK_VALUES_MAX)].clone()
    return {
        "fp16": Timed(gradient, slice_values, lambda n: Half(n, torch.float16)),
        "bf16": Timed(gradient, slice_values, lambda n: Half(n, torch.bfloat16)),
        "int8": Timed(gradient, slice_values, Int8),
        "topk(0.01)": Timed(few, min(slice_values, few.numel()), lambda n: Sparse(n, lambda: largest)),
        "mask": Timed(gradient, slice_values, lambda n: Sparse(n, Above)),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--slice-kib", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    a = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    ours, theirs = {}, peers(a)
    for number in range(-1, a.rounds):
        for timed in theirs.values():
            timed.round(keep=number >= 0)
        if number >= 0:
            motley_round(a, ours)
    copies = [rate for codec in ours.values() for rate in codec["memcpy"]]
    sums = [rate for codec in ours.values() for rate in codec["sum"]]
    memcpy = statistics.median(copies) / 1e9
    print(f"{a.mib} MiB of fp32 in slices of {a.slice_kib or a.mib << 10} KiB, one core, medians of "
          f"{a.rounds} rounds; memcpy {memcpy:.2f} GB/s, a += b {statistics.median(sums) / 1e9:.2f}")
    print(f"{'codec':<16} {'operation':<9} {'Motley GB/s':>11} {'of memcpy':>9}   PyTorch GB/s: Motley / PyTorch")
    for chain, operations in ours.items():
        names = ["topk(0.01)", "mask"] if chain == "topk(0.01)" else [chain]
        for operation in ("encode", "feedback", "momentum", "decode", "add"):
            if operation not in operations:
                continue
            rate = statistics.median(operations[operation]) / 1e9
            beside = []
            for name in names:
                if name in theirs and operation in theirs[name].rates:
                    peer = statistics.median(theirs[name].rates[operation]) / 1e9
                    beside.append(f"{name} {peer:.2f}: {rate / peer:.1f}")
            print(f"{chain:<16} {operation:<9} {rate:>11.2f} {rate / memcpy:>9.2f}   {'   '.join(beside) or '-'}")


if __name__ == "__main__":
    main()
