"""Trains PyTorch models on heterogeneous machines with Motley. docs/python.md is the guide.

>>> run = motley.train(model, nn.CrossEntropyLoss(), (inputs, targets), cluster="cluster.toml", steps=1000)
>>> model.load_state_dict(run.state_dict())
"""

import motley_programs

motley_programs.check_torch()  # before torch is imported

from .empty_model import without_weights
from .errors import ExportError, MotleyError
from .estimate import Estimate, estimate
from .export import Exported, ExportWarning, export
from .layers import Layers
from .load import load
from .split import split
from .text import Texts, text
from .train import Run, train

__all__ = ["Estimate", "ExportError", "ExportWarning", "Exported", "Layers", "MotleyError", "Run", "Texts", "estimate", "export",
           "load", "split", "text", "train", "without_weights"]
