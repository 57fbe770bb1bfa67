#!/usr/bin/env python3
"""The logits that every system has to reach: a ViT in PyTorch's functions, in float64.

    bench/reference.py --model M.safetensors --input X.npy --output logits.npy
"""
import argparse

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file


def logits_of(weights, image, eps=1e-6, head_width=64):
    """timm's VisionTransformer with its defaults; `weights` under timm's names."""
    def linear(x, name):
        return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"], eps)

    kernel = weights["patch_embed.proj.weight"]
    patches = F.conv2d(image, kernel, weights["patch_embed.proj.bias"], stride=kernel.shape[-1])
    x = torch.cat([weights["cls_token"].expand(len(image), -1, -1), patches.flatten(2).transpose(1, 2)], 1)
    x = x + weights["pos_embed"]
    batch, tokens, width = x.shape
    block = 0
    while f"blocks.{block}.norm1.weight" in weights:
        name = f"blocks.{block}"
        qkv = linear(norm(x, f"{name}.norm1"), f"{name}.attn.qkv")
        q, k, v = qkv.reshape(batch, tokens, 3, -1, head_width).permute(2, 0, 3, 1, 4)
        scores = torch.softmax(q @ k.transpose(-2, -1) * head_width**-0.5, -1)
        x = x + linear((scores @ v).transpose(1, 2).reshape(batch, tokens, width), f"{name}.attn.proj")
        x = x + linear(F.gelu(linear(norm(x, f"{name}.norm2"), f"{name}.mlp.fc1")), f"{name}.mlp.fc2")
        block += 1
    return linear(norm(x, "norm")[:, 0], "head")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--model", "--input", "--output"):
        parser.add_argument(name, required=True)
    parser.add_argument("--device", default="cpu", help="where PyTorch computes: cpu or cuda")
    options = parser.parse_args()
    weights = {name: tensor.to(options.device).double() for name, tensor in load_file(options.model).items()}
    with torch.inference_mode():
        # An image at a time: float64 takes twice the memory.
        image = torch.from_numpy(np.load(options.input))
        logits = torch.cat([logits_of(weights, one.to(options.device).double()).cpu() for one in image.split(1)])
    np.save(options.output, logits.numpy())


if __name__ == "__main__":
    main()
