#!/usr/bin/env python3
"""Loads with PyPI's peft an adapter that `vitrine train --train lora` wrote, and compares what it gives with Vitrine.

    pip install torch timm transformers peft
    vitrine run --model ADAPTER --input x.npy --output logits.npy
    tests/parity/check_adapter.py ADAPTER x.npy logits.npy [BASE]

BASE, a timm or transformers ViT's folder, is the adapter's own unless it lies elsewhere here.
"""

import json
import pathlib
import sys

import numpy as np
import peft
import safetensors.torch
import timm
import torch
import transformers


def base_of(folder, classes):
    """The library's own model, with a head for so many classes."""
    config = json.loads((folder / "config.json").read_text())
    if "model_type" in config:
        model = transformers.AutoModelForImageClassification.from_pretrained(
            folder, num_labels=classes, ignore_mismatched_sizes=True
        )
        return model.float(), lambda model, x: model(pixel_values=x).logits
    model = timm.create_model(config["architecture"], num_classes=classes, **config.get("model_args", {}))
    stored = safetensors.torch.load_file(folder / "model.safetensors")
    own = model.state_dict()
    fitting = {name: value for name, value in stored.items() if own[name].shape == value.shape}
    model.load_state_dict(fitting, strict=False)
    return model, lambda model, x: model(x)


def main():
    adapter = pathlib.Path(sys.argv[1])
    x, wanted = (np.load(path) for path in sys.argv[2:4])
    config = json.loads((adapter / "adapter_config.json").read_text())
    base = pathlib.Path(sys.argv[4] if len(sys.argv) > 4 else config["base_model_name_or_path"])
    model, run = base_of(base, wanted.shape[1])
    adapted = peft.PeftModel.from_pretrained(model, adapter).eval()
    stored = safetensors.torch.load_file(adapter / "adapter_model.safetensors")
    loaded = peft.get_peft_model_state_dict(adapted)
    if stored.keys() != loaded.keys():
        raise SystemExit(f"{adapter}: peft has other tensors: {sorted(stored.keys() ^ loaded.keys())[:4]}")
    for name, value in stored.items():
        if not torch.equal(value, loaded[name]):
            raise SystemExit(f"{adapter}: peft has other numbers for {name}")
    for what in ("beside the base", "merged"):
        with torch.no_grad():
            found = run(adapted, torch.from_numpy(x)).numpy()
        error = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
        print(f"{adapter}, {what}: {len(stored)} tensors, logits off by {error:.2e}")
        if not error < 2e-5:
            raise SystemExit("expected less than 2e-5")
        adapted = adapted.merge_and_unload() if what != "merged" else adapted


if __name__ == "__main__":
    main()
