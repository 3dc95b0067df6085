"""transformers' LlamaForCausalLM as a package, with random weights: `python3 llama.py llama_small` or `llama_1b` writes NAME.motley.

`llama_1b` has the sizes of Llama 3.2 1B: 1.2 billion parameters, 5 GB per copy; the export needs several copies.
"""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import motley

SIZES = {"llama_small": dict(vocab_size=256, hidden_size=128, intermediate_size=384, num_hidden_layers=4, num_attention_heads=4,
                             num_key_value_heads=2, max_position_embeddings=64),
         "llama_1b": dict(vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
                          num_key_value_heads=8, max_position_embeddings=512, tie_word_embeddings=True)}

name = sys.argv[1]
torch.manual_seed(1)
model = LlamaForCausalLM(LlamaConfig(**SIZES[name]))
tokens = torch.randint(model.config.vocab_size, (2, model.config.max_position_embeddings))
print(motley.export(motley.split(model), torch.nn.CrossEntropyLoss(), (tokens, tokens), f"{name}.motley"))
