"""Texts as people have them, as the data of `motley.train` (docs/python.md, "Texts")."""

from .prepare import text
from .texts import Texts, training_data

__all__ = ["Texts", "text", "training_data"]
