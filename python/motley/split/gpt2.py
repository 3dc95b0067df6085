"""GPT2LMHeadModel: embeddings, attention and MLP of each block, and the tied head."""

from __future__ import annotations

from typing import Any, List, Tuple

import torch

from ..layers import Call
from . import attention


def knows(model: Any) -> bool:
    return attention.has(model, "transformer.wte", "transformer.wpe", "transformer.h", "transformer.ln_f", "lm_head") and all(
        attention.has(block, "ln_1", "attn", "ln_2", "mlp") for block in model.transformer.h)


def layers(model: Any) -> List[Tuple[str, Call]]:
    body = model.transformer

    def embed(tokens: torch.Tensor) -> torch.Tensor:
        x = body.wte(tokens) + body.wpe(torch.arange(tokens.size(1)).unsqueeze(0))
        return body.drop(x) if attention.has(body, "drop") else x

    def attend(block: Any) -> Call:
        return lambda x: attention.call(block.attn, block.ln_1(x), attention_mask=attention.causal_mask(x)) + x

    def transform(block: Any) -> Call:
        return lambda x: x + block.mlp(block.ln_2(x))

    found: List[Tuple[str, Call]] = [("transformer.wte", embed)]
    for k, block in enumerate(body.h):
        found += [(f"transformer.h.{k}.attn", attend(block)), (f"transformer.h.{k}.mlp", transform(block))]
    return found + [("lm_head", lambda x: model.lm_head(body.ln_f(x)))]
