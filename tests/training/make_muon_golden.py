#!/usr/bin/env python3
"""Writes golden/muon.txt: the results of Muon for small matrices in some updates, computed in double by numpy.

The steps are those of torch.optim.Muon (PyTorch 2.9) with nesterov=True and adjust_lr_fn="match_rms_adamw", without the
rounding of its iteration to bfloat16. Run it in any folder; review the difference before committing. Lines: "case NAME
ROWS COLUMNS LR DECAY MOMENTUM", then for each update "gradients ..." and "values ...", rows one after the other. Floats
are hexadecimal, rounded to fp32.
"""
import math
import pathlib

import numpy

CASES = [
    # name, rows, columns, lr, decay, momentum, updates
    ("wide", 3, 7, 2e-2, 0.1, 0.95, 20),
    ("tall", 9, 4, 2e-2, 0.0, 0.95, 20),
    ("square", 5, 5, 1e-3, 0.5, 0.8, 20),
    ("more_panels", 17, 20, 1e-2, 0.1, 0.9, 4),
]


def orthogonal(update):
    x = update.T if update.shape[0] > update.shape[1] else update
    x = x / max(numpy.linalg.norm(x), 1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x.T if update.shape[0] > update.shape[1] else x


def hexes(matrix):
    return " ".join(float(value).hex() for value in matrix.astype(numpy.float32).flatten())


def lines(case):
    name, rows, columns, lr, decay, momentum, updates = case
    yield "case " + " ".join(str(field) for field in case[:-1])
    draws = numpy.random.RandomState(rows * 100 + columns)
    single = lambda values: values.astype(numpy.float32).astype(numpy.float64)
    parameter = single(draws.standard_normal((rows, columns)))
    mean = numpy.zeros((rows, columns))
    yield "start " + hexes(parameter)
    for _ in range(updates):
        gradient = single(draws.standard_normal((rows, columns)) * 0.3 + 0.1)
        yield "gradients " + hexes(gradient)
        mean += (1 - momentum) * (gradient - mean)
        update = gradient + momentum * (mean - gradient)
        rate = lr * 0.2 * math.sqrt(max(rows, columns))
        parameter = parameter * (1 - lr * decay) - rate * orthogonal(update)
        yield "values " + hexes(parameter)


path = pathlib.Path(__file__).parent / "golden" / "muon.txt"
path.write_text("".join(line + "\n" for case in CASES for line in lines(case)))
