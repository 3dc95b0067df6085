#!/usr/bin/env python3
"""Splits further models like split_models.py, with the same output: models that draw random numbers, newer language models, and
models that were not used in development.

    PYTHONPATH=python python3 examples/split_more.py [--quick] [--more] [NAME…]

--more adds the families of further_models.py.
"""

from __future__ import annotations

import sys
from typing import Any, Dict

import torch
import torch.nn as nn
import torch.nn.functional as F

import split_models
from further_models import FURTHER_MODELS
from model_builders import CLASSES, VOCABULARY, Entry, diffusion, ids, images, language, of, timm, vision

_GROUPED: Dict[str, Any] = {"num_key_value_heads": 2}


class Block(nn.Module):
    """A transformer's block whose norms are shifted and scaled by a condition, as in DiT."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.condition = nn.Linear(width, 4 * width)

    def forward(self, x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        shift, scale, gate, mlp_gate = self.condition(F.silu(c)).unsqueeze(1).chunk(4, -1)
        h = self.norm(x) * (1 + scale) + shift
        x = x + gate * self.attention(h, h, h, need_weights=False)[0]
        return x + mlp_gate * self.mlp(self.norm(x))


class ClassConditional(nn.Module):
    """DiT with label dropout for guidance, and with noise and time steps drawn in the model. Input: patches and label in one
    tensor."""

    def __init__(self, noise: bool) -> None:
        super().__init__()
        self.noise = noise
        self.patches = nn.Linear(48, 32)
        self.labels = nn.Embedding(CLASSES + 1, 32)
        self.times = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32))
        self.blocks = nn.ModuleList(Block(32) for _ in range(3))
        self.head = nn.Linear(32, 48)

    def forward(self, t: torch.Tensor) -> torch.Tensor:
        x, labels = t[:, :-1].reshape(-1, 16, 48), t[:, -1].long().clamp(0, CLASSES - 1)
        if self.training:
            dropped = torch.rand(labels.shape[0]) < 0.3
            labels = torch.where(dropped, CLASSES, labels)
        steps = torch.randint(0, 1000, (x.shape[0],)) if self.noise else torch.full((x.shape[0],), 500)
        angles = steps[:, None] / 1000.0 * torch.exp(-torch.arange(8) / 2.0)
        noise = torch.randn_like(x)
        level = steps.view(-1, 1, 1) / 1000.0
        noisy = x * (1 - level).sqrt() + noise * level.sqrt() if self.noise else x
        h = self.patches(noisy)
        c = self.labels(labels) + self.times(torch.cat([angles.sin(), angles.cos()], 1))
        for block in self.blocks:
            h = block(h, c)
        return self.head(h) - noise if self.noise else self.head(h)


def patches_and_label(n: int) -> torch.Tensor:
    return torch.cat([torch.randn(n, 768), torch.randint(CLASSES, (n, 1)).float()], 1)


class Autoencoder(nn.Module):
    """A variational autoencoder. Output: the image, the mean and the logarithm of the variance in one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(192, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.mean, self.variance = nn.Linear(32, 8), nn.Linear(32, 8)
        self.decoder = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 192), nn.Sigmoid())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.encoder(x)
        mean, variance = self.mean(h), self.variance(h)
        z = torch.distributions.Normal(mean, (0.5 * variance).exp(), validate_args=False).rsample()
        return torch.cat([self.decoder(z), mean, variance], 1)


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.BatchNorm2d(width), nn.ReLU(), nn.Upsample(scale_factor=2), nn.Conv2d(width, width, 3, 1, 1),
                                  nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width, 3, 1, 1))
        self.noise = nn.Parameter(torch.full((width, 1, 1), 0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.body(x)
        return h + F.interpolate(x, scale_factor=2) + self.noise * torch.randn(h.shape[0], 1, *h.shape[2:])


class Generator(nn.Module):
    """The generator of a GAN; each block adds noise, as in StyleGAN."""

    def __init__(self) -> None:
        super().__init__()
        self.begin = nn.Linear(16, 32 * 16)
        self.blocks = nn.Sequential(*(Residual(32) for _ in range(3)))
        self.end = nn.Sequential(nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 3, 3, 1, 1), nn.Tanh())

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return self.end(self.blocks(self.begin(z).view(-1, 32, 4, 4)))


class Wrapped(nn.Module):
    """A UNet2DModel with the noise scheduler of a training loop of diffusers."""

    def __init__(self) -> None:
        super().__init__()
        self.unet = of("diffusers", "UNet2DModel")(sample_size=16, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(16, 32),
                                                   norm_num_groups=4, down_block_types=("DownBlock2D", "DownBlock2D"),
                                                   up_block_types=("UpBlock2D", "UpBlock2D"))
        self.scheduler = of("diffusers", "DDPMScheduler")(num_train_timesteps=100)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        noise = torch.randn_like(x)
        steps = torch.randint(0, self.scheduler.config.num_train_timesteps, (x.shape[0],), device=x.device, dtype=torch.int64)
        return self.unet(self.scheduler.add_noise(x, noise, steps), steps, return_dict=False)[0] - noise


class Stack(nn.Module):
    """Transformer blocks of SDXL, with the latent and the text packed into one tensor."""

    def __init__(self) -> None:
        super().__init__()
        block = of("diffusers.models.attention", "BasicTransformerBlock")
        self.begin = nn.Linear(8, 32)
        self.blocks = nn.ModuleList(block(32, 4, 8, cross_attention_dim=16, dropout=0.1) for _ in range(3))
        self.end = nn.Linear(32, 8)

    def forward(self, t: torch.Tensor) -> torch.Tensor:
        x, text = t[:, :128].reshape(-1, 16, 8), t[:, 128:].reshape(-1, 4, 16)
        h = self.begin(x)
        for block in self.blocks:
            h = block(h, encoder_hidden_states=text)
        return self.end(h)


def flux(model: nn.Module) -> Any:
    def call(t: torch.Tensor) -> Any:
        return model(t[:, :128].reshape(-1, 16, 8), encoder_hidden_states=t[:, 128:192].reshape(-1, 4, 16), pooled_projections=t[:, 192:208],
                     timestep=t[:, 208].clamp(0, 1), img_ids=torch.zeros(16, 3), txt_ids=torch.zeros(4, 3)).sample
    return call


def sd3(model: nn.Module) -> Any:
    return lambda t: model(t[:, :256].reshape(-1, 4, 8, 8), encoder_hidden_states=t[:, 256:320].reshape(-1, 4, 16), pooled_projections=t[:, 320:336],
                           timestep=t[:, 336].clamp(0, 1)).sample


def floats(*sizes: int) -> Any:
    return lambda n: torch.randn(n, *sizes)


def wav2vec(model: nn.Module) -> Any:
    return lambda t: model(t).logits


_PLAIN = dict(vocab_size=None, max_position_embeddings=None, pad_token_id=None, bos_token_id=None, eos_token_id=None)
_WAV: Dict[str, Any] = {**_PLAIN, "vocab_size": VOCABULARY, "conv_dim": (8, 8), "conv_stride": (5, 2), "conv_kernel": (10, 3),
                        "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2, "mask_time_prob": 0.0,
                        "layerdrop": 0.0, "pad_token_id": 0}

MODELS: Dict[str, Entry] = {
    "DiT, labels dropped": Entry(lambda: ClassConditional(False), patches_and_label, 3, loss="any", draws=True),
    "DiT, noise and times drawn": Entry(lambda: ClassConditional(True), patches_and_label, 3, loss="any", draws=True),
    "UNet2DModel, DDPM": Entry(Wrapped, images(16), 4, loss="any", draws=True),
    "VAE": Entry(Autoencoder, images(8), 4, loss="any", draws=True),
    "GAN generator": Entry(Generator, floats(16), 3, loss="any", draws=True),
    "SDXL blocks": Entry(Stack, floats(192), 3, loss="any"),
    "FLUX": Entry(diffusion("FluxTransformer2DModel", patch_size=1, in_channels=8, num_layers=2, num_single_layers=2, attention_head_dim=8,
                            num_attention_heads=4, joint_attention_dim=16, pooled_projection_dim=16, axes_dims_rope=(2, 2, 4)),
                  floats(209), 4, flux, "any"),
    "SD3": Entry(diffusion("SD3Transformer2DModel", sample_size=8, patch_size=2, in_channels=4, num_layers=3, attention_head_dim=8,
                           num_attention_heads=4, joint_attention_dim=16, caption_projection_dim=32, pooled_projection_dim=16, out_channels=4,
                           pos_embed_max_size=8),
                 floats(337), 3, sd3, "any"),
    "Qwen3-MoE, batched_mm": Entry(language("Qwen3MoeForCausalLM", "Qwen3MoeConfig", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
                                            head_dim=8, experts_implementation="batched_mm", **_GROUPED), ids(), 3),
    "SmolLM3": Entry(language("SmolLM3ForCausalLM", "SmolLM3Config", **_GROUPED), ids(), 3),
    "Phi-4, partial rotary": Entry(language("Phi3ForCausalLM", "Phi3Config", partial_rotary_factor=0.5, **_GROUPED), ids(), 3),
    "ModernBERT": Entry(language("ModernBertForMaskedLM", "ModernBertConfig", local_attention=4, global_attn_every_n_layers=2, cls_token_id=1,
                                 sep_token_id=2), ids(), 3),
    "Mamba2": Entry(language("Mamba2ForCausalLM", "Mamba2Config", num_heads=8, head_dim=8, state_size=8, n_groups=2, chunk_size=4,
                             num_attention_heads=None, intermediate_size=None, max_position_embeddings=None), ids(), 3),
    "SigLIP, images": Entry(language("SiglipForImageClassification", "SiglipConfig", **{key: None for key in (
        "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")}, **_PLAIN, vision_config=dict(
            hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4, image_size=32, patch_size=8)),
        images(32), 3, loss="classes"),
    "wav2vec2": Entry(language("Wav2Vec2ForCTC", "Wav2Vec2Config", **_WAV), floats(400), 3, wav2vec, "any"),
    "wav2vec2, layer drop": Entry(language("Wav2Vec2ForCTC", "Wav2Vec2Config", **{**_WAV, "layerdrop": 0.1}), floats(400), 3, wav2vec, "any",
                                  refused="set layerdrop=0.0"),
    "ViT (torchvision)": Entry(lambda: of("torchvision.models", "VisionTransformer")(32, 8, 3, 4, 32, 64, num_classes=CLASSES),
                                images(32), 3, loss="classes"),
    "MobileViT (timm)": Entry(timm("mobilevit_xxs"), images(64), 7, loss="classes"),
    "EfficientNet-B0 (timm)": Entry(timm("efficientnet_b0", drop_path_rate=0.1), images(64), 16, loss="classes"),
    "Swin-V2 (torchvision)": Entry(vision("swin_v2_t"), images(64), 12, loss="classes"),
    "U-ViT of MaxViT (timm)": Entry(timm("maxvit_rmlp_pico_rw_256", img_size=64), images(64), 4, loss="classes"),
    "LFM2": Entry(language("Lfm2ForCausalLM", "Lfm2Config", layer_types=["conv", "full_attention", "conv"], **_GROUPED), ids(), 3),
    "GPT-OSS, batched_mm": Entry(language("GptOssForCausalLM", "GptOssConfig", num_local_experts=4, num_experts_per_tok=2, head_dim=8,
                                          experts_implementation="batched_mm", **_GROUPED), ids(), 3),
    "DeepSeek-V3, batched_mm": Entry(language("DeepseekV3ForCausalLM", "DeepseekV3Config", n_routed_experts=4, num_experts_per_tok=2,
                                              moe_intermediate_size=16, n_group=1, topk_group=1, first_k_dense_replace=1,
                                              kv_lora_rank=8, q_lora_rank=8, qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=8,
                                              experts_implementation="batched_mm"), ids(), 3),
}


if __name__ == "__main__":
    if {"-h", "--help"} & set(sys.argv):
        print(__doc__)
        sys.exit()
    torch.set_num_threads(1)
    sys.exit(split_models.main(MODELS, FURTHER_MODELS, *sys.argv[1:]))
