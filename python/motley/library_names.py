"""The names under which transformers loads the tensors of a folder: since release 5 it renames and converts some of them."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import torch

from . import outputs
from .errors import ExportError
from .weights import Stored


def renamed(stored: Dict[str, Stored], model: Optional[torch.nn.Module], folder: str) -> Dict[str, Stored]:
    """The tensors by the names of the model. Refuses those that are computed from others, such as joined experts."""
    if not any(kind.__module__.startswith("transformers.") for kind in type(model).__mro__):
        return stored
    try:
        from transformers import core_model_loading as loading
        from transformers.conversion_mapping import get_model_conversion_mapping
        transforms: List[Any] = get_model_conversion_mapping(model)
        names = {name: loading.rename_source_key(name, [each for each in transforms if isinstance(each, loading.WeightRenaming)],
                                                 [each for each in transforms if isinstance(each, loading.WeightConverter)])
                 for name in stored}
    except (ImportError, AttributeError, TypeError):  # another release: names that differ are refused as missing
        return stored
    converted = [name for name, (_, pattern) in names.items() if pattern is not None]
    if converted:
        raise ExportError(f"transformers converts {outputs.listed(converted)} of {folder} when it loads them, such as experts that it joins",
                          "Load the model with from_pretrained and export it from memory: motley.export(model, loss, example, path)")
    found: Dict[str, Stored] = {}
    for name, (new, _) in names.items():
        if new in found:
            raise ExportError(f"transformers loads two tensors of {folder} as {new}, one of them from {name}", "Remove the outdated one")
        found[new] = stored[name]
    return found
