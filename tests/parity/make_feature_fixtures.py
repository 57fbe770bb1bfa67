#!/usr/bin/env python3
"""Writes the feature maps of some fixtures: make_feature_fixtures.py [--out DIR]. README.md says what they are.

They are timm's own, from forward_intermediates, and transformers' own, from Dinov2Backbone, in float64, on the
checkpoints that lie in fixtures/. Needs timm and transformers.
"""

import argparse
import inspect
import pathlib
import sys
from functools import partial

import numpy as np
import timm
import torch
import transformers
from torch import nn

import cases
import check_against_libraries as libraries

# timm's fixtures: a class token alone, registers, a picture that isn't square, patches alone without a last norm.
TIMM = ("timm_vit", "timm_registers", "timm_non_square", "timm_mean_pooled_no_class")
DINOV2 = ("hf_dinov2",)


def of_timm(case, built):
    """[L, B, dim, rows, columns] without and with the norm, and the tokens in front [L, B, tokens, dim]"""
    kind = timm.models.vision_transformer.VisionTransformer
    norm = partial(nn.LayerNorm, eps=case.options.get("eps", 1e-6))
    arguments = libraries.timm_arguments(case, inspect.signature(kind).parameters)
    model = kind(**arguments, norm_layer=norm).double().eval()
    libraries.load_both_ways(model, built.state)
    image = torch.from_numpy(built.image).double()
    found = {}
    for name, normed in (("map", False), ("normed", True)):
        if normed and isinstance(model.norm, nn.Identity):
            continue
        layers = model.forward_intermediates(
            image, norm=normed, return_prefix_tokens=model.num_prefix_tokens > 0, intermediates_only=True
        )
        if model.num_prefix_tokens:
            found[f"{name}_prefix"] = torch.stack([prefix for _, prefix in layers])
            layers = [patches for patches, _ in layers]
        found[name] = torch.stack(layers)
    return found


def of_dinov2(case, folder):
    """What the backbone gives of its blocks, normed as it does by default."""
    depth = case.options["depth"]
    backbone = transformers.Dinov2Backbone.from_pretrained(
        folder, out_indices=list(range(1, depth + 1)), attn_implementation="sdpa", dtype=torch.float32
    )
    image = torch.from_numpy(np.load(folder / "input.npy")).double()
    return {"normed": torch.stack(backbone.double().eval()(image).feature_maps)}


def main():
    parser = argparse.ArgumentParser(description="Write the feature maps of tests/parity.")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "features")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for case in cases.FIXTURES:
        with torch.inference_mode():
            if case.name in TIMM:
                found = of_timm(case, cases.build(case))
            elif case.name in DINOV2:
                found = of_dinov2(case, pathlib.Path(__file__).parent / "fixtures" / case.name)
            else:
                continue
        folder = arguments.out / case.name
        folder.mkdir(parents=True, exist_ok=True)
        for name, values in found.items():
            # The last image, so that a reader has to find it in the batch. Rounding to float32 is off by 6e-8.
            np.save(folder / f"{name}.npy", values[:, -1].numpy().astype(np.float32))
        print(f"{case.name:30} {({name: list(values[:, -1].shape) for name, values in found.items()})}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
