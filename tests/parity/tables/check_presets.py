#!/usr/bin/env python3
"""Compares the architectures that `--arch` knows with timm's of the same name.

  PYTHONPATH=... check_presets.py --vitrine build/release/vitrine [NAME...]

Builds timm's model without memory for its weights and compares every field that decides what is computed, and
the number of parameters, with what `vitrine inspect` prints. Names that either side lacks are told apart.
"""

import argparse
import json
import subprocess
import sys

import timm
import torch
from torch import nn

# Models whose first version was trained with other classes than their architecture's name stands for; a
# checkpoint says how many it has.
ANY_CLASSES = {"vit_huge_patch14_224", "vit_large_patch32_224", "vit_small_patch8_224"}


def activation_of(module):
    if isinstance(module, nn.SiLU):
        return "silu"
    name = type(module).__name__
    if name == "QuickGELU":
        return "gelu_quick"
    return "gelu_tanh" if name == "GELUTanh" or getattr(module, "approximate", "none") == "tanh" else "gelu"


def fields_of(model):
    """timm's model in the words of ViTConfig."""
    block = model.blocks[0]
    norms = [module for module in model.modules() if isinstance(module, nn.LayerNorm)]
    hidden = block.mlp.fc2.weight.shape[1]
    pool = {"token": "token", "avg": "mean", "map": "attention"}[model.global_pool]
    return {
        "image_height": model.patch_embed.img_size[0],
        "image_width": model.patch_embed.img_size[1],
        "patch_height": model.patch_embed.patch_size[0],
        "patch_bias": model.patch_embed.proj.bias is not None,
        "class_token": model.has_class_token,
        "registers": model.num_reg_tokens,
        "position_span": "patches" if model.no_embed_class else "all",
        "pre_norm": isinstance(model.norm_pre, nn.LayerNorm),
        "dim": model.embed_dim,
        "depth": len(model.blocks),
        "heads": block.attn.num_heads,
        "qkv_bias": block.attn.qkv.bias is not None,
        "qk_scale": block.attn.scale,
        "mlp": "swiglu" if type(block.mlp).__name__ == "GluMlp" else "plain",
        "mlp_hidden": hidden,
        "activation": activation_of(block.mlp.act),
        "layer_scale": not isinstance(block.ls1, nn.Identity),
        "eps": {norm.eps for norm in norms},
        "final_norm": isinstance(model.norm, nn.LayerNorm),
        "pool": pool,
        "fc_norm": isinstance(model.fc_norm, nn.LayerNorm),
        "classes": model.num_classes,
    }


def compare(program, name):
    """What differs, as sentences."""
    with torch.device("meta"):
        model = timm.create_model(name)
    command = [program, "inspect", name, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return [done.stderr.strip()]
    ours = json.loads(done.stdout)
    found = []
    for field, theirs in fields_of(model).items():
        value = ours["config"][field]
        if field == "eps":
            same = theirs == {value}
        else:
            same = value == theirs or field == "qk_scale" and abs(value - theirs) < 1e-12
        if not same and not (field == "classes" and name in ANY_CLASSES):
            found.append(f"{field} is {value}, timm's {theirs}")
    count = sum(parameter.numel() for parameter in model.parameters())
    if name not in ANY_CLASSES and ours["parameters"] != count:
        found.append(f"{ours['parameters']} parameters, timm's {count}")
    return found


def main():
    parser = argparse.ArgumentParser(description="Compare --arch's architectures with timm's.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--vitrine", required=True, help="the program")
    arguments = parser.parse_args()
    names = arguments.names
    if not names:
        names = timm.list_models(module="vision_transformer") + timm.list_models(module="deit")
    missing, wrong = [], 0
    for name in names:
        try:
            differences = compare(arguments.vitrine, name)
        except (AttributeError, KeyError) as error:  # blocks of another kind
            differences = [f"timm's model is of another kind ({error})"]
        if differences and "no architecture of this name" in differences[0]:
            missing.append(name)
        elif differences:
            wrong += 1
            print(f"{name}: {'; '.join(differences)}", flush=True)
    print(f"{len(names) - len(missing) - wrong} agree with timm {timm.__version__}, {wrong} differ")
    print(f"not known here: {', '.join(missing)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
