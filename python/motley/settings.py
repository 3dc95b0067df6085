"""Settings of `motley.train`: their conversion to a configuration, and hints for settings that Motley does not have."""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
from typing import Any, Dict

import numpy
import torch

from .errors import MotleyError, step

Sections = Dict[str, Dict[str, Any]]

EXPORT_OPTIONS = ("decayed", "files", "forward", "input_limit", "target_limit", "unit", "units_per_sample")
"""Options that `train` passes to `motley.export`."""


def sections_of(settings: Dict[str, Any], folder: str) -> Sections:
    """The configuration with these settings, without model and data."""
    sections: Sections = {"run": {"dir": folder}}
    for key, value in settings.items():
        section, _, name = key.rpartition("__")
        if "__" in section or not name:
            raise MotleyError(f"the setting {key} is not a section and a name, such as run__threads. See `motley config`")
        sections.setdefault(section or "train", {})[name] = value
    train = sections.get("train", {})
    _check_objects(train)
    if {"steps", "epochs"} <= train.keys():
        raise MotleyError("steps= and epochs= both give the length of the run. Pass one of them")
    _check_loss(train)
    toml(sections)  # refuses unsupported values before anything is written
    return sections


def check(program: str, sections: Sections) -> None:
    """Refuses invalid settings before anything is exported or replaced, by `motley config`."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
        file.write(toml(sections))
        file.flush()
        with step(f"starting {program}"):
            done = subprocess.run([program, "config", file.name], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        if done.returncode != 0:
            raise MotleyError(f"invalid settings:\n{done.stderr.replace(file.name, 'settings')}")


def _check_loss(train: Dict[str, Any]) -> None:
    """Refuses settings of the loss of Motley's own models."""
    for key, argument in (("label_smoothing", "label_smoothing"), ("class_weights", "weight")):
        if key in train:
            raise MotleyError(f"{key} does not apply to a model of PyTorch, whose loss is exported with it. Pass "
                              f"nn.CrossEntropyLoss({argument}=...) as the loss")


def _check_objects(train: Dict[str, Any]) -> None:
    """Refuses optimizers and schedulers of PyTorch, with the equivalent settings."""
    for key, value in train.items():
        optimizers = value if isinstance(value, (list, tuple)) else [value]
        if any(isinstance(each, torch.optim.Optimizer) or isinstance(each, type) and issubclass(each, torch.optim.Optimizer) for each in optimizers):
            if len(optimizers) > 1:
                raise MotleyError(f"{key} has {len(optimizers)} optimizers, but Motley trains one loss with one optimizer. Train "
                                  "the models in sequence, or the sum of their losses as one model")
            raise MotleyError(f"{key} is an optimizer of PyTorch, but Motley has its own. Pass "
                              f"{_equivalent_settings(optimizers[0])}")
        if type(value).__module__ == torch.optim.lr_scheduler.__name__:
            raise MotleyError(f"{key} is a {type(value).__name__} of PyTorch. Pass schedule=\"cosine\", \"linear\", "
                              f"\"wsd\" or \"constant\", with warmup_steps=")


def _equivalent_settings(optimizer: Any) -> str:
    """The settings of Motley's optimizer that are equivalent to an optimizer of PyTorch."""
    kind = optimizer if isinstance(optimizer, type) else type(optimizer)
    group = {} if isinstance(optimizer, type) else optimizer.param_groups[0]
    known = {"lr": "lr", "weight_decay": "weight_decay"}
    if issubclass(kind, torch.optim.SGD):
        name, known = "sgd", {**known, "momentum": "momentum"}
    elif issubclass(kind, (torch.optim.Adam, torch.optim.AdamW)):
        name, known = "adamw", {**known, "eps": "epsilon"}
    elif kind.__name__ == "Muon":
        name, known = "muon", {**known, "momentum": "muon_momentum"}
    elif kind.__name__ == "Lion":
        name = "lion"
    else:
        return f'optimizer="adamw", "sgd", "lion" or "muon" with their settings; {kind.__name__} is not supported'
    words = [f'optimizer="{name}"'] + [f"{ours}={float(group[theirs])!r}" for theirs, ours in known.items() if theirs in group]
    if "betas" in group and name in ("adamw", "lion"):
        words += [f"beta1={float(group['betas'][0])!r}", f"beta2={float(group['betas'][1])!r}"]
    note = ', whose rates are those of adjust_lr_fn="match_rms_adamw"' if name == "muon" else ""
    return ", ".join(words) + note


def toml(sections: Sections) -> str:
    lines = []
    for section, keys in sections.items():
        lines.append(f"[{section}]")
        for key, value in keys.items():
            if isinstance(value, numpy.generic):
                value = value.item()
            if isinstance(value, float) and not math.isfinite(value):
                raise MotleyError(f"{section}.{key} is {value}. Pass a finite number")
            if not isinstance(value, (bool, int, float, str, list, tuple)):
                raise MotleyError(f"{section}.{key} is a {type(value).__name__}. Settings are numbers, strings, booleans or "
                                  "lists of these")
            try:
                text = json.dumps(value, ensure_ascii=False, allow_nan=False)
            except (TypeError, ValueError) as error:
                raise MotleyError(f"{section}.{key} is a list with an unsupported element: {error}. Settings are numbers, "
                                  "strings, booleans or lists of these") from error
            lines.append(f"{key} = {text}")
    return "\n".join(lines) + "\n"
