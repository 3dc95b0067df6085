"""Motley trains a PyTorch model on machines that do not match. docs/python.md is the guide."""

from .errors import ExportError, MotleyError
from .export import Exported, export
from .layers import Layers
from .split import split

__all__ = ["ExportError", "Exported", "Layers", "MotleyError", "export", "split"]
