"""Training in PyTorch by the configuration file that `vitrine train --config` reads.

    {"model": {fields of ViTConfig}, "data": {"mean": [...], "std": [...], "crop_padding": 0, "flip": false},
     "optimizer": "sgd" | "adam" | "adamw", "lr": ..., "momentum": ..., "beta1": ..., "beta2": ..., "eps": ...,
     "weight_decay": ..., "label_smoothing": ..., "clip_norm": ..., "accumulation": 1, "epochs": ...,
     "batch_size": ..., "warmup_steps": ..., "schedule": "constant" | "cosine", "min_lr": ..., "seed": ...,
     "train": "all" | "head" | "last:N" | PATTERNS, "layer_decay": 1, "ema_decay": 0, "warmup_epochs": 0}

What the fields mean:

- batch_size images go through the model at once. One step of the optimiser takes `accumulation` such batches; its
  gradient is the mean over all their images, and its loss is the mean of their losses.
- A pixel v becomes (v / 255 - mean) / std, each operation rounded to float32.
- loss: cross-entropy of the model's own result, which is the mean of both heads' logits for a distilled model and the
  probabilities for a model with softmax_output (torch.nn.CrossEntropyLoss on top of softmax, as MyViT has it).
  With label smoothing e and K classes the target is 1 - e + e / K for the label and e / K for the others.
- clip_norm c > 0: the gradient is multiplied by min(1, c / (n + 1e-6)), n its norm over all parameters.
- weight_decay w concerns matrices only (init_weights.is_matrix): no bias, norm, layer scale, token or position.
  sgd and adam add w * p to the (clipped) gradient; adamw multiplies p by 1 - lr * w before its step.
- sgd: m = momentum * m + g from m = 0, p -= lr * m.
- adam, adamw: m = beta1 * m + (1 - beta1) * g, v = beta2 * v + (1 - beta2) * g^2,
  p -= lr * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) with t = 1 for the first step.
- schedule: for step = 0, 1, ... lr(step) = lr * (step + 1) / warmup_steps while step < warmup_steps; from then on lr
  itself (constant), or min_lr + (lr - min_lr) * (1 + cos(pi * (step - warmup_steps) / (total - warmup_steps))) / 2
  with total = all steps of all epochs (cosine). warmup_epochs says warmup_steps in epochs.
- train: which parameters have gradients and an optimiser; the others stay as they are.
- layer_decay d: the learning rate of layer i is lr * d^(depth + 1 - i), with timm's layers (layer_of).
- ema_decay d > 0: the result is an average of the parameters that begins as they do and becomes d times itself plus
  1 - d times the parameters after every step.
- loss, bce_target_threshold, bce_sum, mixup, random_erasing, distillation: timm's, see recipes.py.
"""

import fnmatch
import json
import math
import re

import numpy as np
import torch
from torch import nn

import init_weights
import models

DEFAULTS = {
    "data": {},
    "optimizer": "adamw",
    "lr": 1e-3,
    "momentum": 0.9,
    "beta1": 0.9,
    "beta2": 0.999,
    "eps": 1e-8,
    "weight_decay": 0.0,
    "label_smoothing": 0.0,
    "clip_norm": 0.0,
    "accumulation": 1,
    "epochs": 1,
    "batch_size": 128,
    "warmup_steps": 0,
    "schedule": "constant",
    "min_lr": 0.0,
    "seed": 0,
    "train": "all",
    "head_init": "normal",
    "layer_decay": 1.0,
    "ema_decay": 0.0,
    "warmup_epochs": 0.0,
    "loss": "cross_entropy",
    "bce_target_threshold": None,
    "bce_sum": False,
    "mixup": {},
    "random_erasing": {},
    "distillation": {},
}
DATA_DEFAULTS = {"mean": [0.0], "std": [1.0], "class_names": [], "crop_padding": 0, "flip": False}
MODEL_DEFAULTS = {
    "image_height": 224, "image_width": 224, "patch_height": 16, "patch_width": 16, "channels": 3,
    "patch_bias": True, "patch_norm": False, "class_token": True, "distillation_token": False, "registers": 0,
    "positions": "learned", "position_span": "all", "pre_norm": False, "dim": 768, "depth": 12, "heads": 12,
    "qkv_bias": True, "qk_scale": 0.0, "per_head_maps": False, "projection": True, "mlp": "plain", "mlp_hidden": 0,
    "activation": "gelu", "layer_scale": False, "layer_scale_init": 1e-5, "eps": 1e-6, "final_norm": True,
    "pool": "token", "fc_norm": False, "representation_size": 0, "classes": 1000, "distilled_head": False,
    "rotary": "none", "rotary_base": 10000.0, "rotary_reference": 0, "rotary_centered": False, "key_bias": True,
    "head_norm": False, "attention_norm": False, "mlp_norm": False, "post_norm": False, "relative_bias": "none",
    "block": "sequential", "branches": 1, "attention": "plain", "class_blocks": 0,
    "softmax_output": False, "init": "vit", "dropout": 0.0, "attention_dropout": 0.0, "stochastic_depth": 0.0,
}  # fmt: skip


