#!/usr/bin/env python3
"""Writes golden/optimizer.txt: the results of torch.optim for four values in twenty updates.

Needs PyTorch 1.13 (Debian: python3-torch). Run it in any folder; review the difference before
committing. Lines: "case NAME OPTIMIZER LR DECAY BETA1 BETA2 EPSILON MOMENTUM", then for each
update "gradients ..." and "values ...". Floats are hexadecimal, so nothing is rounded.
"""
import math
import pathlib

import torch

UPDATES = 20
START = [0.5, -1.25, 3.0, 0.0]

CASES = [
    # name, optimizer, lr, decay, beta1, beta2, epsilon, momentum
    ("adamw_usual", "adamw", 3e-4, 0.1, 0.9, 0.95, 1e-8, 0.0),
    ("adamw_without_decay", "adamw", 1e-2, 0.0, 0.9, 0.999, 1e-8, 0.0),
    ("adamw_large_epsilon", "adamw", 0.1, 0.01, 0.8, 0.9, 1e-2, 0.0),
    ("sgd_usual", "sgd", 0.1, 0.01, 0.0, 0.0, 1e-8, 0.9),
    ("sgd_plain", "sgd", 0.01, 0.0, 0.0, 0.0, 1e-8, 0.0),
]


def make(case, parameter):
    _, kind, lr, decay, beta1, beta2, epsilon, momentum = case
    if kind == "sgd":
        return torch.optim.SGD([parameter], lr=lr, momentum=momentum, weight_decay=decay)
    return torch.optim.AdamW([parameter], lr=lr, betas=(beta1, beta2), eps=epsilon,
                             weight_decay=decay, foreach=False)


def hexes(tensor):
    return " ".join(float(value).hex() for value in tensor)


def lines(case):
    yield "case " + " ".join(str(field) for field in case)
    parameter = torch.nn.Parameter(torch.tensor(START))
    optimizer = make(case, parameter)
    for update in range(1, UPDATES + 1):
        # Changing signs and magnitudes, and one parameter with tiny gradients.
        parameter.grad = torch.tensor([math.sin(update), math.cos(3 * update) * 10.0,
                                       1e-6 * update, -1.0 / update])
        yield "gradients " + hexes(parameter.grad)
        optimizer.step()
        yield "values " + hexes(parameter.detach())


path = pathlib.Path(__file__).parent / "golden" / "optimizer.txt"
path.write_text("".join(line + "\n" for case in CASES for line in lines(case)))
