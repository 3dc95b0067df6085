"""Further models for split_more.py: families that were tried after the development of `motley.split`."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

import torch
import torch.nn as nn
import torch.nn.functional as F

from model_builders import LENGTH, VOCABULARY, Entry, ids, images, language, of

_PLACEHOLDER = 3
_GROUPED: Dict[str, Any] = {"num_key_value_heads": 2}
_HEADS: Dict[str, Any] = {**_GROUPED, "head_dim": 8}
_EXPERTS: Dict[str, Any] = {**_GROUPED, "num_experts": 4, "num_experts_per_tok": 2}
_PLAIN: Dict[str, Any] = dict.fromkeys(("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings",
                                        "pad_token_id", "bos_token_id", "eos_token_id"))
_IMAGE: Dict[str, Any] = {**_PLAIN, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "image_size": 32, "patch_size": 8}
_GEMMA: Dict[str, Any] = dict(hidden_size_per_layer_input=8, vocab_size_per_layer_input=VOCABULARY, laurel_rank=4, num_kv_shared_layers=1,
                              sliding_window=5, altup_num_inputs=2, activation_sparsity_pattern=[0.5, 0.0, 0.0],
                              layer_types=["sliding_attention", "full_attention", "full_attention"], **_HEADS)
_OLD: Dict[str, Any] = {**_PLAIN, "vocab_size": VOCABULARY}
_SOUND: Dict[str, Any] = dict(conv_dim=(8, 8), conv_stride=(5, 2), conv_kernel=(10, 3), num_feat_extract_layers=2, num_conv_pos_embeddings=4,
                              num_conv_pos_embedding_groups=2, mask_time_prob=0.0, layerdrop=0.0, max_position_embeddings=None)


def causal(name: str, blocks: int = 3, config: str = "", **options: Any) -> Entry:
    """A language model of transformers by the common part of its classes' names."""
    return Entry(language(f"{name}ForCausalLM", config or f"{name}Config", **options), ids(), blocks)


def filled(name: str, **options: Any) -> Entry:
    return Entry(language(f"{name}ForMaskedLM", f"{name}Config", **options), ids(), 3)


def classified(name: str, blocks: int = 3, size: int = 32, **options: Any) -> Entry:
    return Entry(language(f"{name}ForImageClassification", f"{name}Config", **{**_PLAIN, **options}), images(size), blocks, loss="classes")


def hidden(kind: str, config: str, example: Callable[[int], torch.Tensor], **options: Any) -> Entry:
    return Entry(language(kind, config, **options), example, 3, lambda model: lambda t: model(t).last_hidden_state, "any")


def sound(name: str) -> Entry:
    return Entry(language(f"{name}ForCTC", f"{name}Config", **_SOUND), lambda n: torch.randn(n, 400), 3, lambda model: lambda t: model(t).logits, "any")


def detector() -> nn.Module:
    resnet = of("transformers", "ResNetConfig")(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], out_features=["stage2"])
    return of("transformers", "DetrForObjectDetection")(of("transformers", "DetrConfig")(
        use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=resnet, num_queries=5, d_model=32, encoder_layers=2,
        decoder_layers=2, encoder_ffn_dim=64, decoder_ffn_dim=64, encoder_attention_heads=4, decoder_attention_heads=4))


