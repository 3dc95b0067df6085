#!/usr/bin/env python3
"""Two diffusion models on digits by motley.train, compared with plain PyTorch.

    python3 compare.py [MODEL]…            # dit, unet; both by default

For each it prints
- `loop`: over 20 steps, the largest relative difference of a step's loss from a plain loop with the same samples and the same draws;
- `stages`: whether the run on two and on three stages has the same bits;
- `held-out`: the loss that Motley reports after 300 steps, its relative difference from that of the exported weights with the same
  draws, and the mean and the standard deviation with fresh noise of PyTorch, by 20 seeds;
- `seeds`: the held-out loss with fresh noise of five plain loops whose draws are PyTorch's own.

The exit status is 1 if a result is not as it has to be.
"""

from __future__ import annotations

import copy
import os
import statistics
import subprocess
import sys
import tempfile
import warnings
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import torch
import torch.nn as nn

import motley
from denoisers import DiffusionTransformer, UNet
from noising import TIMES, Noising, mean_square

for _folder in ("digits", "same_steps"):
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", _folder))

from data_order import samples_of  # noqa: E402
from drawn_digits import drawn_digits  # noqa: E402
from drawn_numbers import Draw  # noqa: E402

SAMPLES, HELD_OUT, BATCH = 2048, 512, 32
LR, BETAS, DECAY = 2e-3, (0.9, 0.999), 0.01
MOST = 1e-5
"""Largest relative difference of a step's loss: sums in another order, over 20 steps."""
DEVIATIONS = 4
"""Of a held-out loss, one draw of the noise, from the mean of others: beyond them is one in 16,000."""

MODELS: Dict[str, Callable[[], nn.Module]] = {"dit": lambda: DiffusionTransformer(1, 16, 4), "unet": lambda: UNet(1)}

Drawn = Callable[[int, torch.Tensor], Tuple[torch.Tensor, torch.Tensor]]
"""Time and noise of a step, 0 for an evaluation, for pictures."""


def model_of(name: str) -> Noising:
    torch.manual_seed(1)
    return Noising(MODELS[name]())


class Digits(NamedTuple):
    images: torch.Tensor
    labels: torch.Tensor

    def named(self) -> Any:
        """Inputs by name, and a target that the loss does not read."""
        return {"images": self.images, "labels": self.labels}, torch.zeros(len(self.labels))


def digits(count: int, seed: int = 0) -> Digits:
    """Values of about -1 to 1."""
    images, labels = drawn_digits(count, seed)
    return Digits(2 * images - 1, labels)


def motleys(step: int, images: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """What Motley draws: the model's first layer draws the time, then the noise."""
    return Draw(step, 0, 0).integers((len(images),), TIMES), Draw(step, 0, 1).normal(images.shape)


def fresh(step: int, images: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(TIMES, (len(images),)), torch.randn_like(images)


def trained(model: Noising, data: Digits, held_out: Digits, folder: str, steps: int, **settings: Any) -> motley.Run:
    return motley.train(
        model, mean_square, data.named(), eval_data=held_out.named(), run=folder, steps=steps, global_batch=BATCH, lr=LR,
        warmup_steps=0, schedule="constant", clip=1.0, beta1=BETAS[0], beta2=BETAS[1], weight_decay=DECAY, eval_every=steps,
        eval_batches=len(held_out.labels) // BATCH, run__threads=1, profile__seconds=1.0, follow=lambda line: None, **settings)


def plain_losses(model: Noising, data: Digits, steps: int, drawn: Drawn) -> List[float]:
    """Trains `model` by PyTorch alone, with the same samples in each step."""
    parameters = list(model.parameters())
    groups = [{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": DECAY},
              {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=BETAS, eps=1e-8)
    losses = []
    for step in range(steps):
        rows = samples_of(step, BATCH, len(data.labels))
        images, labels = data.images[rows], data.labels[rows]
        loss = model.error(images, labels, *drawn(step + 1, images)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def held_out_loss(model: Noising, data: Digits, drawn: Drawn) -> float:
    with torch.no_grad():
        return float(model.error(data.images, data.labels, *drawn(0, data.images)).square().mean())


def by_seeds(model: Noising, data: Digits, seeds: int = 20) -> Tuple[float, float]:
    """Mean and standard deviation of the held-out loss with PyTorch's own noise."""
    found = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        found.append(held_out_loss(model, data, fresh))
    return statistics.mean(found), statistics.stdev(found)


def largest_difference(found: List[float], right: List[float]) -> float:
    assert len(found) == len(right) > 0
    return max(abs(a - b) / abs(b) for a, b in zip(found, right))


def on_stages(run: motley.Run, stages: int) -> bool:
    """Whether the same training on several stages of this machine ends with the same bits."""
    other = f"{run.run}-{stages}"
    subprocess.run([run.program, "train", run.config, "--run", other, "--stages", str(stages), "--quiet"], check=True, stdout=subprocess.DEVNULL)
    differences = subprocess.run([run.program, "ckpt", "diff", run.run, other], stdout=subprocess.PIPE, text=True)
    return differences.returncode == 0


def compare(name: str, folder: str) -> bool:
    """Prints the results of one model, and returns whether they are as they have to be."""
    data, held_out = digits(SAMPLES), digits(HELD_OUT, seed=1)
    run = trained(model_of(name), data, held_out, os.path.join(folder, f"{name}-short"), 20)
    difference = largest_difference([line["loss"] for line in run.metrics()], plain_losses(model_of(name), data, 20, motleys))
    are_equal = all([on_stages(run, stages) for stages in (2, 3)])

    run = trained(model_of(name), data, held_out, os.path.join(folder, name), 300)
    model = model_of(name)
    model.load_state_dict(run.state_dict())
    found, right = run.metrics()[-1]["eval_loss"], held_out_loss(model, held_out, motleys)
    mean, deviation = by_seeds(model, held_out)
    seeds = []
    for seed in range(5):
        plain = copy.deepcopy(model_of(name))
        torch.manual_seed(100 + seed)
        plain_losses(plain, data, 300, fresh)
        seeds.append(by_seeds(plain, held_out)[0])
    is_right = (difference <= MOST and are_equal and abs(found - right) <= MOST * right and abs(found - mean) <= DEVIATIONS * deviation
                and min(seeds) - DEVIATIONS * statistics.stdev(seeds) <= mean <= max(seeds) + DEVIATIONS * statistics.stdev(seeds))
    print(f"{name:5} loop {difference:.1e}, stages {'equal' if are_equal else 'DIFFERENT'}, held-out {found:.4f}, by the same draws "
          f"{abs(found - right) / right:.1e}, fresh noise {mean:.4f} ± {deviation:.4f}, seeds {' '.join(f'{x:.4f}' for x in sorted(seeds))}"
          f"{'' if is_right else '  WRONG'}", flush=True)
    return is_right


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as _folder:
        sys.exit(0 if all([compare(name, _folder) for name in sys.argv[1:] or MODELS]) else 1)
