#!/usr/bin/env python3
"""Learning rates of PyTorch's and transformers' schedulers, for lr_schedule_test.cc.

  make_schedule_golden.py > golden/schedules.txt     needs torch and transformers

Lines: schedule, warm-up steps, steps, lowest rate, for wsd the steps of its decay, then the rate of each step for a peak
rate of 1.
"""
import sys, warnings
import torch, transformers
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from transformers import (get_constant_schedule_with_warmup, get_cosine_schedule_with_warmup,
                          get_cosine_with_min_lr_schedule_with_warmup, get_linear_schedule_with_warmup,
                          get_wsd_schedule)

warnings.filterwarnings("ignore")


def rates(make, steps):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler, found = make(optimizer), []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


def torch_cosine(warmup, steps, lowest):
    cosine = lambda o: CosineAnnealingLR(o, steps - warmup, eta_min=lowest)
    if warmup == 0:
        return cosine
    # PyTorch requires a first rate above 0.
    return lambda o: SequentialLR(o, [LinearLR(o, 1e-9, total_iters=warmup), cosine(o)], [warmup])


def line(schedule, warmup, steps, lowest, make):
    print(schedule, warmup, steps, lowest, *(repr(float(rate)) for rate in rates(make, steps)))


print(f"# torch {torch.__version__.split('+')[0]}, transformers {transformers.__version__}")
for warmup, steps in ((0, 1), (0, 10), (2, 10), (10, 110), (7, 8)):
    line("linear", warmup, steps, 0, lambda o: get_linear_schedule_with_warmup(o, warmup, steps))
    line("cosine", warmup, steps, 0, lambda o: get_cosine_schedule_with_warmup(o, warmup, steps))
    line("constant", warmup, steps, 0, lambda o: get_constant_schedule_with_warmup(o, warmup))
    line("cosine", warmup, steps, 0.2, lambda o: get_cosine_with_min_lr_schedule_with_warmup(o, warmup, steps, min_lr=0.2))
    line("cosine", warmup, steps, 0, torch_cosine(warmup, steps, 0))
    line("cosine", warmup, steps, 0.2, torch_cosine(warmup, steps, 0.2))
for warmup, steps, decay, lowest in ((0, 10, 3, 0), (2, 10, 1, 0), (10, 110, 40, 0), (7, 8, 1, 0), (0, 60, 12, 0.2), (5, 10, 5, 0)):
    print("wsd", warmup, steps, lowest, decay, *(repr(float(rate)) for rate in rates(
        lambda o: get_wsd_schedule(o, warmup, decay, num_training_steps=steps, decay_type="linear", min_lr_ratio=lowest), steps)))
line("linear", 0, 10, 0.2, lambda o: LinearLR(o, 1, 0.2, total_iters=10))
