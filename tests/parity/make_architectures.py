#!/usr/bin/env python3
"""Writes model/families/known_architectures_table.cpp: what names and shapes don't tell of published models.

Every architecture of timm's that has the tensors of a plain Vision Transformer and no others, and torchvision's, with
what their tensors show (the key) and what they don't: heads, activation, epsilon, and what Vitrine can't compute of
them. The libraries' own registries are asked, on the meta device, so that no weights are made.
"""
import math
import pathlib
import re

import timm
import torch
import torchvision

MODULES = ("beit cait deit eva naflexvit vision_transformer vision_transformer_hybrid vision_transformer_relpos "
           "vision_transformer_sam").split()
# What model/families/family_tables.cpp knows of timm's names.
PLAIN = re.compile(
    r"(patch_embed\.(proj|norm)\.(weight|bias)|cls_token|dist_token|reg_token|pos_embed|norm_pre\.\w+|"
    r"blocks\.\d+\.(norm1|norm2|attn\.qkv|attn\.proj|mlp\.fc1|mlp\.fc2)\.(weight|bias)|blocks\.\d+\.ls[12]\.gamma|"
    r"norm\.\w+|attn_pool\..*|fc_norm\.\w+|pre_logits\.fc\.\w+|head\.\w+|head_dist\.\w+)")
ACTIVATIONS = {"GELU": "gelu", "QuickGELU": "gelu_quick", "GELUTanh": "gelu_tanh", "SiLU": "silu", "ReLU": "relu"}


def activation_of(block):
    found = {type(module).__name__ for module in block.modules()} & set(ACTIVATIONS)
    assert len(found) == 1, found
    return ACTIVATIONS[found.pop()]


def only(values):
    values = set(values)
    assert len(values) == 1, values
    return values.pop()


def timm_key(tensors, grid):
    """The same text as key_of() in known_architectures.cpp makes of a ViTConfig."""
    dim, _, height, width = tensors["patch_embed.proj.weight"]
    depth = len({name.split(".")[1] for name in tensors if name.startswith("blocks.")})
    hidden = tensors["blocks.0.mlp.fc2.weight"][1]
    words = [f"{dim}x{depth}x{hidden}", f"{height}x{width}"]
    prefix = ("cls_token" in tensors) + ("dist_token" in tensors)
    registers = tensors["reg_token"][-2] if "reg_token" in tensors else 0
    words += ["class"] * ("cls_token" in tensors) + ["distillation"] * ("dist_token" in tensors)
    words += [f"registers{registers}"] * (registers > 0)
    if "pos_embed" not in tensors:
        words.append("no_positions")
    elif tensors["pos_embed"][-2] != prefix + registers + math.prod(grid):
        assert tensors["pos_embed"][-2] == math.prod(grid)
        words.append("positions_of_patches")
    words += ["patch_norm"] * ("patch_embed.norm.weight" in tensors)
    words += ["no_patch_bias"] * ("patch_embed.proj.bias" not in tensors)
    words += ["pre_norm"] * ("norm_pre.weight" in tensors)
    words += ["layer_scale"] * ("blocks.0.ls1.gamma" in tensors)
    words += ["no_qkv_bias"] * ("blocks.0.attn.qkv.bias" not in tensors)
    words += ["swiglu"] * (tensors["blocks.0.mlp.fc1.weight"][0] == 2 * hidden)
    words += ["norm"] * ("norm.weight" in tensors) + ["fc_norm"] * ("fc_norm.weight" in tensors)
    words += ["attention_pool"] * ("attn_pool.latent" in tensors)
    words += ["pre_logits"] * ("pre_logits.fc.weight" in tensors)
    return " ".join(words)


def timm_lacks(model):
    block = model.blocks[0]
    if getattr(model, "rope", None) is not None:
        return "rotary positions are"
    if type(block).__name__ == "ResPostBlock":
        return "norms behind the branches of a block are"
    if type(block.norm1).__name__ != "LayerNorm":
        return "root mean square norms are"
    if type(block).__name__ != "Block" or type(block.attn).__name__ != "Attention":
        return "blocks of another kind than the plain one are"
    if model.patch_embed.dynamic_img_pad:
        return "images that are padded to whole patches are"
    # The pool that Vitrine infers where names and shapes don't tell.
    inferred = "map" if model.attn_pool is not None else (
        "avg" if not isinstance(model.fc_norm, torch.nn.Identity) or model.cls_token is None else "token")
    if model.global_pool != inferred:
        return f"its pooling ({model.global_pool}) behind these norms is"
    if model.global_pool != "token" and model.pool_include_prefix and model.num_prefix_tokens > 0:
        return "pooling that includes the tokens in front of the patches is"
    return ""


def timm_rows():
    names = sorted(name for module in MODULES for name in timm.list_models(module=module))
    for name in names:
        with torch.device("meta"):
            model = timm.create_model(name)
        tensors = {key: list(tensor.shape) for key, tensor in model.state_dict().items()}
        if not all(PLAIN.fullmatch(key) for key in tensors):
            continue
        block = model.blocks[0]
        eps = only(module.eps for module in block.modules() if hasattr(module, "eps"))
        yield ("timm", name, timm_key(tensors, model.patch_embed.grid_size), block.attn.num_heads, activation_of(block), eps,
               timm_lacks(model))


def torchvision_rows():
    for name in torchvision.models.list_models(torchvision.models):
        if not name.startswith("vit_"):
            continue
        with torch.device("meta"):
            model = torchvision.models.get_model(name)
        layers = model.encoder.layers
        block = layers[0]
        dim, _, height, width = model.conv_proj.weight.shape
        key = f"{dim}x{len(layers)}x{block.mlp[0].out_features} {height}x{width} class norm"
        yield ("torchvision", name, key, block.self_attention.num_heads, activation_of(block), block.ln_1.eps, "")


def main():
    rows = [*timm_rows(), *torchvision_rows()]
    lines = []
    for family, name, key, heads, activation, eps, lacks in sorted(rows):
        lines.append(f'    {{"{family}", "{name}", "{key}", {heads}, Activation::{activation}, {eps:g}, "{lacks}"}},')
    text = f"""// Made by tests/parity/make_architectures.py from timm {timm.__version__} and torchvision {torchvision.__version__.split("+")[0]}.
#include "model/families/known_architectures.h"

namespace vitrine {{
namespace {{

// clang-format off
const KnownArchitecture table[] = {{
{chr(10).join(lines)}
}};
// clang-format on

}}  // namespace

std::span<const KnownArchitecture> known_architectures() {{ return table; }}

}}  // namespace vitrine
"""
    path = pathlib.Path(__file__).parents[2] / "model/families/known_architectures_table.cpp"
    path.write_text(text)
    print(f"{len(rows)} architectures, {sum(1 for row in rows if row[-1])} of which Vitrine can't compute")


if __name__ == "__main__":
    main()
