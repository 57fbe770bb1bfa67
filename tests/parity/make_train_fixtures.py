#!/usr/bin/env python3
"""Writes what training must reproduce: make_train_fixtures.py [--out DIR] [NAME...]. README.md says what it is.

training.py says what a train.json means. Seeded by each fixture's name. All is computed in float64; a float32 run beside it shows what rounding alone costs,
and runs with one option changed show that the fixture would tell.
"""

import argparse
import dataclasses
import math
import pathlib
import sys
import zlib

import numpy as np
import safetensors.torch
import torch

import cases
import init_weights
import naming
import philox
import positions
import training

# The largest relative errors ‖out − ref‖ / ‖ref‖ allowed in f32. Parameters are measured by how far they moved: ‖out −
# ref‖ / ‖ref − initial‖.
LIMITS = {"loss": 5e-6, "first_gradient": 5e-5, "last_gradient": 5e-5, "final": 2e-4}
PROJECTION_SEED, PROJECTIONS = 0x5EED, 16


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    covers: str
    config: dict  # train.json
    steps_an_epoch: int
    weights: str = "random"  # random: like trained ones; torch: PyTorch's own; drawn: by Vitrine's rule, not stored
    contrast: float = 1.0  # of the pictures
    start: dict = None  # fields of the model that the training begins with, where it isn't of the same shape
    stored: torch.dtype = torch.float32  # as which that one's weights are stored


def tiny(**fields):
    """A narrow model on pictures of 20x15 pixels."""
    return {"image_height": 20, "image_width": 15, "patch_height": 5, "patch_width": 5, "dim": 24, "depth": 2,
            "heads": 2, "mlp_hidden": 40, "classes": 7, **fields}  # fmt: skip


def plain(model, optimizer, **fields):
    data = {"mean": [0.45, 0.5, 0.55], "std": [0.25, 0.22, 0.2], "crop_padding": 0, "flip": False}
    return {"model": model, "data": data, "optimizer": optimizer, **fields}


# What distilled students learn from: another width, and images that are normalised otherwise.
TEACHER = {"image_height": 12, "image_width": 15, "patch_height": 4, "patch_width": 5, "dim": 12, "depth": 1, "heads": 3,
           "mlp_hidden": 20, "classes": 7, "softmax_output": False}  # fmt: skip
TEACHER_MEAN, TEACHER_STD = [0.5, 0.5, 0.5], [0.5, 0.4, 0.3]


def recipe(optimizer="adamw", model=None, **fields):
    """Ten steps of one block; five to an epoch."""
    small = {"image_height": 12, "image_width": 15, "patch_height": 4, "patch_width": 5, "dim": 16, "depth": 1,
             "heads": 2, "mlp_hidden": 24, "classes": 7, "init": "torch", **(model or {})}  # fmt: skip
    common = {"lr": 0.01, "beta1": 0.8, "beta2": 0.95, "eps": 1e-3, "weight_decay": 0.5, "batch_size": 6, "epochs": 2, "seed": 7}
    if optimizer == "sgd":
        common = {"lr": 0.1, "momentum": 0.9, "batch_size": 6, "epochs": 2, "seed": 7}
    return plain(small, optimizer, **{**common, **fields})


