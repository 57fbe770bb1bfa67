"""The same weights under other families' names, random weights, and safetensors files."""

import json
import re
import zlib

import numpy as np
import safetensors.torch
import torch

TORCHVISION_TOP = {
    "cls_token": "class_token",
    "pos_embed": "encoder.pos_embedding",
    "patch_embed.proj": "conv_proj",
    "norm": "encoder.ln",
    "head": "heads.head",
    "pre_logits.fc": "heads.pre_logits",
}
TORCHVISION_BLOCK = {
    "norm1": "ln_1",
    "norm2": "ln_2",
    "attn.proj": "self_attention.out_proj",
    "mlp.fc1": "mlp.0",
    "mlp.fc2": "mlp.3",
}


def stem_and_leaf(name):
    """'blocks.0.norm1.weight' -> ('blocks.0.norm1', '.weight'); a bare parameter has no suffix."""
    match = re.fullmatch(r"(.+)(\.weight|\.bias)", name)
    return match.groups() if match else (name, "")


def to_torchvision(state):
    """A timm state_dict under torchvision's names."""
    out = {}
    for name, value in state.items():
        stem, suffix = stem_and_leaf(name)
        block = re.fullmatch(r"blocks\.(\d+)\.(.+)", stem)
        if not block:
            out[TORCHVISION_TOP[stem] + suffix] = value
            continue
        layer = f"encoder.layers.encoder_layer_{block[1]}."
        if block[2] == "attn.qkv":
            out[f"{layer}self_attention.in_proj_{suffix[1:]}"] = value
        else:
            out[layer + TORCHVISION_BLOCK[block[2]] + suffix] = value
    return out


def random_values(name, shape, seed):
    """Random values of the size that a trained tensor of this name has, never zero, one or alike.

    Every tensor has a generator of its own, seeded by its name, so that adding one moves no other.
    """
    normal = np.random.default_rng([seed, zlib.crc32(name.encode())]).standard_normal(shape)
    if name.endswith("latent"):
        return normal
    if "token" in name or "pos_embed" in name:
        return 0.5 * normal
    if name.endswith("gamma"):
        return 0.6 + 0.2 * normal
    if name.endswith("bias"):
        return 0.3 * normal
    if len(shape) < 2:  # a norm's gain
        return 1.0 + 0.2 * normal
    # Products keep their variance, except that q, k and v are enlarged: attention must not be flat.
    gain = 1.6 if re.search(r"qkv|attn_pool\.k?[qv]|in_proj|_mappings", name) else 1.0
    return gain * normal / np.sqrt(np.prod(shape[1:]))


def randomise(model, seed, dtype=torch.float32):
    """Gives every tensor random values that the stored type holds exactly; returns the model in float64."""
    state = model.state_dict()
    for name in state:
        values = torch.from_numpy(random_values(name, tuple(state[name].shape), seed))
        state[name] = values.to(dtype).double()
    model.double().load_state_dict(state)
    return model.eval()


def file_name(shards):
    """What a checkpoint of so many files is opened by."""
    return "model.safetensors" if shards == 1 else "model.safetensors.index.json"


def save(folder, state, dtype=torch.float32, shards=1):
    """Writes a state_dict, whose values `dtype` holds exactly, as published: one file or shards with an index."""
    stored = {name: value.to(dtype).contiguous() for name, value in state.items()}
    for name, value in state.items():
        if not torch.equal(stored[name].double(), value.double()):
            raise ValueError(f"{name} is not representable in {dtype}")
    if shards == 1:
        safetensors.torch.save_file(stored, str(folder / file_name(1)), metadata={"format": "pt"})
        return
    # In the order of the names, so that a block's tensors and those of one module fall into several files.
    names = sorted(stored)
    weight_map = {}
    for i in range(shards):
        file = f"model-{i + 1:05}-of-{shards:05}.safetensors"
        part = {name: stored[name] for name in names[i::shards]}
        safetensors.torch.save_file(part, str(folder / file), metadata={"format": "pt"})
        weight_map |= dict.fromkeys(part, file)
    size = sum(value.numel() * value.element_size() for value in stored.values())
    index = {"metadata": {"total_size": size}, "weight_map": weight_map}
    (folder / file_name(shards)).write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")
