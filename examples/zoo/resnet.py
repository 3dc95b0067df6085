"""torchvision's ResNets as packages, with random weights: `python3 resnet.py NAME` writes NAME.motley; NAME is resnet18,
resnet50 or resnet152."""

import sys

import torch
import torchvision

import motley

PIXELS = {"resnet18": 32, "resnet50": 224, "resnet152": 224}  # image sizes of CIFAR and ImageNet

name = sys.argv[1]
torch.manual_seed(1)
model = getattr(torchvision.models, name)(num_classes=100)
example = torch.randn(2, 3, PIXELS[name], PIXELS[name]), torch.randint(100, (2,))
print(motley.export(motley.split(model), torch.nn.CrossEntropyLoss(), example, f"{name}.motley"))