TWO_HEADS = {"distillation_token": True, "distilled_head": True}
RECIPES = {
    "mixup": ("mixup by batch, label smoothing", recipe(label_smoothing=0.1, mixup={"mixup_alpha": 0.8})),
    "cutmix": (
        "cutmix by pair, every second one, and accumulation of two",
        recipe("sgd", accumulation=2, seed=11, mixup={"cutmix_alpha": 1.0, "mode": "pair", "prob": 0.7}),
    ),
    "mix_both": (
        "mixup and cutmix by batch in turns",
        recipe("sgd", mixup={"mixup_alpha": 0.3, "cutmix_alpha": 1.0, "switch_prob": 0.4}),
    ),
    "mix_elem": (
        "mixup and cutmix by sample, boxes of a least and a largest size",
        recipe(label_smoothing=0.1, mixup={"mixup_alpha": 0.2, "cutmix_minmax": [0.2, 0.8], "mode": "elem"}),
    ),
    "bce": ("bce with label smoothing", recipe(loss="bce", label_smoothing=0.1)),
    "bce_mixed": (
        "bce, summed over classes, of mixed labels that become 0 or 1",
        recipe("sgd", lr=0.02, loss="bce", bce_sum=True, bce_target_threshold=0.3, label_smoothing=0.1,
               mixup={"mixup_alpha": 0.8, "cutmix_alpha": 1.0}),
    ),
    "erasing": (
        "random erasing, one to three boxes",
        recipe(random_erasing={"probability": 0.8, "max_count": 3, "max_area": 0.5}),
    ),
    "distilled_hard": (
        "DeiT's hard distillation into a distillation token's head, with mixup",
        recipe(model=TWO_HEADS, label_smoothing=0.1, mixup={"mixup_alpha": 0.8},
               distillation={"model": "teacher", "kind": "hard", "alpha": 0.4}),
    ),
    "distilled_soft": (
        "DeiT's soft distillation into a distillation token's head, with erasing",
        recipe("sgd", model=TWO_HEADS, random_erasing={"probability": 0.5},
               distillation={"model": "teacher", "kind": "soft", "alpha": 0.6, "tau": 3.0}),
    ),
    "distilled_plain": (
        "timm's soft distillation into a model without a distillation token, bce of the labels",
        recipe("sgd", loss="bce", distillation={"model": "teacher", "kind": "soft", "tau": 2.0, "sum": True}),
    ),
    "distilled_plain_hard": (
        "hard distillation into a model without a distillation token",
        recipe(distillation={"model": "teacher"}),
    ),
}  # fmt: skip


def teacher_of(config):
    """A distillation's teacher: its module, and the mean and the std of its images."""
    if not config["distillation"]:
        return None
    module = naming.randomise(training.build(TEACHER), zlib.crc32(b"teacher")).float()
    return module, TEACHER_MEAN, TEACHER_STD


def write_teacher(folder):
    folder.mkdir(exist_ok=True)
    module, mean, std = teacher_of({"distillation": True})
    naming.save(folder, module.state_dict())
    cases.write_json(folder / "config.json", {"vitrine": TEACHER})
    size = {"height": TEACHER["image_height"], "width": TEACHER["image_width"]}
    cases.write_json(
        folder / "preprocessor_config.json",
        {"image_processor_type": "ViTImageProcessor", "do_resize": True, "size": size, "resample": 2,
         "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": mean, "image_std": std},
    )  # fmt: skip


