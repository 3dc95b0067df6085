#!/usr/bin/python3
"""One stage of a hand-written PyTorch pipeline on Gloo, a baseline of bench/group_efficiency.
The last rank prints one JSON object.

Plain 1F1B with micro-batches of one sample, given cuts between blocks, fp16 over the wire, sends and
receives posted ahead (isend, irecv), and the gradient of the tied embedding summed over both ends.
"""
import argparse
import datetime
import json
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from solo_step_peer import Block


class Stage(nn.Module):
    def __init__(self, a, first_block, last_block):
        super().__init__()
        self.is_first, self.is_last = a.rank == 0, a.rank == a.world - 1
        if self.is_first or self.is_last:
            self.tokens = nn.Embedding(a.vocab, a.width)
            nn.init.normal_(self.tokens.weight, std=0.02)
        if self.is_first:
            self.positions = nn.Embedding(a.context, a.width)
        self.blocks = nn.Sequential(*(Block(a) for _ in range(first_block, last_block)))
        if self.is_last:
            self.norm = nn.LayerNorm(a.width)

    def forward(self, x, targets):
        if self.is_first:
            x = self.tokens(x) + self.positions(torch.arange(x.shape[1]))
        x = self.blocks(x)
        if not self.is_last:
            return x
        return F.cross_entropy((self.norm(x) @ self.tokens.weight.t()).flatten(0, 1), targets.flatten())


class Pipeline:
    def __init__(self, a, stage, ends):
        self.a, self.stage, self.ends = a, stage, ends
        self.shape = (1, a.context, a.width)

    def post(self, source):
        buffer = torch.empty(self.shape, dtype=torch.float16)
        return buffer, dist.irecv(buffer, source)

    def take(self, posted):
        buffer, work = posted
        work.wait()
        return buffer.float()

    def send(self, tensor, to):
        half = tensor.detach().half()
        self.sent.append((half, dist.isend(half, to)))

    def step(self, ids, targets):
        a, stage = self.a, self.stage
        micros = a.samples
        warm_up = min(a.world - a.rank, micros)
        self.sent, kept = [], {}
        posted_x = {m: self.post(a.rank - 1) for m in range(min(2, micros))} if a.rank else {}
        posted_g = {0: self.post(a.rank + 1)} if a.rank + 1 < a.world else {}

        def forward(m):
            if a.rank:
                x = self.take(posted_x.pop(m)).requires_grad_()
                if m + 2 < micros:
                    posted_x[m + 2] = self.post(a.rank - 1)
            else:
                x = ids[m:m + 1]
            y = stage(x, targets[m:m + 1])
            kept[m] = (x, y)
            if a.rank + 1 < a.world:
                self.send(y, a.rank + 1)
            return y

        def backward(m):
            x, y = kept.pop(m)
            if a.rank + 1 < a.world:
                if m + 1 < micros:
                    posted_g[m + 1] = self.post(a.rank + 1)
                y.backward(self.take(posted_g.pop(m)))
            else:
                (y / micros).backward()
            if a.rank:
                self.send(x.grad, a.rank - 1)

        loss = 0.0
        for m in range(micros):
            y = forward(m)
            loss += float(y.detach()) / micros if stage.is_last else 0.0
            if m + 1 >= warm_up:
                backward(m + 1 - warm_up)
        for m in range(micros - warm_up + 1, micros):
            backward(m)
        for _, work in self.sent:
            work.wait()
        if stage.is_first or stage.is_last:
            dist.all_reduce(stage.tokens.weight.grad, group=self.ends)
        return loss


def main():
    parser = argparse.ArgumentParser()
    for name, value in dict(layers=8, width=512, heads=8, vocab=8192, context=256, steps=5, warmup=2,
                            samples=32, rank=0).items():
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--blocks", required=True, help="blocks of each stage, 5,3,0; the head is on the last")
    parser.add_argument("--master", required=True, help="ADDRESS:PORT of rank 0")
    a = parser.parse_args()
    a.dropout = 0.0
    blocks = [int(count) for count in a.blocks.split(",")]
    a.world = len(blocks)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", init_method="tcp://" + a.master, rank=a.rank, world_size=a.world,
                            timeout=datetime.timedelta(minutes=10))
    ends = dist.new_group([0, a.world - 1])
    first = sum(blocks[:a.rank])
    stage = Stage(a, first, first + blocks[a.rank])
    optimizer = torch.optim.AdamW(stage.parameters(), lr=3e-4)
    pipeline = Pipeline(a, stage, ends)
    seconds = []
    for step in range(a.warmup + a.steps):
        torch.manual_seed(100 + step)  # the same data on all ranks, as if each read the data set
        ids = torch.randint(a.vocab, (a.samples, a.context))
        targets = torch.randint(a.vocab, (a.samples, a.context))
        dist.barrier()
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = pipeline.step(ids, targets)
        optimizer.step()
        dist.barrier()
        seconds.append(time.perf_counter() - start)
    if a.rank == a.world - 1:
        middle = sorted(seconds[a.warmup:])[a.steps // 2]
        print(json.dumps({"step_s": middle, "tokens_per_s": a.samples * a.context / middle,
                          "loss": loss, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
