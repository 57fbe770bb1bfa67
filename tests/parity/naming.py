"""The same weights under other families' names, random weights, and safetensors files."""

import re
import zlib

import numpy as np
import safetensors.torch
import torch

# timm's name -> Hugging Face's, for what is not inside a block.
HF_TOP = {
    "cls_token": "embeddings.cls_token",
    "dist_token": "embeddings.distillation_token",
    "pos_embed": "embeddings.position_embeddings",
    "patch_embed.proj": "embeddings.patch_embeddings.projection",
    "norm": "layernorm",
}
HF_BLOCK = {
    "norm1": "layernorm_before",
    "norm2": "layernorm_after",
    "attn.proj": "attention.output.dense",
    "mlp.fc1": "intermediate.dense",
    "mlp.fc2": "output.dense",
}
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


def _stem(name):
    """'blocks.0.norm1.weight' -> ('blocks.0.norm1', '.weight'); a bare parameter has no suffix."""
    match = re.fullmatch(r"(.+)(\.weight|\.bias)", name)
    return match.groups() if match else (name, "")


def to_hugging_face(state, family):
    """A timm state_dict as Hugging Face's `vit` or `deit` classifier, or `backbone` (no prefix, no head)."""
    if family not in ("vit", "deit", "backbone"):
        raise ValueError(f"family is '{family}', expected vit, deit or backbone")
    prefix = "" if family == "backbone" else family + "."
    heads = {
        "vit": {"head": "classifier"},
        "deit": {"head": "cls_classifier", "head_dist": "distillation_classifier"},
        "backbone": {},
    }[family]
    out = {}
    for name, value in state.items():
        stem, suffix = _stem(name)
        block = re.fullmatch(r"blocks\.(\d+)\.(.+)", stem)
        if not block:
            out[(heads[stem] if stem in heads else prefix + HF_TOP[stem]) + suffix] = value
            continue
        layer = f"{prefix}encoder.layer.{block[1]}."
        if block[2] == "attn.qkv":
            for part, piece in zip(("query", "key", "value"), value.chunk(3)):
                out[f"{layer}attention.attention.{part}{suffix}"] = piece.contiguous()
        else:
            out[layer + HF_BLOCK[block[2]] + suffix] = value
    return out


def to_torchvision(state):
    """A timm state_dict under torchvision's names."""
    out = {}
    for name, value in state.items():
        stem, suffix = _stem(name)
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
    if "token" in name or "pos_embed" in name:
        return 0.5 * normal
    if name.endswith("gamma"):
        return 0.6 + 0.2 * normal
    if name.endswith("bias"):
        return 0.3 * normal
    if len(shape) == 1:  # a norm's gain
        return 1.0 + 0.2 * normal
    # Products keep their variance, except that q, k and v are enlarged: attention must not be flat.
    gain = 1.6 if re.search(r"qkv|in_proj|_mappings", name) else 1.0
    return gain * normal / np.sqrt(np.prod(shape[1:]))


def randomise(model, seed, dtype=torch.float32):
    """Gives every tensor random values that the stored type holds exactly; returns the model in float64."""
    state = model.state_dict()
    for name in state:
        values = torch.from_numpy(random_values(name, tuple(state[name].shape), seed))
        state[name] = values.to(dtype).double()
    model.double().load_state_dict(state)
    return model.eval()


def save(path, state, dtype=torch.float32):
    """Writes a state_dict as published files are, whose values `dtype` holds exactly."""
    stored = {name: value.to(dtype).contiguous() for name, value in state.items()}
    for name, value in state.items():
        if not torch.equal(stored[name].double(), value.double()):
            raise ValueError(f"{name} is not representable in {dtype}")
    safetensors.torch.save_file(stored, str(path), metadata={"format": "pt"})
