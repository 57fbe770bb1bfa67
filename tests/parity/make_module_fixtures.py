#!/usr/bin/env python3
"""Writes the fixtures of the modules alone and of the walk: make_module_fixtures.py [--out DIR].

README.md says what they are. Everything is seeded; references are float64.
"""

import argparse
import math
import pathlib
import sys
import zlib

import numpy as np
import safetensors.torch
import torch
from torch import nn

import cases
import models
import naming
from philox import torch_uniform

FIXTURES = pathlib.Path(__file__).parent / "fixtures"


class Steps(list):
    """The steps of a walk in order, as `vitrine inspect --trace --json` lists them."""

    def show(self, name, tensor, numbers=None):
        step = {"name": name, "shape": list(tensor.shape)}
        if numbers is not None:
            step["values"] = numbers.tolist()
        self.append(step)


def edges(size):
    """The places that PyTorch prints of a long axis: the first three and the last three."""
    return [i for i in range(size) if i < 3 or i >= size - 3]


class Attention(nn.Module):
    """Multi-head self-attention with any widths, that can note what it sees on its way.

    The numbers noted are those that the first three rows and columns of a print show: `[..., :3, :3, 1]`. Of
    queries, keys and values [B, H, N, d] and of scores [B, H, N, N] that is three heads by three tokens at
    the second channel or key. Of a result [B, N, D] it is three images by three tokens at the second channel.
    """

    def __init__(self, dim, heads=8, key_width=0, value_width=0, qkv_bias=False, qk_scale=None, projection=True):
        super().__init__()
        self.heads = heads
        self.key_width = key_width or dim // heads
        self.value_width = value_width or dim // heads
        self.scale = qk_scale or self.key_width**-0.5
        self.qkv = nn.Linear(dim, heads * (2 * self.key_width + self.value_width), bias=qkv_bias)
        self.proj = nn.Linear(heads * self.value_width, dim) if projection else None

    def split(self, columns, width):
        return columns.reshape(*columns.shape[:2], self.heads, width).transpose(1, 2)

    def forward(self, x, steps=None):
        steps = Steps() if steps is None else steps
        batch, count, _ = x.shape
        qkv = self.qkv(x)
        steps.show("qkv(x)", qkv)
        keys = self.heads * self.key_width
        if self.key_width == self.value_width:
            # The layout that every ViT has; below, the same columns by their places.
            pieces = qkv.reshape(batch, count, 3, self.heads, self.key_width)
            steps.show("qkv.reshape", pieces)
            steps.show("qkv.permute", pieces.permute(2, 0, 3, 1, 4))
        q = self.split(qkv[..., :keys], self.key_width)
        k = self.split(qkv[..., keys : 2 * keys], self.key_width)
        v = self.split(qkv[..., 2 * keys :], self.value_width)
        for name, tensor in (("q", q), ("k", k), ("v", v)):
            steps.show(name, tensor, tensor[..., :3, :3, 1])
        steps.show("k.transpose(-2, -1)", k.transpose(-2, -1))
        scores = (q @ k.transpose(-2, -1)) * self.scale
        steps.show("scores", scores, scores[..., :3, :3, 1])
        weights = scores.softmax(dim=-1)
        steps.show("weights", weights, weights[..., :3, :3, 1])
        heads = weights @ v
        steps.show("weights @ v", heads, heads[..., :3, :3, 1])
        x = heads.transpose(1, 2).reshape(batch, count, -1)
        steps.show("concat", x, x[:, edges(count)][..., edges(x.shape[-1])])
        if self.proj is not None:
            x = self.proj(x)
            steps.show("proj(concat)", x, x[..., :3, :3, 1])
        return x


class PerHeadAttention(nn.Module):
    """Each head maps its own slice of the token; the maps of all heads are one tensor [heads, width, slice]."""

    def __init__(self, dim, heads):
        super().__init__()
        width = dim // heads
        self.heads = heads
        for name in "qkv":
            layer = nn.Module()
            layer.weight = nn.Parameter(torch.empty(heads, width, width))
            layer.bias = nn.Parameter(torch.empty(heads, width))
            self.add_module(name, layer)

    def forward(self, x):
        slices = torch.stack(x.chunk(self.heads, dim=-1), dim=1)  # [B, H, N, width]
        q, k, v = (
            slices @ layer.weight.transpose(1, 2) + layer.bias[:, None] for layer in (self.q, self.k, self.v)
        )
        heads = nn.functional.scaled_dot_product_attention(q, k, v)
        return heads.transpose(1, 2).flatten(2)


