"""A freshly made model's weights as model/vit/init_weights.cpp draws them: a function of seed, name and element.

Names are Vitrine's own (runtime parameters have timm's names); `fields` are those of a ViTConfig.
"""

import math
import re

import numpy as np

import philox


def is_norm(name):
    return re.search(r"(^|\.)(norm|norm1|norm2|norm_pre|fc_norm|[qk]_norm)\.(weight|bias)$", name) is not None


def is_matrix(name):
    """What weight decay applies to: not to biases, norms, layer scales, tokens and positions."""
    return name.endswith(".weight") and not is_norm(name)


def is_token(name):
    return name in ("cls_token", "dist_token", "reg_token", "attn_pool.latent")


def fan_in(name, shapes):
    shape = shapes[name.rpartition(".")[0] + ".weight"]
    per_head = re.search(r"attn\.[qkv]\.", name)
    return shape[-1] if per_head else math.prod(shape[1:])


def init_weights(shapes, rule, seed, layer_scale=1e-5):
    """{name: float32 array} for {name: shape} by the rule `vit` or `torch`."""
    drawn = {}
    for name, shape in shapes.items():
        if is_norm(name):
            drawn[name] = np.full(shape, name.endswith("weight"), np.float32)
        elif name.endswith("gamma"):
            drawn[name] = np.full(shape, layer_scale, np.float32)
        elif name == "pos_embed" or is_token(name) and rule == "vit":
            drawn[name] = philox.normal(seed, name, shape, 0.02)
        elif is_token(name):
            drawn[name] = philox.uniform_of(seed, name, shape).astype(np.float32)
        elif rule == "torch":
            drawn[name] = philox.torch_uniform(seed, name, shape, 1 / math.sqrt(fan_in(name, shapes)))
        elif name.endswith("bias"):
            drawn[name] = np.zeros(shape, np.float32)
        elif name == "patch_embed.proj.weight":
            drawn[name] = philox.normal(seed, name, shape, math.sqrt(2 / (shape[0] * shape[2] * shape[3])))
        else:
            drawn[name] = philox.normal(seed, name, shape, 0.01)
    return drawn
