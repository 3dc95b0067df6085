"""The models of split_models.py: builder, batch, number of blocks and, where needed, the call and the loss of each."""

from __future__ import annotations

import importlib
from typing import Any, Callable, Dict

import torch
import torch.nn as nn

from model_builders import (LENGTH, CLASSES, VOCABULARY, Entry, Recurrent, Seq, audio_and_ids, clip_image, clip_text, conditioned, diffusion, dit, ids,
                            images, language, lora, masked, of, picture_and_time, segmentation, timm, two_sequences, unet, vision, whisper, with_mask)

_GROUPED: Dict[str, Any] = {"num_key_value_heads": 2}
_MOE: Dict[str, Any] = {**_GROUPED, "experts_implementation": "batched_mm"}
_GEMMA: Dict[str, Any] = {**_GROUPED, "head_dim": 8}
_T5: Dict[str, Any] = dict(d_model=32, d_kv=8, d_ff=64, num_layers=2, num_decoder_layers=2, num_heads=4, decoder_start_token_id=0, hidden_size=None,
                           intermediate_size=None, num_hidden_layers=None, num_attention_heads=None, max_position_embeddings=None)
_BART: Dict[str, Any] = dict(d_model=32, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=64, decoder_ffn_dim=64, encoder_attention_heads=4,
                             decoder_attention_heads=4, hidden_size=None, intermediate_size=None, num_hidden_layers=None, num_attention_heads=None,
                             decoder_start_token_id=2, forced_eos_token_id=2)
_IMAGE: Dict[str, Any] = dict(image_size=32, patch_size=8, vocab_size=None, max_position_embeddings=None, pad_token_id=None, bos_token_id=None,
                              eos_token_id=None)


def _two(n: int) -> torch.Tensor:
    return torch.randint(3, VOCABULARY, (n, 2 * LENGTH))


def _unet(**options: Any) -> Callable[[], nn.Module]:
    return diffusion("UNet2DModel", sample_size=16, in_channels=3, out_channels=3, layers_per_block=2, block_out_channels=(16, 32), norm_num_groups=4,
                     down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8, **options)


