"""The number of positions of a model of transformers, compared with the length of the samples."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch

from .errors import ExportError

_KEYS = ("n_positions", "max_position_embeddings", "max_sequence_length", "max_seq_len", "seq_length", "n_ctx")

_RESERVED = 8
"""The most rows of a table before those of positions, such as OPT's 2."""


def check(model: torch.nn.Module, example: Any) -> Tuple[str, ...]:
    """Refuses samples of more tokens than the model's table of positions has. Returns a notice if the configuration has a limit
    that the model can exceed, as with rotary positions."""
    ids = _ids(example)
    limit = _limit(getattr(model, "config", None))
    if ids is None or limit is None or ids.size(1) <= limit[1]:
        return ()
    key, count = limit
    reason = f'a sample has {ids.size(1)} tokens, and the configuration has "{key}": {count}'
    table = _table(model, count)
    if table is not None:
        raise ExportError(f"{reason}, the size of {table}", f"Pass at most {count} tokens")
    return (f"{reason}: the model was made for at most so many, and can compute with more",)


def _ids(example: Any) -> Optional[torch.Tensor]:
    """The ids of an example for a language model."""
    input = example[0] if isinstance(example, (tuple, list)) and len(example) == 2 else None
    if isinstance(input, dict):
        input = input.get("input_ids")
    return input if isinstance(input, torch.Tensor) and input.dim() == 2 and input.dtype == torch.int64 else None


def _limit(config: Any) -> Optional[Tuple[str, int]]:
    try:
        described = config.get_text_config() if hasattr(config, "get_text_config") else config
        entries = described.to_dict()
    except Exception:  # not a configuration of transformers
        return None
    found = ((key, entries[key]) for key in _KEYS if isinstance(entries.get(key), int) and entries[key] > 0)
    return next(found, None)


def _table(model: torch.nn.Module, count: int) -> Optional[str]:
    """The name of a tensor with a row for each position, or of a mask of positions."""
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        is_named = "pos" in name or "wpe" in name
        if is_named and tensor.dim() == 2 and tensor.dtype.is_floating_point and count <= tensor.size(0) <= count + _RESERVED:
            return name
        if tensor.dim() >= 2 and tensor.shape[-2:] == (count, count) and tensor.dtype in (torch.bool, torch.uint8):
            return name
    return None