def with_defaults(values, defaults, of):
    unknown = sorted(set(values) - set(defaults))
    if unknown:
        raise ValueError(f"{of}: found the field '{unknown[0]}', expected one of {', '.join(defaults)}")
    return {**defaults, **values}


def model_fields(fields):
    """A ViTConfig with all its fields; image_size and patch_size stand for both sides."""
    fields = dict(fields)
    for name in ("image", "patch"):
        if f"{name}_size" in fields:
            size = fields.pop(f"{name}_size")
            fields = {f"{name}_height": size, f"{name}_width": size, **fields}
    return with_defaults(fields, MODEL_DEFAULTS, "model")


def config_of(values):
    """A configuration with all its fields."""
    config = with_defaults(values, {"model": {}, **DEFAULTS}, "configuration")
    config["model"] = model_fields(config["model"])
    config["data"] = with_defaults(config["data"], DATA_DEFAULTS, "data")
    return config


def read_config(path):
    with open(path, encoding="utf-8") as file:
        return config_of(json.load(file))


# A model of these fields, in models.py's classes.


def my_vit(f):
    sides = {f["image_height"] // f["patch_height"], f["image_width"] // f["patch_width"]}
    expected = {"patch_bias": True, "class_token": True, "registers": 0, "distillation_token": False,
                "positions": "sincos", "projection": False, "mlp": "plain", "activation": "gelu", "qkv_bias": True,
                "eps": 1e-5, "final_norm": False, "pool": "token", "representation_size": 0}  # fmt: skip
    for field, value in expected.items():
        if f[field] != value:
            raise ValueError(f"model: per_head_maps is true and {field} is {f[field]}, expected {value} (MyViT)")
    if len(sides) != 1 or f["mlp_hidden"] not in (0, 4 * f["dim"]):
        raise ValueError("model: per_head_maps is true, expected a square grid and mlp_hidden = 4 dim (MyViT)")
    chw = (f["channels"], f["image_height"], f["image_width"])
    return models.MyViT(chw, sides.pop(), f["depth"], f["dim"], f["heads"], f["classes"])


ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_tanh", "gelu_quick": "quick_gelu", "silu": "silu"}
POOLS = {"token": "token", "mean": "avg", "token_and_mean": "token_and_mean", "attention": "map"}


def build(fields):
    """The module for a ViTConfig's fields, PyTorch's own names and weights; ValueError for what it can't be."""
    f = model_fields(fields)
    if f["per_head_maps"]:
        return my_vit(f)
    gated = f["mlp"] == "swiglu"
    dim = f["dim"]
    hidden = f["mlp_hidden"] or ((8 * dim // 3 + 7) // 8 * 8 if gated else 4 * dim)
    if gated and f["activation"] != "silu":
        raise ValueError(f"model: mlp is swiglu and activation is {f['activation']}, expected silu")
    if f["positions"] not in ("learned", "none") or not f["projection"] or f["patch_bias"] == f["pre_norm"]:
        raise ValueError("model: expected positions=learned or none, projection=true and patch_bias = not pre_norm")
    if f["attention"] not in ("plain", "talking_heads"):
        raise ValueError(f"model: attention is {f['attention']}, expected plain or talking_heads")
    if f["final_norm"] and f["fc_norm"]:
        raise ValueError("model: final_norm and fc_norm are true, expected at most one of the two")
    if f["dropout"] or f["attention_dropout"] or f["stochastic_depth"]:
        raise ValueError("model: a dropout is not 0: its random numbers are Vitrine's own")
    model = models.VisionTransformer(
        img_size=(f["image_height"], f["image_width"]),
        patch_size=(f["patch_height"], f["patch_width"]),
        in_chans=f["channels"],
        num_classes=f["classes"],
        embed_dim=dim,
        depth=f["depth"],
        num_heads=f["heads"],
        mlp_ratio=hidden * (2 if gated else 1) / dim,
        qkv_bias=f["qkv_bias"],
        qk_scale=f["qk_scale"] or None,
        representation_size=f["representation_size"] or None,
        distilled=f["distillation_token"],
        one_head=not f["distilled_head"],
        class_token=f["class_token"],
        global_pool=POOLS[f["pool"]],
        fc_norm=f["fc_norm"],
        reg_tokens=f["registers"],
        no_embed_class=f["position_span"] == "patches",
        layer_scale=f["layer_scale"],
        pre_norm=f["pre_norm"],
        patch_norm=f["patch_norm"],
        swiglu=gated,
        act_layer=ACTIVATIONS["gelu" if gated else f["activation"]],
        position_registers=f["position_span"] == "all",
        final_norm=f["final_norm"] or f["fc_norm"],
        eps=f["eps"],
        positions=f["positions"] == "learned",
        rotary=None if f["rotary"] == "none" else {
            "halves": f["rotary"] == "halves", "base": f["rotary_base"], "reference": f["rotary_reference"],
            "centered": f["rotary_centered"]},
        relative=None if f["relative_bias"] == "none" else f["relative_bias"],
        class_blocks=f["class_blocks"],
        block={"kind": f["block"], "talking": f["attention"] == "talking_heads",
               **{name: f[name] for name in ("key_bias", "head_norm", "attention_norm", "mlp_norm", "post_norm", "branches")}},
    )
    first = model.blocks[0]
    fc1 = (first if f["branches"] == 1 else first.ffns[0]).mlp.fc1.out_features
    if fc1 != hidden * (2 if gated else 1):
        raise ValueError(f"model: fc1 has {fc1} rows instead of {hidden}")
    return model


# Vitrine's own names for a module's parameters.

MY_VIT_STEMS = {"linear_mapper": "patch_embed.proj", "mlp.0": "head"}
MY_VIT_BLOCK = {"norm1": "norm1", "norm2": "norm2", "mlp.0": "mlp.fc1", "mlp.2": "mlp.fc2"}


def canonical(model, tensors):
    """{name: tensor} of a module's parameters (or their gradients) under Vitrine's names, in its shapes."""
    out = {}
    for name, value in tensors.items():
        if name in ("cls_token", "class_token", "dist_token", "attn_pool.latent"):
            out["cls_token" if name == "class_token" else name] = value.reshape(-1)
            continue
        if name in ("reg_token", "pos_embed"):
            out[name] = value[0]
            continue
        if not isinstance(model, models.MyViT):
            out[name] = value
            continue
        stem, _, leaf = name.rpartition(".")
        block = re.fullmatch(r"blocks\.(\d+)\.(.+)", stem)
        head = re.fullmatch(r"mhsa\.([qkv])_mappings\.(\d+)", block[2]) if block else None
        if head:
            out.setdefault(f"blocks.{block[1]}.attn.{head[1]}.{leaf}", []).append(value)
        elif block:
            out[f"blocks.{block[1]}.{MY_VIT_BLOCK[block[2]]}.{leaf}"] = value
        elif name == "linear_mapper.weight":
            height, width = model.patch
            out["patch_embed.proj.weight"] = value.reshape(len(value), -1, height, width)
        else:
            out[f"{MY_VIT_STEMS[stem]}.{leaf}"] = value
    return {name: torch.stack(value) if isinstance(value, list) else value for name, value in out.items()}


def parameters(model):
    """A module's parameters under Vitrine's names, detached."""
    return canonical(model, {name: value.detach() for name, value in model.named_parameters()})


def load(model, weights):
    """Sets a module's parameters from arrays under Vitrine's names."""
    # Where each number goes shows when indices go through canonical() in the numbers' place.
    own = dict(model.named_parameters())
    starts, places, at = {}, {}, 0
    for name, value in own.items():
        starts[name] = at
        places[name] = torch.arange(at, at + value.numel()).reshape(value.shape)
        at += value.numel()
    flat = torch.empty(at, dtype=torch.float64)
    expected = canonical(model, places)
    if expected.keys() != weights.keys():
        raise ValueError(f"the names of the weights differ: {sorted(expected.keys() ^ weights.keys())}")
    for name, place in expected.items():
        flat[place.reshape(-1)] = torch.as_tensor(np.asarray(weights[name]), dtype=torch.float64).reshape(-1)
    with torch.no_grad():
        for name, value in own.items():
            value.copy_(flat[starts[name] : starts[name] + value.numel()].reshape(value.shape))
    return model


def initialise(model, fields, seed):
    """Gives a module the weights that Vitrine would draw from this seed."""
    f = model_fields(fields)
    shapes = {name: tuple(value.shape) for name, value in parameters(model).items()}
    return load(model, init_weights.init_weights(shapes, f["init"], seed, f["layer_scale_init"]))


# The step.


def pixels(images, data):
    """uint8 [B, C, H, W] as the model's float32 input, in float32 like torchvision's ToTensor and Normalize."""
    mean, std = (np.asarray(data[key], np.float32).reshape(1, -1, 1, 1) for key in ("mean", "std"))
    return (images.astype(np.float32) / np.float32(255) - mean) / std


def learning_rate(config, step, total):
    """Of step 0, 1, ..., total - 1."""
    lr = config["lr"]
    warmup = config["warmup_steps"] or round(config["warmup_epochs"] * total / config["epochs"])
    if step < warmup:
        return lr * (step + 1) / warmup
    if config["schedule"] == "constant":
        return lr
    share = (step - warmup) / (total - warmup)
    return config["min_lr"] + (lr - config["min_lr"]) * 0.5 * (1 + math.cos(math.pi * share))


def layer_of(name, depth):
    """timm's layer of a parameter: 0 in front of the blocks, then the blocks, the final norm with the last one, the head."""
    block = re.match(r"blocks\.(\d+)\.", name)
    if block:
        return int(block[1]) + 1
    if name.startswith("norm."):
        return depth
    return 0 if re.match(r"(cls|dist|reg)_token|pos_embed|patch_embed|norm_pre|rel_pos", name) else depth + 1


def is_trained(name, config):
    """Whether a parameter of this name is among what the field `train` says."""
    text, depth = config["train"], model_fields(config["model"])["depth"]
    head = re.match(r"head(_dist)?\.", name) is not None
    if text in ("all", "head"):
        return text == "all" or head
    if text.startswith("last:"):
        behind = re.match(r"norm\.|fc_norm|attn_pool|pre_logits", name) is not None
        block = re.match(r"blocks\.(\d+)\.", name)
        return head or behind or block is not None and int(block[1]) >= depth - int(text[5:])
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in text.split(","))


def optimizer_of(named, config, **options_of_torch):
    """torch.optim's, for (Vitrine's name, parameter) pairs, with weight decay for matrices only."""
    groups = {}
    depth = model_fields(config["model"])["depth"] if "model" in config else 0
    for name, value in named:
        decay = config.get("layer_decay", 1.0)
        scale = decay ** (depth + 1 - layer_of(name, depth)) if decay != 1 else 1.0
        matrix = init_weights.is_matrix(name)
        group = {"params": [], "weight_decay": config["weight_decay"] if matrix else 0.0, "lr_scale": scale}
        groups.setdefault((scale, not matrix), group)["params"].append(value)
    options = [groups[key] for key in sorted(groups)]
    if config["optimizer"] == "sgd":
        return torch.optim.SGD(options, lr=config["lr"], momentum=config["momentum"], **options_of_torch)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[config["optimizer"]]
    betas = (config["beta1"], config["beta2"])
    return kind(options, lr=config["lr"], betas=betas, eps=config["eps"], **options_of_torch)


def make_optimizer(model, config):
    own = {name: next(iter(canonical(model, {name: value.detach()}))) for name, value in model.named_parameters()}
    for name, value in model.named_parameters():
        value.requires_grad_(is_trained(own[name], config))
    named = [(own[name], value) for name, value in model.named_parameters() if value.requires_grad]
    return optimizer_of(named, config)


class Trainer:
    """A module with its optimiser: step() takes the batches of one step."""

    def __init__(self, model, config, total_steps, teacher=None):
        self.model, self.config, self.total = model, config, total_steps
        self.optimizer = make_optimizer(model, config)
        self.criterion = nn.CrossEntropyLoss(label_smoothing=config["label_smoothing"])
        self.result = "probabilities" if config["model"]["softmax_output"] else "logits"
        self.recipe = None
        if any(config[name] != DEFAULTS[name] for name in ("loss", "mixup", "random_erasing", "distillation")):
            import recipes  # needs timm

            self.recipe = recipes.Recipe(model, config, teacher)
        self.at = 0
        self.gradients = {}  # of the last step, before clipping
        self.gradient_norm = 0.0
        self.average = {name: value.detach().clone() for name, value in self.trained().items()}

    def trained(self):
        return {name: value for name, value in self.model.named_parameters() if value.requires_grad}

    def outcome(self):
        """The parameters that are trained, or their average, under Vitrine's names."""
        values = self.average if self.config["ema_decay"] else self.trained()
        return canonical(self.model, {name: value.detach() for name, value in values.items()})

    def loss(self, images, labels):
        if self.recipe:
            return self.recipe.loss(images, labels)
        return self.criterion(self.model(images)[self.result], labels)

    def step(self, batches):
        """The mean loss; [(images, labels), ...] are the batches that are accumulated."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.config, self.at, self.total) * group["lr_scale"]
        self.optimizer.zero_grad()
        losses = []
        for images, labels in batches:
            loss = self.loss(images, labels)
            (loss / len(batches)).backward()
            losses.append(loss.item())
        own = self.trained()
        self.gradients = canonical(self.model, {name: value.grad.clone() for name, value in own.items()})
        self.gradient_norm = math.sqrt(sum(float((g.double() ** 2).sum()) for g in self.gradients.values()))
        if self.config["clip_norm"] > 0:
            torch.nn.utils.clip_grad_norm_(own.values(), self.config["clip_norm"])
        self.optimizer.step()
        self.at += 1
        decay = self.config["ema_decay"]
        for name, value in own.items():
            self.average[name] = decay * self.average[name] + (1 - decay) * value.detach()
        return sum(losses) / len(losses)