MODELS: Dict[str, Entry] = {
    "Llama": Entry(language("LlamaForCausalLM", "LlamaConfig", **_GROUPED), ids(), 3),
    "Llama, eager attention": Entry(language("LlamaForCausalLM", "LlamaConfig", attn_implementation="eager", **_GROUPED), ids(), 3),
    "Llama, ids and mask": Entry(language("LlamaForCausalLM", "LlamaConfig", **_GROUPED), with_mask, 3, masked),
    "Llama, LoRA": Entry(lora, ids(), 3),
    "Qwen2": Entry(language("Qwen2ForCausalLM", "Qwen2Config", **_GROUPED), ids(), 3),
    "Qwen3": Entry(language("Qwen3ForCausalLM", "Qwen3Config", head_dim=8, **_GROUPED), ids(), 3),
    "Mistral": Entry(language("MistralForCausalLM", "MistralConfig", **_GROUPED), ids(), 3),
    "Mistral, short window": Entry(language("MistralForCausalLM", "MistralConfig", sliding_window=5, **_GROUPED), ids(), 3),
    "Gemma2": Entry(language("Gemma2ForCausalLM", "Gemma2Config", sliding_window=5, **_GEMMA), ids(), 3),
    "Gemma3": Entry(language("Gemma3ForCausalLM", "Gemma3TextConfig", sliding_window=5, **_GEMMA), ids(), 3),
    "Granite": Entry(language("GraniteForCausalLM", "GraniteConfig", residual_multiplier=0.5, logits_scaling=2.0, **_GROUPED), ids(), 3),
    "Phi-3": Entry(language("Phi3ForCausalLM", "Phi3Config", resid_pdrop=0.1, **_GROUPED), ids(), 3),
    "StableLM": Entry(language("StableLmForCausalLM", "StableLmConfig", hidden_dropout=0.1, **_GROUPED), ids(), 3),
    "GPT-NeoX": Entry(language("GPTNeoXForCausalLM", "GPTNeoXConfig"), ids(), 3),
    "OPT": Entry(language("OPTForCausalLM", "OPTConfig", ffn_dim=64, word_embed_proj_dim=32), ids(), 3),
    "GPT-2": Entry(language("GPT2LMHeadModel", "GPT2Config", n_positions=64, n_embd=32, n_layer=3, n_head=4, hidden_size=None, intermediate_size=None,
                            num_hidden_layers=None, num_attention_heads=None, max_position_embeddings=None), ids(), 3),
    "Mamba": Entry(language("MambaForCausalLM", "MambaConfig", state_size=4, num_attention_heads=None, intermediate_size=None,
                            max_position_embeddings=None), ids(), 3),
    "Mixtral": Entry(language("MixtralForCausalLM", "MixtralConfig", num_local_experts=4, **_GROUPED), ids(), 3),
    "Mixtral, batched_mm": Entry(language("MixtralForCausalLM", "MixtralConfig", num_local_experts=4, **_MOE), ids(), 3),
    "Qwen2-MoE, batched_mm": Entry(language("Qwen2MoeForCausalLM", "Qwen2MoeConfig", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
                                            shared_expert_intermediate_size=32, **_MOE), ids(), 3),
    "BERT, masked words": Entry(language("BertForMaskedLM", "BertConfig"), ids(), 3),
    "BERT, classes, ids and mask": Entry(language("BertForSequenceClassification", "BertConfig"), with_mask, 3, masked, "classes"),
    "RoBERTa, masked words": Entry(language("RobertaForMaskedLM", "RobertaConfig", pad_token_id=1, bos_token_id=0), ids(), 3),
    "RoBERTa, classes": Entry(language("RobertaForSequenceClassification", "RobertaConfig", pad_token_id=1, bos_token_id=0), ids(), 3, loss="classes"),
    "T5": Entry(language("T5ForConditionalGeneration", "T5Config", **_T5), _two, 4, two_sequences, "second"),
    "Whisper": Entry(lambda: of("transformers", "WhisperForConditionalGeneration")(of("transformers", "WhisperConfig")(
        vocab_size=VOCABULARY, num_mel_bins=16, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=20, max_target_positions=16, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=1)), audio_and_ids, 4, whisper, "any"),
    "ViT (transformers)": Entry(language("ViTForImageClassification", "ViTConfig", **_IMAGE), images(32), 3, loss="classes"),
    "CLIP, text": Entry(clip_text, ids(), 3, loss="any"),
    "CLIP, images": Entry(clip_image, images(32), 3, loss="any"),
    "ResNet-18": Entry(vision("resnet18"), images(64), 8, loss="classes"),
    "MobileNetV3": Entry(vision("mobilenet_v3_small"), images(64), 11, loss="classes"),
    "EfficientNet-B0": Entry(vision("efficientnet_b0"), images(64), 16, loss="classes"),
    "ConvNeXt (torchvision)": Entry(vision("convnext_tiny"), images(64), 18, loss="classes"),
    "Swin (torchvision)": Entry(vision("swin_t"), images(64), 12, loss="classes"),
    "DenseNet-121": Entry(vision("densenet121"), images(64), 58, loss="classes"),
    "FCN-ResNet50": Entry(segmentation("fcn_resnet50"), images(64), 16, loss="any"),
    "DeepLabV3-ResNet50": Entry(segmentation("deeplabv3_resnet50"), images(64), 16, loss="any"),
    "Faster R-CNN": Entry(lambda: importlib.import_module("torchvision.models.detection").fasterrcnn_resnet50_fpn(
        weights=None, weights_backbone=None), images(64), 16, loss="any", refused="targets should not be none"),
    "ConvNeXt (timm)": Entry(timm("convnext_atto"), images(64), 12, loss="classes"),
    "ViT (timm)": Entry(timm("vit_tiny_patch16_224", img_size=32, depth=3, embed_dim=48), images(32), 3, loss="classes"),
    "ResNet26d (timm)": Entry(timm("resnet26d"), images(64), 8, loss="classes"),
    "UNet2DModel": Entry(_unet(), picture_and_time, 4, unet, "any"),
    "UNet2DConditionModel": Entry(diffusion("UNet2DConditionModel", sample_size=16, in_channels=3, out_channels=3, layers_per_block=1,
                                            block_out_channels=(16, 32), norm_num_groups=4, cross_attention_dim=32, attention_head_dim=8,
                                            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D")),
                                  picture_and_time, 4, conditioned, "any"),
    "DiT": Entry(diffusion("DiTTransformer2DModel", sample_size=16, in_channels=3, out_channels=3, num_layers=3, num_attention_heads=4,
                           attention_head_dim=8, patch_size=4, num_embeds_ada_norm=CLASSES), picture_and_time, 3, dit, "any"),
    "nn.Transformer": Entry(Seq, _two, 4, loss="second"),
    "nn.LSTM": Entry(lambda: Recurrent("LSTM"), ids(), 1),
    "nn.GRU": Entry(lambda: Recurrent("GRU"), ids(), 1),
    "nn.RNN": Entry(lambda: Recurrent("RNN"), ids(), 1),
}

MORE_MODELS: Dict[str, Entry] = {
    "ALBERT": Entry(language("AlbertForMaskedLM", "AlbertConfig", embedding_size=16), ids(), 1),
    "BART": Entry(language("BartForConditionalGeneration", "BartConfig", **_BART), _two, 4, two_sequences, "second"),
    "BEiT": Entry(language("BeitForImageClassification", "BeitConfig", **_IMAGE), images(32), 3, loss="classes"),
    "BLOOM": Entry(language("BloomForCausalLM", "BloomConfig", n_layer=3, n_head=4, num_hidden_layers=None, num_attention_heads=None,
                            intermediate_size=None, max_position_embeddings=None), ids(), 3),
    "Cohere": Entry(language("CohereForCausalLM", "CohereConfig", **_GROUPED), ids(), 3),
    "DeBERTa-v2": Entry(language("DebertaV2ForMaskedLM", "DebertaV2Config"), ids(), 3),
    "DeiT": Entry(language("DeiTForImageClassification", "DeiTConfig", **_IMAGE), images(32), 3, loss="classes"),
    "DINOv2": Entry(language("Dinov2ForImageClassification", "Dinov2Config", drop_path_rate=0.1, **_IMAGE), images(32), 3, loss="classes"),
    "DistilBERT": Entry(language("DistilBertForMaskedLM", "DistilBertConfig", dim=32, hidden_dim=64, n_layers=3, n_heads=4, hidden_size=None,
                                 num_hidden_layers=None, num_attention_heads=None, intermediate_size=None), ids(), 3),
    "ELECTRA": Entry(language("ElectraForMaskedLM", "ElectraConfig", embedding_size=16), ids(), 3),
    "Falcon": Entry(language("FalconForCausalLM", "FalconConfig", intermediate_size=None), ids(), 3),
    "GPT-J": Entry(language("GPTJForCausalLM", "GPTJConfig", n_positions=64, n_embd=32, n_layer=3, n_head=4, rotary_dim=4, hidden_size=None,
                            intermediate_size=None, num_hidden_layers=None, num_attention_heads=None, max_position_embeddings=None), ids(), 3),
    "MPT": Entry(language("MptForCausalLM", "MptConfig", d_model=32, n_heads=4, n_layers=3, max_seq_len=64, hidden_size=None, intermediate_size=None,
                          num_hidden_layers=None, num_attention_heads=None, max_position_embeddings=None), ids(), 3),
    "OLMo2": Entry(language("Olmo2ForCausalLM", "Olmo2Config", **_GROUPED), ids(), 3),
    "Phi": Entry(language("PhiForCausalLM", "PhiConfig"), ids(), 3),
    "RWKV": Entry(language("RwkvForCausalLM", "RwkvConfig", attention_hidden_size=32, num_attention_heads=None, max_position_embeddings=None), ids(), 3,
                  refused="Set rescale_every=0"),
    "RWKV, not rescaled": Entry(language("RwkvForCausalLM", "RwkvConfig", attention_hidden_size=32, rescale_every=0, num_attention_heads=None,
                                         max_position_embeddings=None), ids(), 3),
    "SegFormer": Entry(language("SegformerForImageClassification", "SegformerConfig", hidden_sizes=[8, 16], depths=[2, 2], num_encoder_blocks=2,
                                sr_ratios=[2, 1], num_attention_heads=[1, 2], patch_sizes=[7, 3], strides=[4, 2], mlp_ratios=[2, 2], hidden_size=None,
                                intermediate_size=None, num_hidden_layers=None, **{k: v for k, v in _IMAGE.items() if "size" not in k}), images(32), 4,
                       loss="classes"),
    "AlexNet": Entry(vision("alexnet"), images(64), 5, loss="classes"),
    "VGG-11": Entry(vision("vgg11_bn"), images(32), 8, loss="classes"),
    "SqueezeNet": Entry(vision("squeezenet1_1"), images(64), 8, loss="classes"),
    "ShuffleNet": Entry(vision("shufflenet_v2_x0_5"), images(64), 16, loss="classes"),
    "RegNet": Entry(vision("regnet_y_400mf"), images(64), 16, loss="classes"),
    "GoogLeNet": Entry(vision("googlenet", init_weights=False, aux_logits=False), images(64), 9, loss="classes"),
    "MobileNetV2": Entry(vision("mobilenet_v2"), images(64), 17, loss="classes"),
    "Swin (timm)": Entry(timm("swin_tiny_patch4_window7_224", img_size=64, window_size=2, depths=(1, 2), num_heads=(2, 2), embed_dim=16), images(64), 3,
                         loss="classes"),
    "Mixer (timm)": Entry(timm("mixer_s32_224", img_size=64), images(64), 8, loss="classes"),
    "CoAtNet (timm)": Entry(timm("coatnet_pico_rw_224", img_size=64), images(64), 4, loss="classes"),
}
"""Models that were not used in the development of `motley.split`."""
