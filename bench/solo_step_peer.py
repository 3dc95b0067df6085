#!/usr/bin/python3
"""Eager PyTorch's speed on the model of bench/solo_step.cc. Prints one JSON object.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 taskset -c 0 /usr/bin/python3 bench/solo_step_peer.py \
        --layers 8 --width 512 --heads 8 --vocab 8192 --context 256 --batch 4

An independent GPT-2 in the usual style (nn.Linear, one matrix product for all heads, masked
softmax, F.cross_entropy). Timed: zero_grad, forward and backward; --optimizer adds AdamW's step.
PyTorch 2 options: --fused uses its fused attention; --compiled also measures torch.compile.
"""
import argparse
import json
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.heads = a.heads
        self.fused = getattr(a, "fused", False)  # since PyTorch 2
        self.project_in = nn.Linear(a.width, 3 * a.width)
        self.project_out = nn.Linear(a.width, a.width)
        self.drop = nn.Dropout(a.dropout)
        mask = torch.tril(torch.ones(a.context, a.context)).view(1, 1, a.context, a.context)
        self.register_buffer("mask", mask)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2)
                   for t in self.project_in(x).split(width, dim=2))
        if self.fused:
            mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=self.drop.p if self.training else 0.0, is_causal=True)
            return self.drop(self.project_out(mixed.transpose(1, 2).reshape(batch, length, width)))
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf"))
        mixed = self.drop(F.softmax(scores, dim=-1)) @ v
        return self.drop(self.project_out(mixed.transpose(1, 2).reshape(batch, length, width)))


class Block(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(a.width), nn.LayerNorm(a.width)
        self.attention = Attention(a)
        self.expand, self.contract = nn.Linear(a.width, 4 * a.width), nn.Linear(4 * a.width, a.width)
        self.drop = nn.Dropout(a.dropout)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        inner = F.gelu(self.expand(self.norm2(x)), approximate="tanh")
        return x + self.drop(self.contract(inner))


class Gpt(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(a.vocab, a.width), nn.Embedding(a.context, a.width)
        self.blocks = nn.Sequential(*(Block(a) for _ in range(a.layers)))
        self.norm = nn.LayerNorm(a.width)
        self.head = nn.Linear(a.width, a.vocab, bias=False)
        self.head.weight = self.tokens.weight
        self.drop = nn.Dropout(a.dropout)
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, ids, targets):
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.blocks(self.drop(self.tokens(ids) + self.positions(places)))
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def main():
    parser = argparse.ArgumentParser()
    for name, value in dict(layers=8, width=512, heads=8, vocab=8192, context=256, batch=4,
                            steps=5, warmup=2, threads=1).items():
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--optimizer", action="store_true")
    parser.add_argument("--fused", action="store_true")
    parser.add_argument("--compiled", action="store_true")
    a = parser.parse_args()
    a.fused = a.fused or a.compiled
    if a.threads > 0:
        torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    model = Gpt(a)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    forward = torch.compile(model) if a.compiled else model
    ids = torch.randint(a.vocab, (a.batch, a.context))
    targets = torch.randint(a.vocab, (a.batch, a.context))
    seconds = []
    for _ in range(a.warmup + a.steps):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = forward(ids, targets)
        loss.backward()
        if a.optimizer:
            optimizer.step()
        seconds.append(time.perf_counter() - start)
    middle = sorted(seconds[a.warmup:])[a.steps // 2]
    print(json.dumps({"tokens_per_s": a.batch * a.context / middle, "step_s": middle,
                      "timed": "step" if a.optimizer else "forward and backward",
                      "loss": loss.item(), "torch": torch.__version__}))


if __name__ == "__main__":
    main()
