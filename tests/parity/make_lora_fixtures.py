#!/usr/bin/env python3
"""Writes what training with LoRA must reproduce: make_lora_fixtures.py [--out DIR]. README.md says what it is.

    pip install torch timm transformers peft

Ten steps of peft on a timm and on a transformers model, both in float64, from the bases in fixtures/ with a new head.
peft is given what Vitrine draws for A and for the head.
"""

import argparse
import json
import pathlib

import numpy as np
import peft
import safetensors.torch
import timm
import torch
import transformers

import philox
import training

HERE = pathlib.Path(__file__).parent
LIMITS = {"loss": 5e-6, "tensors": 5e-5, "logits": 2e-5}
CLASSES, BATCH, STEPS_AN_EPOCH, EPOCHS, SEED = 5, 6, 5, 2, 7
DATA = {"mean": [0.45, 0.5, 0.55], "std": [0.25, 0.22, 0.2]}
COMMON = {"data": DATA, "epochs": EPOCHS, "batch_size": BATCH, "seed": SEED, "train": "lora"}
CASES = {
    # A fused qkv has one pair. Ranks of no power of two; the layers that `proj` names do not include the patches'.
    "timm_vit": {
        "optimizer": "adamw", "lr": 0.02, "eps": 1e-4, "weight_decay": 0.05, "layer_decay": 0.8, "label_smoothing": 0.1,
        "lora": {"rank": 3, "alpha": 6, "targets": ["qkv", "proj", "fc1", "fc2"]},
    },
    # Two of the three projections, the MLP's layers, and alpha over the root of the rank.
    "hf_vit": {
        "optimizer": "sgd", "lr": 0.2, "momentum": 0.9, "schedule": "cosine", "clip_norm": 1.0,
        "lora": {"rank": 4, "alpha": 4, "rslora": True, "targets": ["q_proj", "v_proj", "mlp.fc1", "mlp.fc2"]},
    },
}  # fmt: skip


def model_of(base):
    folder = HERE / "fixtures" / base
    if base.startswith("hf_"):
        model = transformers.ViTForImageClassification.from_pretrained(
            folder, num_labels=CLASSES, ignore_mismatched_sizes=True, attn_implementation="eager"
        )
        return model.double(), lambda model, x: model(pixel_values=x).logits
    config = json.loads((folder / "config.json").read_text())
    model = timm.create_model(config["architecture"], num_classes=CLASSES, **config["model_args"])
    stored = safetensors.torch.load_file(folder / "model.safetensors")
    stored = {name: value for name, value in stored.items() if not name.startswith("head.")}
    missing = model.load_state_dict(stored, strict=False)
    if set(missing.missing_keys) != {"head.weight", "head.bias"} or missing.unexpected_keys:
        raise ValueError(f"{folder}: {missing}")
    return model.double(), lambda model, x: model(x)


NEWER = {"q_proj": "attn.q", "k_proj": "attn.k", "v_proj": "attn.v", "o_proj": "attn.proj"}


def vitrines(name):
    """Vitrine's name for a parameter that peft trains."""
    name = name.removeprefix("base_model.model.").replace(".default", "").replace(".modules_to_save", "")
    if name.startswith("vit.layers."):
        name = name.replace("vit.layers.", "blocks.")
        for theirs, ours in NEWER.items():
            name = name.replace(f"attention.{theirs}.", f"{ours}.")
    return name.replace("classifier.", "head.")


def targets_of(model, targets):
    """All linear layers of the blocks that these name; timm's `proj` is a convolution's name as well."""
    return sorted(
        name
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear)
        and (".layers." in name or name.startswith("blocks."))
        and any(name.endswith("." + target) for target in targets)
    )