CASES = (
    Case(
        "myvit",
        "MyViT's published set-up: cross-entropy on top of softmax, Adam, PyTorch's initialisation and names",
        {
            "model": {
                "image_size": 28, "patch_size": 4, "channels": 1, "dim": 8, "depth": 2, "heads": 2,
                "per_head_maps": True, "projection": False, "positions": "sincos", "eps": 1e-5,
                "final_norm": False, "classes": 10, "softmax_output": True, "init": "torch",
            },
            "data": {"mean": [0.0], "std": [1.0], "crop_padding": 0, "flip": False},
            "optimizer": "adam", "lr": 0.005, "batch_size": 128, "epochs": 5,
        },
        steps_an_epoch=4,
        weights="torch",
    ),
    Case(
        "vit192",
        "four blocks of width 192; AdamW with decay of the matrices alone, label smoothing, clipping, accumulation, "
        "warm-up and cosine; weights drawn from the seed",
        plain(
            {"image_size": 32, "patch_size": 8, "dim": 192, "depth": 4, "heads": 3, "classes": 11, "init": "torch"},
            "adamw", lr=1e-3, weight_decay=0.05, label_smoothing=0.1, clip_norm=1.0, accumulation=2, batch_size=8,
            epochs=4, warmup_steps=4, schedule="cosine", min_lr=1e-5, seed=192,
        ),
        steps_an_epoch=5,
        weights="drawn",
    ),
    Case(
        "swiglu",
        "SwiGLU, layer scale, registers without positions, mean pooling, heads of width 12; SGD with momentum, decay "
        "and cosine",
        plain(
            tiny(mlp="swiglu", activation="silu", layer_scale=True, registers=3, position_span="patches", pool="mean",
                 final_norm=False, fc_norm=True),
            "sgd", lr=0.05, momentum=0.9, weight_decay=0.01, batch_size=6, epochs=4, schedule="cosine", min_lr=0.01,
        ),
        steps_an_epoch=3,
    ),
    Case(
        "distilled",
        "distillation token, cross-entropy of both heads' mean, patch norm, tanh GELU; SGD with clipping and "
        "accumulation of three",
        plain(
            tiny(distillation_token=True, distilled_head=True, patch_norm=True, activation="gelu_tanh"),
            "sgd", lr=0.1, momentum=0.0, clip_norm=0.5, accumulation=3, batch_size=2, epochs=3, warmup_steps=2,
        ),
        steps_an_epoch=1,
    ),
    Case(
        "map",
        "attention pooling of the patches behind registers, quick GELU, no class token; AdamW",
        plain(
            tiny(class_token=False, registers=2, pool="attention", activation="gelu_quick"),
            "adamw", lr=0.01, beta1=0.8, beta2=0.95, eps=1e-3, weight_decay=0.5, batch_size=5, epochs=3,
        ),
        steps_an_epoch=1,
    ),
    Case(
        "representation",
        "representation layer with tanh, a norm in front of the blocks, SiLU, no q/k/v bias, a scale of its own; Adam "
        "with decay and label smoothing",
        plain(
            tiny(representation_size=18, pre_norm=True, patch_bias=False, activation="silu", qkv_bias=False,
                 qk_scale=0.4, eps=1e-5),
            "adam", lr=0.01, beta1=0.7, beta2=0.9, eps=1e-2, weight_decay=0.1, label_smoothing=0.2, batch_size=5,
            epochs=3, warmup_steps=1, schedule="cosine",
        ),
        steps_an_epoch=1,
    ),
    Case(
        "token_and_mean",
        "class token and mean side by side, registers behind the positions, heads of width 8; SGD with momentum",
        plain(
            tiny(heads=3, registers=2, position_span="class_and_patches", pool="token_and_mean", layer_scale=True),
            "sgd", lr=0.02, momentum=0.5, batch_size=5, epochs=3,
        ),
        steps_an_epoch=1,
    ),
    Case(
        "dinov3",
        "DINOv3's blocks: rotary positions in halves and no others, keys without a bias, SwiGLU, layer scale; AdamW",
        plain(
            tiny(positions="none", rotary="halves", rotary_base=100.0, rotary_centered=True, key_bias=False, mlp="swiglu",
                 activation="silu", layer_scale=True, registers=2, position_span="patches", pool="mean"),
            "adamw", lr=0.01, beta1=0.8, beta2=0.95, eps=1e-3, weight_decay=0.1, batch_size=5, epochs=3,
        ),
        steps_an_epoch=1,
    ),
    Case(
        "eva02",
        "EVA-02's blocks: rotary positions of neighbours beside learned ones, norms of heads, of their concatenation, in "
        "the MLP and behind the branches; SGD with momentum",
        plain(
            tiny(rotary="neighbours", rotary_reference=16, key_bias=False, head_norm=True, attention_norm=True, mlp_norm=True,
                 post_norm=True, pool="mean", final_norm=False, fc_norm=True),
            "sgd", lr=0.1, momentum=0.5, batch_size=5, epochs=3,
        ),
        steps_an_epoch=1,
    ),
    Case(
        "beit",
        "BEiT's blocks: a table of relative positions of each block and no others, keys without a bias, layer scale, class "
        "token and mean side by side; AdamW",
        plain(
            tiny(positions="none", relative_bias="own", key_bias=False, layer_scale=True, pool="token_and_mean"),
            "adamw", lr=0.01, beta1=0.8, beta2=0.95, eps=1e-3, weight_decay=0.1, batch_size=5, epochs=3,
        ),
        steps_an_epoch=1,
    ),
    Case(
        "parallel",
        "attention and MLP side by side, layer scale; AdamW",
        plain(
            tiny(block="parallel", layer_scale=True, layer_scale_init=0.5),
            "adamw", lr=0.01, beta1=0.8, beta2=0.95, eps=1e-3, weight_decay=0.1, batch_size=5, epochs=3,
        ),
        steps_an_epoch=1,
    ),
    Case(
        "branches",
        "two attentions side by side, and two MLPs, layer scale; SGD with momentum",
        plain(
            tiny(depth=1, branches=2, layer_scale=True, layer_scale_init=0.5, pool="mean", final_norm=False, fc_norm=True),
            "sgd", lr=0.1, momentum=0.5, batch_size=5, epochs=3,
        ),
        steps_an_epoch=1,
    ),
    Case(
        "talking_heads",
        "CaiT's blocks: talking heads, layer scale, and blocks behind them for the class token alone; AdamW",
        plain(
            tiny(attention="talking_heads", heads=3, class_blocks=2, position_span="patches", layer_scale=True,
                 layer_scale_init=0.5, depth=1),
            "adamw", lr=0.01, beta1=0.8, beta2=0.95, eps=1e-3, weight_decay=0.1, batch_size=5, epochs=3,
        ),
        steps_an_epoch=1,
    ),
    Case(
        "shared_relative",
        "a table of relative positions for all blocks, without a class token; AdamW and layer decay",
        plain(
            tiny(relative_bias="shared", class_token=False, pool="mean", depth=3),
            "adamw", lr=0.01, beta1=0.8, beta2=0.95, eps=1e-3, batch_size=5, epochs=3, layer_decay=0.75,
        ),
        steps_an_epoch=1,
    ),
    *(Case(name, covers, config, steps_an_epoch=5, weights="drawn") for name, (covers, config) in RECIPES.items()),
)  # fmt: skip


