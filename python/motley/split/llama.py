"""LlamaForCausalLM and its kin: rotary positions, grouped heads, RMSNorm."""

from __future__ import annotations

from typing import Any, List, Tuple

import torch

from ..layers import Call
from . import attention


def knows(model: Any) -> bool:
    return attention.has(model, "model.embed_tokens", "model.layers", "model.norm", "lm_head") and all(
        attention.has(block, "input_layernorm", "self_attn", "post_attention_layernorm", "mlp") for block in model.model.layers)


def layers(model: Any) -> List[Tuple[str, Call]]:
    body = model.model

    def attend(block: Any) -> Call:
        def run(x: torch.Tensor) -> torch.Tensor:
            positions = torch.arange(x.size(1)).unsqueeze(0)
            offered = {"attention_mask": attention.causal_mask(x), "position_ids": positions}
            if attention.has(body, "rotary_emb"):
                offered["position_embeddings"] = body.rotary_emb(x, positions)
            return x + attention.call(block.self_attn, block.input_layernorm(x), **offered)
        return run

    def transform(block: Any) -> Call:
        return lambda x: x + block.mlp(block.post_attention_layernorm(x))

    found: List[Tuple[str, Call]] = [("model.embed_tokens", body.embed_tokens)]
    for k, block in enumerate(body.layers):
        found += [(f"model.layers.{k}.self_attn", attend(block)), (f"model.layers.{k}.mlp", transform(block))]
    return found + [("lm_head", lambda x: model.lm_head(body.norm(x)))]
