#!/usr/bin/env python3
"""Writes the attention maps of some fixtures: make_map_fixtures.py [--out DIR]. README.md says what they are.

The weights are those that the model itself used in its forward pass, in float64: what its softmaxes
returned. Rollout is computed from them with whole matrices, as published implementations do.
"""

import argparse
import contextlib
import pathlib
import sys

import numpy as np
import torch
from torch import nn

import cases

NAMES = (
    "timm_vit",
    "deit_distilled",
    "timm_registers",
    "timm_qk_scale",
    "timm_non_square",
    "timm_mean_pooled",
    "timm_mean_pooled_no_class",
    "torchvision",
    "hf_vit",
    "hf_deit",
    "hf_clip",
    "hf_dinov2_registers",
    "hf_siglip",
    "timm_map_registers",
    "myvit",
)


@contextlib.contextmanager
def recorded_softmaxes():
    """Collects every attention map made inside, [B, H, N, N], or [B, N, N] where each head has a softmax."""
    found = []
    softmax, attend = torch.Tensor.softmax, nn.MultiheadAttention.forward

    def recording_softmax(self, *args, **kwargs):
        out = softmax(self, *args, **kwargs)
        if out.dim() > 2:
            found.append(out)
        return out

    def recording_attend(self, *args, **kwargs):
        out, weights = attend(self, *args, **{**kwargs, "need_weights": True, "average_attn_weights": False})
        found.append(weights)
        return out, weights

    torch.Tensor.softmax, nn.MultiheadAttention.forward = recording_softmax, recording_attend
    try:
        yield found
    finally:
        torch.Tensor.softmax, nn.MultiheadAttention.forward = softmax, attend


def differences(block, weights):
    """Of differential attention, a head's weights are its first softmax less a share of its second."""
    inner = block if hasattr(block, "lambda_q1") else getattr(block, "attn", None)
    if not hasattr(inner, "lambda_q1"):
        return weights
    with torch.inference_mode():
        return weights[:, ::2] - inner._compute_lambda() * weights[:, 1::2]


def attention(model, image):
    """[L, B, H, N, N], and of attention pooling [B, H, P], or None"""
    with recorded_softmaxes() as found, torch.inference_mode():
        model(torch.from_numpy(image).double())
    if found[0].dim() == 4:
        query = found.pop() if found[-1].dim() == 3 else found.pop()[:, :, 0] if found[-1].shape[-2] == 1 else None
        # Of several attentions in a block, the heads of all.
        several = len(found) // len(model.blocks)
        layers = [torch.cat(found[i : i + several], dim=1) for i in range(0, len(found), several)]
        return torch.stack([differences(block, layer) for block, layer in zip(model.blocks, layers)]), query
    heads = len(found) // len(model.blocks)
    return torch.stack([torch.stack(found[i : i + heads], dim=1) for i in range(0, len(found), heads)]), None


def rollout(weights):
    """[L, B, H, N, N] to [B, N, N] (Abnar & Zuidema 2020)."""
    joint = torch.eye(weights.shape[-1], dtype=torch.float64)
    for layer in weights.mean(dim=2):
        a = 0.5 * layer + 0.5 * torch.eye(weights.shape[-1], dtype=torch.float64)
        joint = a / a.sum(dim=-1, keepdim=True) @ joint
    return joint


def write(folder, model, image):
    weights, query = attention(model, image)
    if (weights.std(dim=-1) < 0.1 * weights.mean(dim=-1)).any():
        raise ValueError(f"{folder.name}: some row of weights hardly varies: anything would pass")
    folder.mkdir(parents=True, exist_ok=True)
    # The last image, so that a reader has to find it in the batch. Rounding to float32 is off by 6e-8.
    np.save(folder / "attention.npy", weights[:, -1].numpy().astype(np.float32))
    if query is not None:
        np.save(folder / "pool.npy", query[-1].numpy().astype(np.float32))
    if (weights >= 0).all():  # of differences there is none
        np.save(folder / "rollout.npy", rollout(weights)[-1].numpy().astype(np.float32))
    print(f"{folder.name:30} {list(weights[:, -1].shape)}")


def main():
    parser = argparse.ArgumentParser(description="Write the attention maps of tests/parity.")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "maps")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for case in cases.FIXTURES:
        if case.name not in NAMES:
            continue
        built = cases.build(case)
        write(arguments.out / case.name, built.model, built.image)
    return 0


if __name__ == "__main__":
    sys.exit(main())