def started(name, covers, fields, start, **options):
    """A training that begins with another model: a new head, and what else differs."""
    model = tiny(depth=3, **fields)
    recipe = {"weight_decay": 0.2, "label_smoothing": 0.1, "lr": 5e-3, "beta1": 0.8, "beta2": 0.95, "eps": 1e-3,
              "batch_size": 4, "epochs": 5, **options}
    stored = recipe.pop("stored", torch.float32)
    return Case(name, covers, plain(model, "adamw", **recipe), steps_an_epoch=2, start={**model, **start}, stored=stored)


CASES += (
    started("new_head", "a new head, drawn from the seed, on a model of 9 classes", {}, {"classes": 9}, seed=3),
    started("f16_other_size", "a start in F16, for images of another size: positions resampled; a new head",
            {}, {"classes": 9, "image_height": 30, "image_width": 25}, stored=torch.float16),
    started("head_alone", "the head alone, new; cosine", {}, {"classes": 9}, train="head", schedule="cosine"),
    started("last_two", "the last two of three blocks, the final norm and the head", {}, {}, train="last:2"),
    started("layers_and_average", "layer decay, an average of the weights, clipping and a warm-up in epochs",
            {}, {"classes": 9}, layer_decay=0.75, ema_decay=0.8, clip_norm=1.0, warmup_epochs=1.5, schedule="cosine"),
)  # fmt: skip


def pictures(case, config):
    """uint8 pictures and labels of all steps of an epoch: per class two blobs of a colour, moved about, and noise."""
    fields = config["model"]
    channels, height, width = fields["channels"], fields["image_height"], fields["image_width"]
    count = case.steps_an_epoch * config["accumulation"] * config["batch_size"]
    random = np.random.default_rng(zlib.crc32(f"{case.name} pictures".encode()))
    labels = random.integers(fields["classes"], size=count).astype(np.uint8)
    of_class = random.uniform(0.2, 0.8, (fields["classes"], 2, 2))
    colours = random.uniform(0.2, 1.0, (fields["classes"], channels))
    rows, columns = (np.arange(n)[:, None] / n for n in (height, width))
    images = np.empty((count, channels, height, width), np.uint8)
    for i, label in enumerate(labels):
        shape = np.zeros((height, width))
        for y, x in of_class[label] + random.normal(0, 0.04, (2, 2)):
            shape += np.exp(-((rows - y) ** 2 + (columns.T - x) ** 2) / 0.02)
        value = 20 + 200 * colours[label][:, None, None] * shape + random.normal(0, 20, images.shape[1:])
        images[i] = np.clip(np.rint(value), 0, 255)
    return images, labels


