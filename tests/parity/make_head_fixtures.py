#!/usr/bin/env python3
"""Writes heads/: linear heads on a fixture's feature maps, and what PyTorch makes of them in float64.

    make_head_fixtures.py [--out DIR]

Each has the layers, names and steps of DINOv2's and DINOv3's evaluation: a BatchNorm, where there is one, and one convolution
of 1 x 1 over the blocks' features side by side, resized to the picture; distances are the mean of evenly spaced ones, weighed by
rectified logits. The features are transformers' own of fixtures/hf_dinov2. Needs transformers.
"""
import argparse
import pathlib
import sys

import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from torch import nn

HERE = pathlib.Path(__file__).parent
FIXTURE = HERE / "fixtures/hf_dinov2"
RANGE = (0.001, 10.0)
# name: prefix, layer, BatchNorm's name, blocks, outputs, class token, norm, enlarged
HEADS = {
    "dinov2_classes": ("decode_head.", "conv_seg", "bn", [-1], 5, False, True, 1),
    "dinov2_depth": ("decode_head.", "conv_depth", None, [-1], 9, True, False, 4),
    "dinov3_classes": ("segmentation_model.1.", "conv", "batchnorm_layer", [0, -1], 6, False, True, 1),
    "dinov3_depth": ("", "conv_depth", "batchnorm_layer", [0, -1], 7, True, True, 1),
    "dinov3_metres": ("decoder.", "conv_depth", None, [-1], 1, False, False, 1),
}


def features(image, norm):
    """Of each block the patches as a picture, and the class token."""
    model = transformers.Dinov2Model.from_pretrained(FIXTURE, dtype=torch.float32).double().eval()
    hidden = model(image, output_hidden_states=True).hidden_states[1:]
    side = [int(n) // model.config.patch_size for n in image.shape[2:]]
    found = []
    for tokens in hidden:
        tokens = model.layernorm(tokens) if norm else tokens
        found.append((tokens[:, 1:].transpose(1, 2).reshape(1, -1, *side), tokens[:, 0]))
    return found


def resize(x, size):
    return nn.functional.interpolate(x, size=size, mode="bilinear", align_corners=False)


def evaluate(head, x, image, enlarged):
    x = resize(x, [enlarged * n for n in x.shape[2:]])
    logits = head(x)
    if not hasattr(head, "conv_depth"):
        best = resize(logits, image.shape[2:]).topk(2, dim=1).values
        assert (best[:, 0] - best[:, 1]).min() > 1e-4 * best.abs().max(), "a tie says nothing"
        return logits, resize(logits, image.shape[2:]).argmax(1)[0].numpy().astype(np.uint8)
    if logits.shape[1] == 1:
        depth = torch.relu(logits) + RANGE[0]
    else:
        weights = torch.relu(logits) + 0.1
        weights = weights / weights.sum(1, keepdim=True)
        bins = torch.linspace(*RANGE, logits.shape[1], dtype=torch.float64)
        depth = torch.einsum("ikmn,k->imn", weights, bins)[:, None]
    return logits, resize(depth.clamp(*RANGE), image.shape[2:])[0, 0].numpy().astype(np.float32)


class Head(nn.Module):
    def __init__(self, layer, norm, x, outputs):
        super().__init__()
        inputs = x.shape[1]
        self.order = [name for name in (norm, layer) if name]
        if norm:
            setattr(self, norm, nn.BatchNorm2d(inputs))
        setattr(self, layer, nn.Conv2d(inputs, outputs, 1))
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.randn_like(parameter))
            if outputs == 1:
                getattr(self, layer).bias.fill_(5)
            if norm:
                # Nearly what a training would have come to, so that places differ in what they are.
                mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
                getattr(self, norm).running_mean.copy_(mean + 0.1 * torch.randn_like(mean))
                getattr(self, norm).running_var.copy_(variance * (0.5 + torch.rand_like(variance)))

    def forward(self, x):
        for name in self.order:
            x = getattr(self, name)(x)
        return x


def main():
    parser = argparse.ArgumentParser(description="Write the linear heads of tests/parity.")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "heads")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    image = torch.from_numpy(np.load(FIXTURE / "resized_input.npy")[-1:]).double()
    np.save(out / "input.npy", image.numpy().astype(np.float32))
    torch.manual_seed(3)
    for name, (prefix, layer, norm, blocks, outputs, class_token, normed, enlarged) in HEADS.items():
        with torch.inference_mode():
            maps = [features(image, normed)[block] for block in blocks]
            seen = [torch.cat([x, token[:, :, None, None].expand_as(x)], 1) if class_token else x for x, token in maps]
            x = torch.cat(seen, 1)
            head = Head(layer, norm, x, outputs).eval()
            save_file({prefix + key: value.contiguous() for key, value in head.state_dict().items()}, out / f"{name}.safetensors")
            logits, answer = evaluate(head.double(), x, image, enlarged)
        np.save(out / f"{name}.npy", answer)
        print(f"{name:16} {list(x.shape)} {list(logits.shape)} {answer.shape} {answer.dtype} {answer.min()} {answer.max()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