def write(base, fields, folder):
    config = training.config_of({key: value for key, value in {**COMMON, **fields}.items() if key != "lora"})
    lora = fields["lora"]
    torch.manual_seed(0)
    model, run = model_of(base)
    frozen = {name: value.clone() for name, value in model.state_dict().items()}
    head = "classifier" if base.startswith("hf_") else "head"
    adapted = peft.get_peft_model(
        model,
        peft.LoraConfig(
            r=lora["rank"],
            lora_alpha=lora["alpha"],
            use_rslora=lora.get("rslora", False),
            target_modules=targets_of(model, lora["targets"]),
            modules_to_save=[head],
        ),
    ).double()
    named = [(vitrines(name), value) for name, value in adapted.named_parameters() if value.requires_grad]
    with torch.no_grad():
        for name, value in named:
            if name.endswith("lora_A.weight"):
                drawn = philox.torch_uniform(SEED, name, tuple(value.shape), 1 / value.shape[1] ** 0.5)
            elif name == "head.weight":
                drawn = philox.normal(SEED, name, tuple(value.shape), 0.02)
            else:
                drawn = np.zeros(tuple(value.shape), np.float32)
            value.copy_(torch.from_numpy(drawn).double())
    random = np.random.default_rng(SEED)
    size = model_size(base)
    count = BATCH * STEPS_AN_EPOCH
    images = random.integers(0, 256, (count, 3, size, size), dtype=np.uint8)
    labels = (np.arange(count) % CLASSES).astype(np.uint8)
    for i, label in enumerate(labels):
        images[i, label % 3] = images[i, label % 3] // (1 + label)
    optimizer = training.optimizer_of(named, {**config, "model": {"depth": depth_of(named)}})
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=config["label_smoothing"])
    x = torch.from_numpy(training.pixels(images, DATA)).double()
    y = torch.from_numpy(labels.astype(np.int64))
    adapted.eval()
    losses, total = [], EPOCHS * STEPS_AN_EPOCH
    for step in range(total):
        for group in optimizer.param_groups:
            group["lr"] = training.learning_rate(config, step, total) * group["lr_scale"]
        at = slice(step % STEPS_AN_EPOCH * BATCH, (step % STEPS_AN_EPOCH + 1) * BATCH)
        loss = criterion(run(adapted, x[at]), y[at])
        optimizer.zero_grad()
        loss.backward()
        if config["clip_norm"] > 0:
            torch.nn.utils.clip_grad_norm_([value for _, value in named], config["clip_norm"])
        optimizer.step()
        losses.append(loss.item())
    moved = [name for name, value in adapted.named_parameters() if not value.requires_grad
             and not torch.equal(value.detach(), frozen[name.removeprefix("base_model.model.").replace(".base_layer", "")
                                                        .replace("original_module.", "")])]  # fmt: skip
    if moved:
        raise ValueError(f"{base}: peft changed {moved}")
    logits = run(adapted, x[:BATCH]).detach()
    folder.mkdir(parents=True, exist_ok=True)
    adapted.peft_config["default"].base_model_name_or_path = f"../../../fixtures/{base}"
    adapted.float().save_pretrained(folder / "adapter")
    (folder / "adapter" / "README.md").unlink()
    np.save(folder / "images.npy", images)
    np.save(folder / "labels.npy", labels)
    np.save(folder / "logits.npy", logits.float().numpy())
    for name, value in (("train", {**COMMON, **fields}), ("expected", {"losses": losses, "limits": LIMITS})):
        (folder / f"{name}.json").write_text(json.dumps(value, indent=1) + "\n")
    print(base, losses[0], losses[-1], len(named))


def model_size(base):
    config = json.loads((HERE / "fixtures" / base / "config.json").read_text())
    return config.get("image_size") or config["model_args"]["img_size"]


def depth_of(named):
    return 1 + max(int(name.split(".")[1]) for name, _ in named if name.startswith("blocks."))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "lora")
    out = parser.parse_args().out
    for base, fields in CASES.items():
        write(base, fields, out / base)


if __name__ == "__main__":
    main()
