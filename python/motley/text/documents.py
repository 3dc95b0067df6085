"""Models that are called with several documents in a row: attention does not cross them."""

from __future__ import annotations

from typing import Any, Callable, Dict, List

import torch

from .. import outputs
from ..errors import ExportError, MotleyError
from ..half_precision import as_float32
from ..modules import preserved_state
from ..named import names_taken

_LARGEST_DIFFERENCE = 1e-5
"""Of an output, relative to the largest one; kernels may round differently by the values of others."""


def document_mask(document_ids: torch.Tensor) -> torch.Tensor:
    """[samples, 1, queries, keys] to add to the scores: 0 where the key is in the query's document and not after it, else the lowest number.
    `document_ids`: [samples, tokens]."""
    length = document_ids.size(1)
    causal = torch.ones(length, length, dtype=torch.bool, device=document_ids.device).tril()
    allowed = (document_ids[:, None, :, None] == document_ids[:, None, None, :]) & causal
    return torch.zeros(allowed.shape, device=document_ids.device).masked_fill(~allowed, torch.finfo(torch.float32).min)


def call_of(model: torch.nn.Module) -> Callable[[Dict[str, torch.Tensor]], Any]:
    """Calls a model of transformers with packed rows."""
    def call(row: Dict[str, torch.Tensor]) -> Any:
        returned = model(input_ids=row["input_ids"], position_ids=row["position_ids"], attention_mask=document_mask(row["document_ids"]))
        return outputs.main(returned)  # the scores alone, of a result with several parts

    return call


def check_takes(model: torch.nn.Module, length: int) -> None:
    """Refuses models that take no positions or no mask, and those in which a mask replaces a window of attention."""
    inner = getattr(model, "get_base_model", None)  # a wrapper, such as peft's, passes on names that it does not have itself
    taken = names_taken(model) + (names_taken(inner()) if callable(inner) else [])
    missing = [name for name in ("input_ids", "position_ids", "attention_mask") if name not in taken]
    if missing:
        raise ExportError(f"{type(model).__name__} takes no {' and no '.join(missing)}, which keep packed documents apart",
                          f"Prepare the texts with packing=False, or pass forward=, {_FORWARD}")
    config = getattr(model, "config", None)
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    kinds: List[str] = list(getattr(config, "layer_types", None) or [])
    for key, kind in (("sliding_window", "sliding_attention"), ("attention_chunk_size", "chunked_attention")):
        window = getattr(config, key, None)
        uses = kind in kinds if kinds else bool(getattr(config, "use_sliding_window", True))
        if not (uses and isinstance(window, int) and window < length):
            continue
        raise ExportError(f"{type(model).__name__} attends to {window} tokens at most in some layers, and rows have {length}: the mask of documents "
                          "would replace this window", f"Prepare the texts with packing=False or max_length={window}, or pass forward=, {_FORWARD}")


_FORWARD = "a function of the dictionary with 'input_ids', 'position_ids' and 'document_ids' (0 is padding) that calls the model"


def check_separate(model: torch.nn.Module, call: Callable[[Any], Any], example: Dict[str, torch.Tensor]) -> None:
    """Refuses a model in which a document changes the outputs of its neighbours, such as one with a state that passes through the row."""
    row = {name: tensor[:1] for name, tensor in example.items()}
    first = row["document_ids"][0] == 1
    if bool(first.all()):
        return
    changed = dict(row, input_ids=torch.where(first, row["input_ids"].flip(1), row["input_ids"]))
    owned = [*model.parameters(), *model.buffers()]
    if any(tensor.device.type != "cpu" for tensor in owned):
        return
    with preserved_state([model]), as_float32(owned), torch.random.fork_rng(devices=[]), torch.no_grad():
        model.eval()
        try:
            one, other = call(row), call(changed)
        except Exception:  # any error of the user's model, which the export reports
            return
    if one is None or other is None:
        return
    apart = float((one - other)[0][~first].abs().max())
    if not apart <= _LARGEST_DIFFERENCE * float(one.abs().max()):
        raise MotleyError(f"a document changes the outputs of others in its row, by {apart:.2g}: {type(model).__name__} does not separate them by "
                          "attention_mask and position_ids alone. Prepare the texts with packing=False, or pass forward=, " + _FORWARD)
