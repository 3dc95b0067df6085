"""Trains a small CNN on digits, on the machines of cluster.toml."""

import motley
import torch
import torch.nn as nn

from drawn_digits import drawn_digits

images, labels = drawn_digits(8000)
held_out = drawn_digits(2000, seed=1)
torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
    nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(64 * 16, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10))
loss = nn.CrossEntropyLoss()

run = motley.train(model, loss, (images, labels), cluster="cluster.toml", eval_data=held_out, run="runs/digits",
                   steps=300, global_batch=80, eval_every=100, lr=1e-3, weight_decay=0.01)
model.load_state_dict(run.state_dict())

model.eval()
with torch.no_grad():
    right = (model(held_out[0]).argmax(1) == held_out[1]).float().mean().item()
print(f"accuracy on held-out digits: {right:.1%}")