class SwiGlu(nn.Module):
    """silu of the first half of fc1's columns times the second half."""

    def __init__(self, dim, hidden):
        super().__init__()
        self.fc1 = nn.Linear(dim, 2 * hidden)
        self.fc2 = nn.Linear(hidden, dim)

    def forward(self, x):
        gate, up = self.fc1(x).chunk(2, dim=-1)
        return self.fc2(nn.functional.silu(gate) * up)


# name: module of the C++ library, fields of its ViTConfig, prefix in the file, PyTorch's module, input.
MODULES = {
    "patch_embed": (
        "patch_embed",
        "image_height=21 image_width=28 patch_height=4 patch_width=5 dim=24 patch_norm=true eps=1e-5",
        "",
        lambda: models.PatchEmbed((4, 5), 3, 24, norm=True, bias=True, eps=1e-5),
        (2, 3, 21, 28),
    ),
    "attention": (
        "attention",
        "dim=48 heads=3",
        "blocks.3.attn.",
        lambda: Attention(48, 3, qkv_bias=True),
        (2, 7, 48),
    ),
    "attention_scaled": (
        "attention",
        "dim=40 heads=8 qkv_bias=false qk_scale=0.6",
        "",
        lambda: Attention(40, 8, qk_scale=0.6),
        (1, 13, 40),
    ),
    "attention_widths": (
        "attention",
        "dim=20 heads=3 key_width=5 value_width=7",
        "attn.",
        lambda: Attention(20, 3, 5, 7, qkv_bias=True),
        (3, 11, 20),
    ),
    "attention_no_projection": (
        "attention",
        "dim=24 heads=4 key_width=3 projection=false",
        "",
        lambda: Attention(24, 4, 3, qkv_bias=True, projection=False),
        (2, 5, 24),
    ),
    "attention_per_head": (
        "attention",
        "dim=24 heads=2 per_head_maps=true projection=false",
        "",
        lambda: PerHeadAttention(24, 2),
        (2, 9, 24),
    ),
    "mlp": ("mlp", "dim=24 mlp_hidden=40", "", lambda: models.Mlp(24, 40), (2, 5, 24)),
    "mlp_swiglu": (
        "mlp",
        "dim=24 mlp=swiglu mlp_hidden=22 activation=silu",
        "blocks.0.mlp.",
        lambda: SwiGlu(24, 22),
        (2, 5, 24),
    ),
    "block": (
        "block",
        "dim=24 heads=4 layer_scale=true eps=1e-5",
        "blocks.11.",
        lambda: models.Block(24, 4, layer_scale=True, eps=1e-5),
        (2, 10, 24),
    ),
}


def save(folder, meta, values, output):
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "input.npy", values)
    np.save(folder / "output.npy", output.detach().numpy())
    cases.write_json(folder / "meta.json", meta)


def input_of(name, shape):
    generator = np.random.default_rng(zlib.crc32(f"{name} input".encode()))
    return generator.standard_normal(shape).astype(np.float32)


def reference(module, values, *arguments):
    with torch.no_grad():
        return module.double()(torch.from_numpy(values).double(), *arguments)


def check_turned(name, module, values, output):
    """Refuses a fixture in which some tensor could be turned by one element without the result changing."""
    state = module.state_dict()
    for key, tensor in state.items():
        turned = dict(state)
        turned[key] = tensor.flatten().roll(1).reshape(tensor.shape)
        module.load_state_dict(turned)
        change = (reference(module, values) - output).norm() / output.norm()
        exempt = key in ("k.bias",)  # softmax takes a key bias of its own away
        if not exempt and change < 1e-2:
            raise ValueError(f"{name}: turning {key} changes the result by {change:.1e} only")
    module.load_state_dict(state)


def write_modules(out):
    for name, (kind, fields, prefix, make, shape) in MODULES.items():
        module = make()
        seed = zlib.crc32(name.encode())
        for key, parameter in module.named_parameters():
            parameter.data = torch.from_numpy(naming.random_values(key, tuple(parameter.shape), seed)).float()
        values = input_of(name, shape)
        weights = {prefix + key: value.clone() for key, value in module.state_dict().items()}
        output = reference(module, values)
        check_turned(name, module, values, output)
        meta = {"module": kind, "prefix": prefix, "set": fields.split()}
        save(out / name, meta, values, output)
        safetensors.torch.save_file(weights, str(out / name / "weights.safetensors"), metadata={"format": "pt"})
        print(f"{name:26} {sum(path.stat().st_size for path in (out / name).iterdir()) / 1024:6.1f} KiB")


