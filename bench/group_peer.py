#!/usr/bin/python3
"""One rank of PyTorch data parallelism on Gloo, the baseline of bench/group_efficiency. Rank 0
prints one JSON object.

Each rank computes its share of the global batch in micro-batches. DistributedDataParallel all-reduces
the gradients in the last backward, weighted by the token counts. --hook fp16 is PyTorch's fp16
communication hook. --family selects a model of bench/package_models.py, whose share is one micro-batch.
"""
import argparse
import contextlib
import datetime
import json
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

from solo_step_peer import Gpt


class WithLoss(torch.nn.Module):
    """A module that returns its loss."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, input, target):
        return torch.nn.functional.cross_entropy(self.module(input).flatten(0, -2), target.flatten())


def job_of(a, share):
    """The model, its batches and the number of samples per micro-batch."""
    if a.family:
        from package_models import FAMILIES
        family = FAMILIES[a.family]
        return WithLoss(family.make()), lambda: family.batch(share), share
    return Gpt(a), lambda: tuple(torch.randint(a.vocab, (share, a.context)) for _ in range(2)), a.micro


def main():
    parser = argparse.ArgumentParser()
    for name, value in dict(layers=8, width=512, heads=8, vocab=8192, context=256, steps=5, warmup=2,
                            micro=4, rank=0).items():
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--family")
    parser.add_argument("--shares", required=True, help="samples of each rank in a step, 18,9,5")
    parser.add_argument("--master", required=True, help="ADDRESS:PORT of rank 0")
    parser.add_argument("--hook", choices=["none", "fp16"], default="none")
    a = parser.parse_args()
    a.dropout = 0.0
    shares = [int(share) for share in a.shares.split(",")]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", init_method="tcp://" + a.master, rank=a.rank,
                            world_size=len(shares), timeout=datetime.timedelta(minutes=10))
    module, make_batch, micro = job_of(a, shares[a.rank])
    model = DistributedDataParallel(module)
    if a.hook == "fp16":
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    seconds = []
    for step in range(a.warmup + a.steps):
        torch.manual_seed(100 * step + a.rank)
        ids, targets = make_batch()
        dist.barrier()
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        firsts = range(0, shares[a.rank], micro)
        for first in firsts:
            is_last = first == firsts[-1]
            part = slice(first, first + micro)
            with contextlib.nullcontext() if is_last else model.no_sync():
                loss = model(ids[part], targets[part])
                # DDP divides by the number of ranks; the loss is the mean over all tokens.
                weight = len(ids[part]) / sum(shares) * len(shares)
                (loss * weight).backward()
        optimizer.step()
        dist.barrier()
        seconds.append(time.perf_counter() - start)
    if a.rank == 0:
        middle = sorted(seconds[a.warmup:])[a.steps // 2]
        print(json.dumps({"step_s": middle, "loss": loss.item(), "torch": torch.__version__}))


if __name__ == "__main__":
    main()
