#!/usr/bin/env python3
"""Fine-tunes a language model in a folder of transformers on chats of one's own.

    python3 fine_tune.py MODEL CHATS.jsonl [STEPS]     # writes CHATS.data, runs/chats and tuned
    python3 fine_tune.py                               # a small Llama with random weights, on synthetic chats

CHATS.jsonl has a line {"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]} for each chat.
"""

import os
import sys

import torch.nn as nn
import transformers

import motley
import small_chats

is_small = len(sys.argv) == 1
if len(sys.argv) == 2:
    sys.exit(__doc__)
if is_small:
    small_chats.write_model("small-llama")
    sys.argv[1:] = ["small-llama", small_chats.write_lines(small_chats.dialogues(500), "small-chats.jsonl"), "100"]
folder, chats = sys.argv[1:3]
steps = int(sys.argv[3]) if len(sys.argv) > 3 else 500

model = transformers.AutoModelForCausalLM.from_pretrained(folder).float()  # transformers loads bfloat16 as it is
tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
length = min(1024, model.config.max_position_embeddings)
data = motley.text(chats, tokenizer, os.path.splitext(chats)[0] + ".data", max_length=length, packing=True)
print(data.shown(0, tokenizer))
run = motley.train(model, nn.CrossEntropyLoss(), data, run="runs/chats", steps=steps, global_batch=16, lr=3e-3 if is_small else 1e-5,
                   files=folder, data__holdout=0.1)
run.save_pretrained("tuned")