def write_attention_512(out):
    """Attention(512) with PyTorch's initialisation and 10 tokens: no weights are stored, both sides draw them."""
    seed = 1
    module = Attention(512)
    for key, parameter in module.named_parameters():
        bound = 1 / math.sqrt(512)
        parameter.data = torch.from_numpy(torch_uniform(seed, key, tuple(parameter.shape), bound))
    values = input_of("attention_512", (1, 10, 512))
    steps = Steps()
    steps.show("x", torch.from_numpy(values))
    output = reference(module, values, steps)
    # The definition above against PyTorch's own attention.
    own = nn.MultiheadAttention(512, 8, bias=True, batch_first=True).double()
    own.in_proj_weight.data, own.in_proj_bias.data = module.qkv.weight.data, torch.zeros(3 * 512).double()
    own.out_proj.weight.data, own.out_proj.bias.data = module.proj.weight.data, module.proj.bias.data
    x = torch.from_numpy(values).double()
    difference = (own(x, x, x, need_weights=False)[0] - output).abs().max()
    if difference > 1e-12:
        raise ValueError(f"PyTorch's own attention differs by {difference:.1e}")
    meta = {"module": "attention", "seed": seed, "set": "dim=512 heads=8 qkv_bias=false init=torch".split()}
    save(out / "attention_512", meta, values, output)
    cases.write_json(out / "attention_512" / "walk.json", steps)
    print(f"attention_512              {steps[-1]['shape']}, {len(steps)} steps")


def write_model_walk(out, name, layer):
    """The walk through one block of a whole model's fixture."""
    case = next(case for case in cases.FIXTURES if case.name == name)
    built = cases.build(case)
    model = built.model.double()
    image = torch.from_numpy(np.load(FIXTURES / name / "input.npy")).double()
    steps = Steps()
    steps.show("image", image)
    with torch.no_grad():
        grid = model.patch_embed.proj(image)
        steps.show("patch_embed.proj", grid)
        patches = grid.flatten(2).transpose(1, 2)
        steps.show("flatten(2).transpose(1, 2)", patches)
        if not isinstance(model.patch_embed.norm, nn.Identity):
            steps.show("patch_embed.norm", model.patch_embed(image))
        seen = {}
        model.blocks[0].register_forward_pre_hook(lambda _, inputs: seen.setdefault("first", inputs[0]))
        model.blocks[layer].register_forward_pre_hook(lambda _, inputs: seen.setdefault("x", inputs[0]))
        model(image)
        steps.show("tokens", seen["first"])
        if layer:
            steps.show("blocks.0" if layer == 1 else f"blocks.0 to blocks.{layer - 1}", seen["x"])
        block = model.blocks[layer]
        at = f"blocks.{layer}"
        x = block.norm1(seen["x"])
        steps.show(f"{at}.norm1", x)
        attention = Attention(x.shape[-1], block.attn.num_heads, qkv_bias=block.attn.qkv.bias is not None)
        attention.scale = block.attn.scale
        attention.double().load_state_dict(block.attn.state_dict())
        attended = attention(x, steps)
        if (attended - block.attn(x)).abs().max() > 1e-12:
            raise ValueError(f"{name}: the walk's attention is not the model's")
        x = seen["x"] + block.ls1(attended)
        steps.show(f"{at} + attention", x)
        normed = block.norm2(x)
        steps.show(f"{at}.norm2", normed)
        hidden = block.mlp.act(block.mlp.fc1(normed))
        steps.show(f"{at}.mlp.fc1", hidden)
        steps.show(f"{at}.mlp.fc2", block.mlp.fc2(hidden))
        steps.show(at, block(seen["x"]))
    folder = out / f"walk_{name}"
    folder.mkdir(parents=True, exist_ok=True)
    meta = {"layer": layer, "model": name, "set": list(case.overrides)}
    cases.write_json(folder / "meta.json", meta)
    cases.write_json(folder / "walk.json", steps)
    print(f"walk_{name:21} {len(steps)} steps")


def main():
    parser = argparse.ArgumentParser(description="Write the fixtures of the modules alone and of the walk.")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "modules")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    write_modules(arguments.out)
    write_attention_512(arguments.out)
    write_model_walk(arguments.out, "timm_vit", 1)
    write_model_walk(arguments.out, "timm_patch_norm", 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
