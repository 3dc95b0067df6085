"""Trains a small CNN on digits, in plain PyTorch on this machine."""

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

optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
for epoch in range(3):
    model.train()
    for batch in torch.randperm(len(images)).split(80):
        optimizer.zero_grad()
        value = loss(model(images[batch]), labels[batch])
        value.backward()
        optimizer.step()
    print(f"epoch {epoch + 1}: loss {value.item():.3f}")

model.eval()
with torch.no_grad():
    right = (model(held_out[0]).argmax(1) == held_out[1]).float().mean().item()
print(f"accuracy on held-out digits: {right:.1%}")
