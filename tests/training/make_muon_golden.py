#!/usr/bin/env python3
"""Writes golden/muon.txt: the results of torch.optim.Muon for small matrices in some updates.

Needs PyTorch 2.9 or later. Its iteration runs in bfloat16; here the conversion is replaced, so that all of it is in
fp32. Run it in any folder; review the difference before committing. Lines: "case NAME ROWS COLUMNS LR DECAY MOMENTUM",
then for each update "gradients ..." and "values ...", rows one after the other. Floats are hexadecimal, so nothing is
rounded.
"""
import pathlib

import torch

CASES = [
    # name, rows, columns, lr, decay, momentum, updates
    ("wide", 3, 7, 2e-2, 0.1, 0.95, 20),
    ("tall", 9, 4, 2e-2, 0.0, 0.95, 20),
    ("square", 5, 5, 1e-3, 0.5, 0.8, 20),
    ("more_panels", 17, 20, 1e-2, 0.1, 0.9, 4),
]


def hexes(tensor):
    return " ".join(float(value).hex() for value in tensor.flatten())


def lines(case):
    name, rows, columns, lr, decay, momentum, updates = case
    yield "case " + " ".join(str(field) for field in case[:-1])
    torch.manual_seed(rows * 100 + columns)
    parameter = torch.nn.Parameter(torch.randn(rows, columns))
    yield "start " + hexes(parameter.detach())
    optimizer = torch.optim.Muon([parameter], lr=lr, weight_decay=decay, momentum=momentum, nesterov=True,
                                 adjust_lr_fn="match_rms_adamw")
    for _ in range(updates):
        parameter.grad = torch.randn(rows, columns) * 0.3 + 0.1
        yield "gradients " + hexes(parameter.grad)
        optimizer.step()
        yield "values " + hexes(parameter.detach())


torch.Tensor.bfloat16 = lambda self: self.clone()
path = pathlib.Path(__file__).parent / "golden" / "muon.txt"
path.write_text("".join(line + "\n" for case in CASES for line in lines(case)))
