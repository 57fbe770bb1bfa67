#!/usr/bin/env python3
"""Compares DINOv3 under its three namings with timm and transformers: check_dinov3.py SCRATCH --vitrine PROGRAM

S, B, L and H+ at their own widths with random weights, each as timm saves it, as transformers does and under its publisher's
names (keys' biases masked, periods in bf16), in f32 and f16, at three image sizes of which one leaves pixels over. Where f16's
limit is passed, as by 32 blocks of random weights, what counts is whether transformers' own f16 is further off.
"""
import argparse
import copy
import json
import pathlib
import subprocess
import sys

import numpy as np
import timm
import torch
import transformers
from safetensors.torch import save_file

import make_timm_fixtures

SIZES = ((256, 256), (208, 112), (250, 230))
LIMITS = {"f32": 2e-5, "f16": 5e-3}
NAMES = {"S": "vit_small_patch16_dinov3_qkvb", "B": "vit_base_patch16_dinov3_qkvb", "L": "vit_large_patch16_dinov3_qkvb",
         "H+": "vit_huge_plus_patch16_dinov3_qkvb"}


def randomised(model):
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.add_(noise * (0.02 if parameter.dim() > 1 else 0.1))
    return model.eval()


def run(program, model, image, output, size, dtype, extra):
    command = [program, "run", "--model", model, "--input", image, "--output", output, "--dtype", dtype, "--what", "features",
               "--image-size", f"{size[0]}x{size[1]}", *extra]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return np.load(output)


def timm_like(name, depth, folder, published):
    model = randomised(timm.create_model(name, num_classes=0, global_pool="token", depth=depth))
    tensors = make_timm_fixtures.under_publishers_names(model) if published else model.state_dict()
    save_file({key: value.contiguous() for key, value in tensors.items()}, folder / "model.safetensors")
    if not published:
        (folder / "config.json").write_text(json.dumps(
            {"architecture": name, "num_classes": 0, "global_pool": "token", "model_args": {"depth": depth}}))
    return model


def hugging_face(name, depth, folder):
    like = timm.create_model(name, depth=1)
    gated = not hasattr(like.blocks[0].mlp, "act") or hasattr(like.blocks[0].mlp, "fc1_g")
    config = transformers.DINOv3ViTConfig(
        hidden_size=like.embed_dim, intermediate_size=like.blocks[0].mlp.fc2.in_features, num_hidden_layers=depth,
        num_attention_heads=like.blocks[0].attn.num_heads, num_register_tokens=4, use_gated_mlp=gated,
        hidden_act="silu" if gated else "gelu")
    model = randomised(transformers.DINOv3ViTModel(config))
    model.save_pretrained(folder)
    return Pooled(model)


class Pooled:
    def __init__(self, model):
        self.model = model

    def __call__(self, pixels):
        return self.model(pixels).pooler_output


def in_half(pooled, seen, wanted):
    """How far the library's own f16 is off."""
    with torch.no_grad():
        half = Pooled(copy.deepcopy(pooled.model).half())(torch.from_numpy(seen).half()).float().numpy()
    return float(np.abs(half - wanted).max() / np.abs(wanted).max())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("--vitrine", type=pathlib.Path, required=True)
    parser.add_argument("--only", default=",".join(NAMES))
    parser.add_argument("--depth", type=int, default=0, help="of all; else their own")
    arguments = parser.parse_args()
    arguments.scratch.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for size_name in arguments.only.split(","):
        name = NAMES[size_name]
        depth = arguments.depth or {"S": 12, "B": 12, "L": 24, "H+": 32}[size_name]
        for naming in ("timm", "published", "transformers"):
            folder = arguments.scratch / naming
            folder.mkdir(exist_ok=True)
            for old in folder.iterdir():
                old.unlink()
            model = hugging_face(name, depth, folder) if naming == "transformers" else timm_like(
                name, depth, folder, naming == "published")
            path = folder / "model.safetensors" if naming == "published" else folder
            errors = []
            for size in SIZES:
                image = arguments.scratch / "image.npy"
                np.save(image, np.random.default_rng(size).standard_normal((1, 3, *size)).astype(np.float32))
                seen = np.load(image)
                if naming != "transformers":  # timm refuses what leaves pixels over, which the others don't look at
                    seen = seen[:, :, : size[0] // 16 * 16, : size[1] // 16 * 16]
                with torch.no_grad():
                    wanted = model(torch.from_numpy(seen)).numpy()
                for dtype, limit in LIMITS.items():
                    found = run(arguments.vitrine, path, image, arguments.scratch / "output.npy", size, dtype, ())
                    error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
                    if dtype == "f16" and error > limit and naming == "transformers":
                        limit = in_half(model, seen, wanted)
                    wrong += not error <= limit
                    errors.append(f"{dtype} {error:.0e}")
            print(size_name, depth, "blocks", naming, *errors, sep="\t", flush=True)
            del model
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
