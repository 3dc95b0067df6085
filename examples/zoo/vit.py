"""torchvision's vision transformers as packages, with random weights: `python3 vit.py NAME` writes NAME.motley; NAME is vit_small,
vit_b_16 or vit_100m."""

import sys

import torch
from torchvision.models.vision_transformer import VisionTransformer

import motley

SIZES = {"vit_small": dict(image_size=32, patch_size=4, num_layers=6, num_heads=4, hidden_dim=192, mlp_dim=768),
         "vit_b_16": dict(image_size=224, patch_size=16, num_layers=12, num_heads=12, hidden_dim=768, mlp_dim=3072),
         "vit_100m": dict(image_size=224, patch_size=16, num_layers=14, num_heads=12, hidden_dim=768, mlp_dim=3072)}

name = sys.argv[1]
torch.manual_seed(1)
model = VisionTransformer(**SIZES[name], num_classes=100)
pixels = SIZES[name]["image_size"]
example = torch.randn(2, 3, pixels, pixels), torch.randint(100, (2,))
print(motley.export(motley.split(model), torch.nn.CrossEntropyLoss(), example, f"{name}.motley"))
