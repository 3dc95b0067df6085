"""LlamaForCausalLM and related models: rotary positions, grouped heads, RMSNorm."""

from __future__ import annotations

import inspect
from typing import Any, List, Optional, Tuple

import torch

from ..layers import Call
from . import attention

_PARTS = {"input_layernorm", "self_attn", "post_attention_layernorm", "mlp"}


def knows(model: Any) -> bool:
    return attention.has(model, "model.embed_tokens", "model.layers", "model.norm", "lm_head") and all(
        attention.has(block, *_PARTS) for block in model.model.layers)


def layers(model: Any) -> List[Tuple[str, Call]]:
    """Attention and MLP of each block are layers; a block with further parts, such as dropout or norms, is one layer."""
    body = model.model
    config = getattr(model, "config", None)

    def embed(tokens: torch.Tensor) -> torch.Tensor:
        x = body.embed_tokens(tokens)
        return x * body.embedding_multiplier if attention.has(body, "embedding_multiplier") else x

    def head(x: torch.Tensor) -> torch.Tensor:
        scores = model.lm_head(body.norm(x))
        if attention.has(config, "logits_scaling"):
            scores = scores / config.logits_scaling
        cap = getattr(config, "final_logit_softcapping", None)
        return scores if cap is None else torch.tanh(scores / cap) * cap

    def offered(block: Any, x: torch.Tensor) -> Any:
        positions = torch.arange(x.size(1)).unsqueeze(0)
        kind, window = _kind(config, body, block)
        found = {"attention_mask": attention.causal_mask(x, window), "position_ids": positions}
        if attention.has(body, "rotary_emb"):
            by_kind = "layer_type" in inspect.signature(body.rotary_emb.forward).parameters
            found["position_embeddings"] = body.rotary_emb(x, positions, kind) if by_kind else body.rotary_emb(x, positions)
        return found

    def attend(block: Any) -> Call:
        return lambda x: x + attention.call(block.self_attn, block.input_layernorm(x), **offered(block, x))

    def transform(block: Any) -> Call:
        return lambda x: x + block.mlp(block.post_attention_layernorm(x))

    def whole(block: Any) -> Call:
        return lambda x: attention.call(block, x, **offered(block, x))

    found: List[Tuple[str, Call]] = [("model.embed_tokens", embed)]
    for k, block in enumerate(body.layers):
        if {name for name, part in block.named_children() if not isinstance(part, torch.nn.Identity)} == _PARTS and not attention.has(
                block, "residual_multiplier"):
            found += [(f"model.layers.{k}.self_attn", attend(block)), (f"model.layers.{k}.mlp", transform(block))]
        else:
            found.append((f"model.layers.{k}", whole(block)))
    return found + [("lm_head", head)]


def _kind(config: Any, body: Any, block: Any) -> Tuple[Optional[str], Optional[int]]:
    """The type of a block's attention in the configuration, and its window, if it is a sliding window."""
    kinds = getattr(config, "layer_types", None)
    kind = kinds[list(body.layers).index(block)] if kinds else None
    slides = kind == "sliding_attention" if kinds else getattr(config, "model_type", None) == "mistral"
    return kind, getattr(config, "sliding_window", None) if slides else None
