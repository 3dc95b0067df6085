"""Tiny language models in the style of `transformers`, with its names.

Debian has no transformers for its PyTorch; `examples/zoo_check.py` runs the same checks on the real models.
"""

from __future__ import annotations

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

# transformers.models.gpt2


class Conv1D(nn.Module):
    def __init__(self, nf: int, nx: int):
        super().__init__()
        self.nf = nf
        self.weight = nn.Parameter(torch.empty(nx, nf).normal_(std=0.02))
        self.bias = nn.Parameter(torch.zeros(nf))

    def forward(self, x):
        size_out = x.size()[:-1] + (self.nf,)
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(size_out)


class GPT2Attention(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float):
        super().__init__()
        self.head_dim = width // heads
        self.split_size = width
        self.c_attn = Conv1D(3 * width, width)
        self.c_proj = Conv1D(width, width)
        self.attn_dropout = nn.Dropout(dropout)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, hidden_states, attention_mask=None):
        query, key, value = self.c_attn(hidden_states).split(self.split_size, dim=2)
        shape = (*query.shape[:-1], -1, self.head_dim)
        query, key, value = (t.view(shape).transpose(1, 2) for t in (query, key, value))
        weights = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.head_dim)
        if attention_mask is not None:
            weights = weights + attention_mask
        weights = self.attn_dropout(F.softmax(weights, dim=-1).type(value.dtype))
        out = torch.matmul(weights, value).transpose(1, 2)
        out = out.reshape(*out.shape[:-2], -1).contiguous()
        return self.resid_dropout(self.c_proj(out)), weights


class NewGELUActivation(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class GPT2MLP(nn.Module):
    def __init__(self, width: int, dropout: float):
        super().__init__()
        self.c_fc = Conv1D(4 * width, width)
        self.c_proj = Conv1D(width, 4 * width)
        self.act = NewGELUActivation()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.c_proj(self.act(self.c_fc(x))))


class GPT2Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = GPT2Attention(width, heads, dropout)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = GPT2MLP(width, dropout)

    def forward(self, x, mask):
        x = self.attn(self.ln_1(x), attention_mask=mask)[0] + x
        return x + self.mlp(self.ln_2(x))


class GPT2Model(nn.Module):
    def __init__(self, vocabulary: int, length: int, blocks: int, width: int, heads: int, dropout: float):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(length, width)
        self.drop = nn.Dropout(dropout)
        self.h = nn.ModuleList(GPT2Block(width, heads, dropout) for _ in range(blocks))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, ids):
        length = ids.size(1)
        mask = torch.full((length, length), torch.finfo(torch.float32).min).triu(1)[None, None]
        x = self.drop(self.wte(ids) + self.wpe(torch.arange(length)[None]))
        for block in self.h:
            x = block(x, mask)
        return self.ln_f(x)


class GPT2LMHeadModel(nn.Module):
    def __init__(self, vocabulary: int = 50, length: int = 12, blocks: int = 2, width: int = 16, heads: int = 2,
                 dropout: float = 0.0):
        super().__init__()
        self.transformer = GPT2Model(vocabulary, length, blocks, width, heads, dropout)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.transformer.wte.weight

    def forward(self, ids):
        return self.lm_head(self.transformer(ids))


# transformers.models.llama


class LlamaRMSNorm(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.variance_epsilon = 1e-6

    def forward(self, hidden_states):
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        return self.weight * (hidden_states * torch.rsqrt(variance + self.variance_epsilon))


class LlamaRotaryEmbedding(nn.Module):
    def __init__(self, head_dim: int):
        super().__init__()
        inv_freq = 1.0 / (10000.0 ** (torch.arange(0, head_dim, 2, dtype=torch.float) / head_dim))
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    @torch.no_grad()
    def forward(self, x, position_ids):
        freqs = position_ids[..., None].float() * self.inv_freq
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos().to(dtype=x.dtype), emb.sin().to(dtype=x.dtype)


def rotate_half(x):
    return torch.cat((-x[..., x.shape[-1] // 2:], x[..., : x.shape[-1] // 2]), dim=-1)


class LlamaAttention(nn.Module):
    def __init__(self, width: int, heads: int, key_value_heads: int):
        super().__init__()
        self.head_dim = width // heads
        self.groups = heads // key_value_heads
        self.q_proj = nn.Linear(width, heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(width, key_value_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(width, key_value_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(heads * self.head_dim, width, bias=False)

    def forward(self, hidden_states, position_embeddings=None, attention_mask=None):
        input_shape = hidden_states.shape[:-1]
        shape = (*input_shape, -1, self.head_dim)
        query, key, value = (p(hidden_states).view(shape).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        cos, sin = (part.unsqueeze(1) for part in position_embeddings)
        query, key = (t * cos + rotate_half(t) * sin for t in (query, key))
        key, value = (self._repeat(t) for t in (key, value))
        weights = torch.matmul(query, key.transpose(2, 3)) * self.head_dim ** -0.5 + attention_mask
        out = torch.matmul(F.softmax(weights, dim=-1, dtype=torch.float32), value).transpose(1, 2).contiguous()
        return self.o_proj(out.reshape(*input_shape, -1).contiguous()), weights

    def _repeat(self, t):
        batch, heads, length, dim = t.shape
        t = t[:, :, None, :, :].expand(batch, heads, self.groups, length, dim)
        return t.reshape(batch, heads * self.groups, length, dim)


class LlamaMLP(nn.Module):
    def __init__(self, width: int, inner: int):
        super().__init__()
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaDecoderLayer(nn.Module):
    def __init__(self, width: int, heads: int, key_value_heads: int):
        super().__init__()
        self.self_attn = LlamaAttention(width, heads, key_value_heads)
        self.mlp = LlamaMLP(width, 2 * width)
        self.input_layernorm = LlamaRMSNorm(width)
        self.post_attention_layernorm = LlamaRMSNorm(width)

    def forward(self, x, position_embeddings, mask):
        x = x + self.self_attn(self.input_layernorm(x), position_embeddings, mask)[0]
        return x + self.mlp(self.post_attention_layernorm(x))


class LlamaModel(nn.Module):
    def __init__(self, vocabulary: int, blocks: int, width: int, heads: int, key_value_heads: int):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(LlamaDecoderLayer(width, heads, key_value_heads) for _ in range(blocks))
        self.norm = LlamaRMSNorm(width)
        self.rotary_emb = LlamaRotaryEmbedding(width // heads)

    def forward(self, ids):
        x = self.embed_tokens(ids)
        length = ids.size(1)
        mask = torch.full((length, length), torch.finfo(torch.float32).min).triu(1)[None, None]
        positions = self.rotary_emb(x, torch.arange(length)[None])
        for layer in self.layers:
            x = layer(x, positions, mask)
        return self.norm(x)


class LlamaForCausalLM(nn.Module):
    def __init__(self, vocabulary: int = 50, blocks: int = 2, width: int = 16, heads: int = 4, key_value_heads: int = 2):
        super().__init__()
        self.model = LlamaModel(vocabulary, blocks, width, heads, key_value_heads)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        return self.lm_head(self.model(ids))
