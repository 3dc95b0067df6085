#!/usr/bin/env python3
"""Splits the models of model_list.py, as their authors wrote them, with `motley.split` by their trace.

    pip install torch torchvision transformers timm peft diffusers
    PYTHONPATH=python python3 examples/split_models.py [--quick] [--more] [NAME…]

Prints for each model its layers, the number of its blocks, and the largest difference of the loss and of any gradient from
eager PyTorch, for a package that is run at a batch size that was not traced; or the refusal. The layers are compared with the
unmodified model, the package without dropout, since Motley has its own masks. Returns 1 if a difference is more than 1e-5, a
model has fewer layers than blocks, or a refusal is missing or unexpected. With --quick no packages are made; --more adds models
that were not used in development.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
import warnings
from typing import Callable, Dict, List, NamedTuple, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F

import motley
from model_builders import LENGTH, VOCABULARY, Entry
from model_list import MODELS, MORE_MODELS
from motley.comparison import Comparison
from motley.interpret import Package
from motley.layers import Layers, Names
from motley.modules import ModuleStack, preserved_state

LARGEST_DIFFERENCE = 1e-5
_FLOOR = 1e-2  # relative to the largest gradient: smaller ones, e.g. of a bias before BatchNorm, may be only rounding


def loss_of(kind: str) -> Callable[[torch.Tensor, torch.Tensor], Tuple[torch.Tensor, torch.Tensor]]:
    def total(output: torch.Tensor, target: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        if kind == "any":
            return (output * torch.sin(output)).sum(), torch.full((), output.size(0), dtype=torch.int64)
        if kind == "classes":
            return F.cross_entropy(output, target, reduction="sum"), torch.full((), output.size(0), dtype=torch.int64)
        return F.cross_entropy(output.flatten(0, 1), target.flatten(), reduction="sum"), torch.full((), target.numel(), dtype=torch.int64)
    return total


def target_of(kind: str, count: int) -> torch.Tensor:
    if kind == "any":
        return torch.zeros(count)
    return torch.randint(2 if kind == "classes" else VOCABULARY, (count,) if kind == "classes" else (count, LENGTH))


def compare(layers: Layers, input: torch.Tensor) -> None:
    """Raises if the layers differ from the model, with dropout; `export` does the same first."""
    names = Names(layers)
    with preserved_state([root for _, root in layers.roots]), ModuleStack(names.modules) as modules:
        Comparison(layers, names, modules).run(input, VOCABULARY)


def without_dropout(model: nn.Module, change: bool = True) -> bool:
    """Whether the model has dropout; with `change`, sets its probabilities to 0."""
    found = False
    names = ("dropout", "attention_dropout", "activation_dropout", "attn_dropout", "hidden_dropout", "dropout_p", "dropout_prob", "drop_prob", "p",
             "attention_dropout_prob", "drop", "resid_pdrop", "stochastic_depth_prob", "classifier_dropout", "dropout_rate")
    for module in model.modules():
        for name in names:
            if isinstance(getattr(module, name, None), float) and getattr(module, name) > 0:
                found = True
                if change:
                    setattr(module, name, 0.0)
    return found


class Result(NamedTuple):
    layers: int
    worst: float
    where: str
    traced: bool


def measured(entry: Entry, folder: str) -> Result:
    torch.manual_seed(1)
    model = entry.make().train()
    forward = entry.forward(model) if entry.forward else None
    loss = loss_of(entry.loss)
    limits = {"input_limit": VOCABULARY, "target_limit": 2 if entry.loss == "classes" else VOCABULARY}
    example = entry.batch(2), target_of(entry.loss, 2)
    layers = motley.split(model, example, forward=forward)
    quick = "--quick" in sys.argv
    if quick or without_dropout(model, change=False):
        compare(layers, example[0])
        if quick:
            return Result(len(layers.layers), 0.0, "not measured", layers.traced)
        without_dropout(model)
        layers = motley.split(model, example, forward=forward)
    done = motley.export(layers, loss, example, os.path.join(folder, "model.motley"), **limits)
    if entry.draws:
        return Result(done.layers, done.largest_difference, "a layer", layers.traced)
    package = Package.open(done.path)
    input, target = entry.batch(4), target_of(entry.loss, 4)
    torch.manual_seed(1)
    output = (forward or model)(input)
    output = getattr(output, "logits", output)
    output = output if isinstance(output, torch.Tensor) else next(iter(output.values())) if hasattr(output, "values") else output[0]
    right = loss(output, target)[0]
    right.backward()
    step = package.train(input, target)
    worst, where = _relative(step.loss, right.detach(), 0.0), "the loss"
    least = _FLOOR * max(float(p.grad.abs().max()) for p in model.parameters() if p.grad is not None)
    names = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad and parameter.grad is not None}
    missing = [name for name in names if name not in step.gradients]
    if missing:
        return Result(done.layers, float("inf"), f"no gradient of {missing[0]}", layers.traced)
    for name, parameter in names.items():
        difference = _relative(step.gradients[name], parameter.grad, least)
        if not difference <= worst:  # NaN too
            worst, where = difference, name
    return Result(done.layers, worst, where, layers.traced)


def _relative(found: torch.Tensor, right: torch.Tensor, least: float) -> float:
    return float((found - right).abs().max()) / max(float(right.abs().max()), least, 1e-30)


def line_of(entry: Entry) -> Tuple[bool, str]:
    """Whether the result is as expected, and the printed line."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = measured(entry, folder)
        except motley.ExportError as error:
            right = bool(entry.refused) and entry.refused in str(error)
            return right, f"{'refused' if right else 'REFUSED'} {error}"
        except Exception as error:
            if "--traceback" in sys.argv:
                traceback.print_exc()
            return False, f"FAILED {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    right = not entry.refused and found.worst <= LARGEST_DIFFERENCE and found.layers >= entry.blocks
    return right, (f"{'ok ' if right else 'OFF'} {found.layers:3} layers of {entry.blocks:2} blocks{'' if found.traced else ' (not cut)'}, "
                   f"largest difference {found.worst:.1e} ({found.where})")


def main(models: Dict[str, Entry], more: Dict[str, Entry], *arguments: str) -> int:
    """`more`: the models of --more. `arguments`: options, and names of models; by default all."""
    chosen: List[str] = [name for name in arguments if not name.startswith("--")] or [*models, *(more if "--more" in arguments else ())]
    unknown = [name for name in chosen if name not in {**models, **more}]
    if unknown:
        print(f"no model {unknown[0]!r}; the names are {'; '.join({**models, **more})}", file=sys.stderr)
        return 2
    print(f"torch {torch.__version__}")
    wrong = 0
    for name in chosen:
        began = time.process_time()
        right, text = line_of({**models, **more}[name])
        wrong += not right
        print(f"{name:30} {text}, {time.process_time() - began:.1f} s", flush=True)
    print(f"{len(chosen) - wrong} of {len(chosen)} as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    if {"-h", "--help"} & set(sys.argv):
        print(__doc__)
        sys.exit()
    torch.set_num_threads(1)
    sys.exit(main(MODELS, MORE_MODELS, *sys.argv[1:]))