def start_model(case):
    """The model that a training begins with, in float64, with values that the stored type holds."""
    return naming.randomise(training.build(case.start), zlib.crc32(case.name.encode()), case.stored)


def grid(fields):
    f = training.model_fields(fields)
    return f["image_height"] // f["patch_height"], f["image_width"] // f["patch_width"]


def from_start(case, config):
    """The trained model as Vitrine begins it: the start's weights, positions for its size, a head where classes differ."""
    model = training.build(config["model"])
    weights = {name: value.double() for name, value in training.parameters(start_model(case)).items()}
    wanted = {name: tuple(value.shape) for name, value in training.parameters(model).items()}
    if weights["pos_embed"].shape != wanted["pos_embed"]:
        weights["pos_embed"] = positions.resample(
            weights["pos_embed"][None], grid(case.start), grid(config["model"]), positions.rule_of("timm"))[0].float()
    if tuple(weights["head.weight"].shape) != wanted["head.weight"]:
        drawn = philox.normal(config["seed"], "head.weight", wanted["head.weight"], 0.02)
        weights["head.weight"], weights["head.bias"] = torch.from_numpy(drawn), torch.zeros(wanted["head.bias"])
    return training.load(model.double(), {name: value.double().numpy() for name, value in weights.items()}).float()


def fresh_model(case, config):
    if case.start:
        return from_start(case, config)
    model = training.build(config["model"])
    if case.weights == "drawn":
        return training.initialise(model, config["model"], config["seed"])
    if case.weights == "torch":
        torch.manual_seed(config["seed"])
        model = training.build(config["model"])
        model.class_token.data = torch.rand_like(model.class_token)
        return model
    return naming.randomise(model, zlib.crc32(case.name.encode())).float()


