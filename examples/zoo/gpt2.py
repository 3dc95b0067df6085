"""transformers' GPT2LMHeadModel as a package, with random weights: `python3 gpt2.py gpt2_small` or `gpt2` writes NAME.motley."""

import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import motley

SIZES = {"gpt2_small": dict(vocab_size=256, n_positions=64, n_layer=4, n_head=4, n_embd=128),  # a token is a byte
         "gpt2": dict(n_positions=1024)}  # 124 million parameters

name = sys.argv[1]
torch.manual_seed(1)
model = GPT2LMHeadModel(GPT2Config(**SIZES[name]))
tokens = torch.randint(model.config.vocab_size, (2, model.config.n_positions))
print(motley.export(motley.split(model), torch.nn.CrossEntropyLoss(), (tokens, tokens), f"{name}.motley"))
