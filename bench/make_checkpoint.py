#!/usr/bin/env python3
"""Writes a ViT checkpoint with random weights under timm's names, and an input, for bench/compare.py.

    bench/make_checkpoint.py --arch vit_base_patch16_224 --batch 1,8 --out FOLDER

Every tensor is random, biases and norms too, so that an operator left out shows in the logits.
"""
import argparse
import json
import pathlib
import re
import struct

import numpy as np

SIZES = {"tiny": (192, 12), "small": (384, 12), "base": (768, 12), "large": (1024, 24)}


def shapes_of(arch, classes):
    found = re.fullmatch(r"vit_(tiny|small|base|large)_patch(\d+)_(\d+)", arch)
    if not found:
        raise SystemExit(f"make_checkpoint.py: --arch is '{arch}', expected vit_(tiny|small|base|large)_patchP_SIZE")
    width, depth = SIZES[found[1]]
    patch, image = int(found[2]), int(found[3])
    tokens = (image // patch) ** 2 + 1
    shapes = {"cls_token": (1, 1, width), "pos_embed": (1, tokens, width)}

    def linear(name, rows, columns):
        shapes[f"{name}.weight"] = (rows, columns)
        shapes[f"{name}.bias"] = (rows,)

    def norm(name):
        shapes[f"{name}.weight"] = shapes[f"{name}.bias"] = (width,)

    shapes["patch_embed.proj.weight"] = (width, 3, patch, patch)
    shapes["patch_embed.proj.bias"] = (width,)
    for i in range(depth):
        norm(f"blocks.{i}.norm1")
        linear(f"blocks.{i}.attn.qkv", 3 * width, width)
        linear(f"blocks.{i}.attn.proj", width, width)
        norm(f"blocks.{i}.norm2")
        linear(f"blocks.{i}.mlp.fc1", 4 * width, width)
        linear(f"blocks.{i}.mlp.fc2", width, 4 * width)
    norm("norm")
    linear("head", classes, width)
    return shapes, image


def random_values(rng, name, shape):
    values = rng.standard_normal(shape, dtype=np.float32)
    if re.search(r"norm\d?\.weight$", name):
        return 1 + np.float32(0.1) * values
    if name.endswith("weight"):  # keeps the variance of what it multiplies
        return values / np.float32(np.sqrt(np.prod(shape[1:])))
    return np.float32(0.02) * values


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [offset, offset + values.nbytes]}
        offset += values.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            out.write(values.tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="vit_base_patch16_224")
    parser.add_argument("--batch", default="1", help="one input a batch size, comma-separated")
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()

    shapes, image = shapes_of(options.arch, options.classes)
    rng = np.random.default_rng(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    write_safetensors(options.out / f"{options.arch}.safetensors",
                      {name: random_values(rng, name, shape) for name, shape in shapes.items()})
    for batch in (int(b) for b in options.batch.split(",")):
        pixels = np.random.default_rng(options.seed + 1).standard_normal((batch, 3, image, image), dtype=np.float32)
        np.save(options.out / f"input_{image}_b{batch}.npy", pixels)


if __name__ == "__main__":
    main()