def inert(shapes):
    """{name: [first, last] rows} whose gradient is zero but for rounding: softmax takes a key's bias away, and one of mixed scores.

    Adam makes steps of ordinary size of that rounding; no output shows them.
    """
    found = {}
    for name, shape in shapes.items():
        if name.endswith(("attn.k.bias", "attn.proj_l.bias")):
            found[name] = [0, shape[0]]
        elif name.endswith("attn.qkv.bias"):
            found[name] = [shape[0] // 3, shape[0] // 3 * 2]
        elif name == "attn_pool.kv.bias":
            found[name] = [0, shape[0] // 2]
    return found


def without(tensors, rows):
    """Float64 copies with these rows zero."""
    out = {name: value.detach().double().clone() for name, value in tensors.items()}
    for name, (first, last) in rows.items():
        out[name][first:last] = 0
    return out


@dataclasses.dataclass
class Run:
    losses: list
    norms: list
    first: dict  # the gradients of the first and the last step
    last: dict
    final: dict


def run(model, config, images, labels, steps, dtype=torch.float64):
    trainer = training.Trainer(model.to(dtype), config, steps, teacher_of(config))
    x, y = torch.from_numpy(images).to(dtype), torch.from_numpy(labels.astype(np.int64))
    size, times = config["batch_size"], config["accumulation"]
    losses, norms, first = [], [], {}
    for step in range(steps):
        starts = [(step * times + i) * size % len(x) for i in range(times)]
        losses.append(trainer.step([(x[at : at + size], y[at : at + size]) for at in starts]))
        norms.append(trainer.gradient_norm)
        first = first or trainer.gradients
    return Run(losses, norms, first, trainer.gradients, trainer.outcome())


def error(out, reference, base=None):
    """(largest relative error, tensor) over the tensors; against their change since `base` where there is one."""
    worst = (0.0, "")
    for name, value in reference.items():
        size = (value - base[name]).norm() if base else value.norm()
        if size > 0:
            worst = max(worst, (float((out[name] - value).norm() / size), name))
    return worst


def changed(config):
    """The configuration with one option gone or other than it is: {what: configuration}."""
    out = {}
    for option, other in (("label_smoothing", 0.0), ("clip_norm", 0.0), ("weight_decay", 0.0), ("warmup_steps", 0),
                          ("min_lr", 0.0), ("schedule", "constant"), ("layer_decay", 1.0), ("ema_decay", 0.0), ("warmup_epochs", 0.0)):  # fmt: skip
        if config[option] != other:
            out[option] = {**config, option: other}
    if config["loss"] == "bce":
        out["loss"] = {**config, "loss": "cross_entropy"}
        if config["bce_sum"]:
            out["bce_target_threshold"] = {**config, "bce_target_threshold": None}
    for part, other in (("mixup", {"prob": 0.5}), ("mixup", {"mode": "pair"}), ("mixup", {"switch_prob": 0.9}),
                        ("random_erasing", {"max_area": 0.3}), ("random_erasing", {"probability": 0.4}),
                        ("distillation", {"alpha": 0.55}), ("distillation", {"tau": 2.2})):  # fmt: skip
        options = config[part]
        if not options or all(options.get(key) == value for key, value in other.items()):
            continue
        if "switch_prob" in other and not ("mixup_alpha" in options and "cutmix_alpha" in options):
            continue
        if "tau" in other and options.get("kind") != "soft":
            continue
        out[f"{part} {other}"] = {**config, part: {**options, **other}}
    if config["optimizer"] == "sgd":
        out["momentum"] = {**config, "momentum": abs(config["momentum"] - 0.02)}
    else:
        out["beta1"] = {**config, "beta1": config["beta1"] - 0.01}
        out["beta2"] = {**config, "beta2": 1 - 2 * (1 - config["beta2"])}
        if config["eps"] > 1e-6:
            out["eps"] = {**config, "eps": config["eps"] * 1.1}
        if config["weight_decay"]:
            out["optimizer"] = {**config, "optimizer": "adam" if config["optimizer"] == "adamw" else "adamw"}
    return out


def check(case, config, data, reference, initial, rows, steps):
    """A line of figures; ValueError when rounding alone nears a limit or a changed option would not show."""
    lines = []
    single = run(fresh_model(case, config), config, *data, steps, torch.float32)
    of = {
        "loss": max((abs(a - b) / abs(b), f"step {i}") for i, (a, b) in enumerate(zip(single.losses, reference.losses))),
        "first_gradient": error(without(single.first, rows), without(reference.first, rows)),
        "last_gradient": error(without(single.last, rows), without(reference.last, rows)),
        "final": error(without(single.final, rows), without(reference.final, rows), initial),
    }
    lines.append("rounding: " + ", ".join(f"{what} {value:.1e} ({where})" for what, (value, where) in of.items()))
    for what, (value, where) in of.items():
        if value > LIMITS[what] / 2:
            raise ValueError(f"{case.name}: float32 alone costs {value:.1e} in {what} ({where})")
    for name, value in without(reference.first, rows).items():
        touched = [value] if name not in rows else [value[: rows[name][0]], value[rows[name][1] :]]
        if sum(float((part == 0).sum()) for part in touched):
            raise ValueError(f"{case.name}: a gradient of {name} is zero")
    told = []
    others = {what: (other, init_weights.is_matrix) for what, other in changed(config).items()}
    if config["weight_decay"]:
        others["decay of everything"] = (config, lambda name: True)
    for what, (other, decays) in others.items():
        saved, init_weights.is_matrix = init_weights.is_matrix, decays
        moved = run(fresh_model(case, config), other, *data, steps)
        init_weights.is_matrix = saved
        told.append((error(without(moved.final, rows), without(reference.final, rows), initial)[0], what))
    least = min(told)
    lines.append("changed: " + ", ".join(f"{what} {value:.1g}" for value, what in told))
    if least[0] < 4 * LIMITS["final"]:
        raise ValueError(f"{case.name}: another {least[1]} changes the final parameters by {least[0]:.1e} only")
    return "\n  ".join(lines)


def projections(tensors):
    """{name: {"norm", "projections"}}: the sums of a tensor's elements, each times +1 or -1, for sixteen choices.

    Element i is subtracted in sum k if bit k of word i of the stream RandomStream(PROJECTION_SEED, fnv1a(name)) is
    set. The root of the mean square of sixteen sums estimates a tensor's norm to about 18 %, so that of their
    differences estimates the norm of the difference: a wrong tensor can't hide.
    """
    out = {}
    for name, value in tensors.items():
        flat = value.numpy().reshape(-1)
        words = philox.words_of(PROJECTION_SEED, name, len(flat))
        bits = words[:, None] >> np.arange(PROJECTIONS, dtype=np.uint64) & np.uint64(1)
        sums = flat @ (1 - 2 * bits.astype(np.float64))
        out[name] = {"norm": float(np.linalg.norm(flat)), "projections": sums.tolist()}
    return out


def save_tensors(path, tensors):
    safetensors.torch.save_file({name: value.float().contiguous() for name, value in tensors.items()}, str(path))


def write_fixture(case, folder):
    config = training.config_of(case.config)
    images, labels = pictures(case, config)
    data = (training.pixels(images, config["data"]), labels)
    steps = case.steps_an_epoch * config["epochs"]
    model = fresh_model(case, config)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    before = training.parameters(model)
    rows = inert({name: tuple(value.shape) for name, value in before.items() if training.is_trained(name, config)})
    initial = without(before, rows)
    reference = run(model, config, *data, steps)
    report = check(case, config, data, reference, initial, rows, steps)

    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.rglob("*"):
        if stale.is_file():
            stale.unlink()
    np.save(folder / "images.npy", images)
    np.save(folder / "labels.npy", labels)
    cases.write_json(folder / "train.json", case.config)
    if config["distillation"]:
        write_teacher(folder / "teacher")
    expected = {
        "covers": case.covers,
        **({"start": True} if case.start else {}),
        "steps": steps,
        "losses": reference.losses,
        "gradient_norms": reference.norms,
        "learning_rates": [training.learning_rate(config, step, steps) for step in range(steps)],
        "inert": rows,
        "limits": LIMITS,
    }
    tensors = {
        "first_gradient": without(reference.first, rows),
        "last_gradient": without(reference.last, rows),
        "final": without(reference.final, rows),
    }
    if case.weights == "drawn":
        tensors["change"] = {name: value - initial[name] for name, value in tensors.pop("final").items()}
        expected["projections"] = {
            "seed": PROJECTION_SEED,
            "initial": projections(initial),
            **{what: projections(values) for what, values in tensors.items()},
        }
    else:
        if case.start:
            state = start_model(case).state_dict()
        naming.save(folder, state, case.stored)
        fields = {**case.start, "position_resize": positions.rule_of("timm")} if case.start else case.config["model"]
        cases.write_json(folder / "config.json", {"vitrine": fields})
        for what, values in tensors.items():
            save_tensors(folder / f"{what}.safetensors", values)
    cases.write_json(folder / "expected.json", expected)
    fall = f"loss {reference.losses[0]:.4f} to {reference.losses[-1]:.4f} in {steps} steps"
    return f"{fall}\n  {report}"


def main():
    parser = argparse.ArgumentParser(description="Write the fixtures of training.")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "train")
    parser.add_argument("names", nargs="*", help="only these fixtures")
    arguments = parser.parse_args()
    known = {case.name for case in CASES}
    for name in arguments.names:
        if name not in known:
            parser.error(f"no fixture is called '{name}', expected one of: {', '.join(sorted(known))}")
    torch.set_num_threads(1)
    total = 0
    for case in CASES:
        if arguments.names and case.name not in arguments.names:
            continue
        folder = arguments.out / case.name
        report = write_fixture(case, folder)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        total += size
        print(f"{case.name:16} {size / 1024:7.1f} KiB  {report}", flush=True)
    print(f"{'total':16} {total / 1024:7.1f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