def boxes(model: nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
    def call(pictures: torch.Tensor) -> torch.Tensor:
        found = model(pixel_values=pictures)
        return torch.cat([found.logits, found.pred_boxes], -1)
    return call


def llava() -> nn.Module:
    texts = of("transformers", "LlamaConfig")(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4,
                                              max_position_embeddings=64)
    pictures = of("transformers", "CLIPVisionConfig")(hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4, image_size=16,
                                                      patch_size=8)
    return of("transformers", "LlavaForConditionalGeneration")(of("transformers", "LlavaConfig")(
        text_config=texts, vision_config=pictures, image_token_id=_PLACEHOLDER))


def text_with_image(n: int) -> torch.Tensor:
    """Ids with four placeholders, and an image of four patches."""
    words = torch.randint(_PLACEHOLDER + 1, VOCABULARY, (n, LENGTH))
    for row in words:
        row[torch.randperm(LENGTH)[:4]] = _PLACEHOLDER
    return torch.cat([words.float(), torch.randn(n, 3 * 16 * 16)], 1)


def described(model: nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
    def call(t: torch.Tensor) -> torch.Tensor:
        words = t[:, :LENGTH].long().clamp(0, VOCABULARY - 1)
        return model(input_ids=words, pixel_values=t[:, LENGTH:].reshape(-1, 3, 16, 16)).logits  # type: ignore[no-any-return]
    return call


class Rotated(nn.Module):
    """Attention with rotary positions as complex factors, as in Meta's Llama."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)
        self.mlp = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))

    def forward(self, x: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.view(x.size(0), -1, 4, 8) for part in self.qkv(self.norm(x)).chunk(3, -1))
        q, k = (torch.view_as_real(torch.view_as_complex(part.reshape(*part.shape[:-1], -1, 2)) * factors[:, None]).flatten(3) for part in (q, k))
        x = x + self.out(F.scaled_dot_product_attention(*(part.transpose(1, 2) for part in (q, k, v)), is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(x)


class Mixed(nn.Module):
    """Mixes positions and channels by Fourier transforms, as in FNet."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.mlp = nn.LayerNorm(32), nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))

    def forward(self, x: torch.Tensor, _: Optional[torch.Tensor] = None) -> torch.Tensor:
        x = self.norm(x + torch.fft.fft2(x).real)
        return x + self.mlp(x)


class Complex(nn.Module):
    def __init__(self, block: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.embed, self.blocks, self.head = nn.Embedding(VOCABULARY, 32), nn.ModuleList(block() for _ in range(3)), nn.Linear(32, VOCABULARY)
        angles = torch.outer(torch.arange(float(LENGTH)), 10000 ** (-torch.arange(0, 8, 2) / 8))
        self.register_buffer("factors", torch.polar(torch.ones_like(angles), angles), persistent=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, self.factors)
        return self.head(x)


FURTHER_MODELS: Dict[str, Entry] = {
    "Qwen3-Next": causal("Qwen3Next", linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=8, linear_value_head_dim=8,
                         moe_intermediate_size=16, shared_expert_intermediate_size=16, head_dim=8,
                         layer_types=["linear_attention", "full_attention", "linear_attention"], **_EXPERTS),
    "Gemma3n": Entry(language("Gemma3nForCausalLM", "Gemma3nTextConfig", **_GEMMA), ids(), 3, refused="Set altup_coef_clip=None"),
    "Gemma3n, not clipped": Entry(language("Gemma3nForCausalLM", "Gemma3nTextConfig", altup_coef_clip=None, **_GEMMA), ids(), 3),
    "GLM-4": causal("Glm4", **_HEADS),
    "GLM-4 MoE": causal("Glm4Moe", n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, first_k_dense_replace=1, **_HEADS),
    "Cohere2": causal("Cohere2", sliding_window=5, **_HEADS),
    "OLMo": causal("Olmo", **_GROUPED),
    "OLMo3": causal("Olmo3", sliding_window=5, **_GROUPED),
    "OLMoE": causal("Olmoe", **_EXPERTS),
    "StarCoder2": causal("Starcoder2", **_GROUPED),
    "GPT-OSS": causal("GptOss", num_local_experts=4, num_experts_per_tok=2, **_HEADS),
    "Granite MoE": causal("GraniteMoe", num_local_experts=4, num_experts_per_tok=2, **_GROUPED),
    "Falcon-H1": causal("FalconH1", mamba_d_ssm=32, mamba_n_heads=4, mamba_d_head=8, mamba_d_state=8, mamba_n_groups=1, mamba_chunk_size=4, **_GROUPED),
    "FalconMamba": causal("FalconMamba", state_size=4, num_attention_heads=None, intermediate_size=None, max_position_embeddings=None),
    "Jamba": causal("Jamba", num_experts=2, num_experts_per_tok=1, attn_layer_period=2, attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1,
                    mamba_d_state=4, mamba_dt_rank=4, **_GROUPED),
    "Zamba2": causal("Zamba2", mamba_d_state=8, n_mamba_heads=4, mamba_headdim=16, mamba_ngroups=1, chunk_size=4, num_mem_blocks=1, use_mem_rope=True,
                     layers_block_type=["mamba", "hybrid", "mamba"], **_GROUPED),
    "Bamba": causal("Bamba", mamba_n_heads=4, mamba_d_head=16, mamba_d_state=8, mamba_n_groups=1, mamba_chunk_size=4, attn_layer_indices=[1], **_GROUPED),
    "RecurrentGemma": causal("RecurrentGemma", lru_width=32, attention_window_size=8, block_types=("recurrent", "recurrent", "attention"),
                             max_position_embeddings=None, **_HEADS),
    "Nemotron": causal("Nemotron", **_GROUPED),
    "Phi-3.5 MoE": causal("Phimoe", num_local_experts=4, **_GROUPED),
    "MiniMax": causal("MiniMax", num_local_experts=4, num_experts_per_tok=2, block_size=4,
                      layer_types=["linear_attention", "full_attention", "linear_attention"], **_HEADS),
    "EXAONE 4": causal("Exaone4", sliding_window=5, sliding_window_pattern=2, **_GROUPED),
    "ERNIE 4.5": causal("Ernie4_5", **_HEADS),
    "BitNet": causal("BitNet", **_GROUPED),
    "DiffLlama": causal("DiffLlama", **_GROUPED),
    "DeepSeek-V2": causal("DeepseekV2", n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, first_k_dense_replace=1, kv_lora_rank=8,
                          q_lora_rank=8, qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=8, n_group=1, topk_group=1),
    "Llama 4": causal("Llama4", config="Llama4TextConfig", intermediate_size_mlp=64, num_local_experts=4, num_experts_per_tok=1, attention_chunk_size=8,
                      interleave_moe_layer_step=2, **_HEADS),
    "RoFormer": filled("RoFormer", embedding_size=32),
    "FNet": filled("FNet", num_attention_heads=None),
    "Longformer": filled("Longformer", attention_window=4),
    "BigBird": filled("BigBird", attention_type="original_full"),
    "ConvBERT": filled("ConvBert", embedding_size=32),
    "XLNet": Entry(language("XLNetLMHeadModel", "XLNetConfig", **{**_OLD, "d_model": 32, "n_layer": 3, "n_head": 4, "d_inner": 64}), ids(), 3),
    "Funnel": filled("Funnel", **{**_OLD, "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 64, "block_sizes": [1, 1], "num_decoder_layers": 1}),
    "UMT5 encoder": hidden("UMT5EncoderModel", "UMT5Config", ids(), **{**_OLD, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 3, "num_heads": 4}),
    "HuBERT": sound("Hubert"),
    "WavLM": sound("WavLM"),
    "AST": Entry(language("ASTForAudioClassification", "ASTConfig", **{**_IMAGE, "image_size": None, "max_length": 32, "num_mel_bins": 16,
                                                                     "frequency_stride": 8, "time_stride": 8}),
                 lambda n: torch.randn(n, 32, 16), 3, loss="classes"),
    "ViTMAE": Entry(language("ViTMAEForPreTraining", "ViTMAEConfig", decoder_hidden_size=16, decoder_intermediate_size=32, decoder_num_hidden_layers=2,
                             decoder_num_attention_heads=4, **_IMAGE), images(32), 5, lambda model: lambda t: model(t).logits, "any", draws=True),
    "Swin (transformers)": classified("Swin", image_size=32, patch_size=2, embed_dim=8, depths=[1, 2], num_heads=[2, 2], window_size=4),
    "Swin-V2 (transformers)": classified("Swinv2", image_size=32, patch_size=2, embed_dim=8, depths=[1, 2], num_heads=[2, 2], window_size=4),
    "ConvNeXt-V2": classified("ConvNextV2", 4, hidden_sizes=[8, 16], depths=[2, 2], num_stages=2, drop_path_rate=0.1),
    "RegNet (transformers)": classified("RegNet", embedding_size=8, hidden_sizes=[8, 16], depths=[1, 2], groups_width=4),
    "PVT-V2": classified("PvtV2", num_encoder_blocks=2, depths=[1, 2], sr_ratios=[2, 1], hidden_sizes=[8, 16], patch_sizes=[7, 3], strides=[4, 2],
                         num_attention_heads=[1, 2], mlp_ratios=[2, 2], image_size=32),
    "PoolFormer": classified("PoolFormer", 4, 64, hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1]),
    "DETR": Entry(detector, images(64), 4, boxes, "any"),
    "YOLOS": Entry(language("YolosForObjectDetection", "YolosConfig", **{**_IMAGE, "image_size": [32, 32], "num_detection_tokens": 4}), images(32), 3, boxes, "any"),
    "SegFormer, segmentation": Entry(language("SegformerForSemanticSegmentation", "SegformerConfig", **{
        **_PLAIN, "hidden_sizes": [8, 16], "depths": [1, 2], "num_encoder_blocks": 2, "sr_ratios": [2, 1], "num_attention_heads": [1, 2],
        "patch_sizes": [7, 3], "strides": [4, 2], "mlp_ratios": [2, 2], "decoder_hidden_size": 16}),
        images(32), 3, lambda model: lambda t: model(t).logits, "any"),
    "LLaVA": Entry(llava, text_with_image, 5, described, "any"),
    "BLIP, images": hidden("BlipVisionModel", "BlipVisionConfig", images(32), **_IMAGE),
    "DINOv2 with registers": hidden("Dinov2WithRegistersModel", "Dinov2WithRegistersConfig", images(32), num_register_tokens=2, **_IMAGE),
    "complex rotary positions": Entry(lambda: Complex(Rotated), ids(), 3),
    "Fourier transforms": Entry(lambda: Complex(Mixed), ids(), 3),
}
