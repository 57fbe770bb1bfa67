#!/usr/bin/env python3
"""CLIP, SigLIP and SigLIP 2 (NaFlex) of B/16's size with random weights: vitrine's vectors against transformers' in float64.

    tests/parity/full_zero_shot.py build/release/vitrine

Vocabularies are those of make_tokenizer_fixtures.py's small tokenizers. By hand: takes minutes and 4 GB.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers

from make_tokenizer_fixtures import picture_inputs

HERE = pathlib.Path(__file__).parent / "text"


def error(out, reference):
    return float(np.linalg.norm(out - reference) / np.linalg.norm(reference))


def check(vitrine, name, model, length):
    torch.manual_seed(5)
    tokenizer = transformers.AutoTokenizer.from_pretrained(HERE / name)
    texts = [t for t in json.loads((HERE / "texts.json").read_text()) if "\n" not in t and "\r" not in t][:64]
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        model.eval().save_pretrained(folder)
        for file in (HERE / name).iterdir():
            if file.suffix in (".json", ".txt", ".model") and file.name not in ("config.json", "preprocessor_config.json"):
                shutil.copy(file, folder)
        (folder / "texts.txt").write_bytes("".join(t + "\n" for t in texts).encode())
        side = 256 if name == "siglip2" else 224
        pixels = torch.randn(2, 3, side, side)
        np.save(folder / "x.npy", pixels.numpy())
        run = [vitrine, "embed", "--text", folder / "texts.txt", "--model", folder, "--out", folder / "t.npy"]
        subprocess.run(run, check=True)
        run = [vitrine, "run", "--what", "features", "--dtype", "f32", "--model", folder, "--input", folder / "x.npy"]
        subprocess.run([*run, "--output", folder / "y.npy"], check=True)
        ids = tokenizer(texts, padding="max_length", truncation=True, max_length=length, return_tensors="pt").input_ids
        model = model.double()
        patches, more = picture_inputs(model, pixels.double())
        with torch.no_grad():
            out = model(input_ids=ids, pixel_values=patches, **more)
        scale = float(model.logit_scale.detach().exp())
        bias = float(model.logit_bias.detach()) if hasattr(model, "logit_bias") else 0.0
        unit = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in (np.load(folder / f).astype(float) for f in ("y.npy", "t.npy"))]
        print(name, "texts", error(unit[1], out.text_embeds.numpy()), "pictures", error(unit[0], out.image_embeds.numpy()),
              "logits", error(unit[0] @ unit[1].T * scale + bias, out.logits_per_image.numpy()), flush=True)


def main():
    vitrine = sys.argv[1]
    shared = {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12}
    vision = {**shared, "image_size": 224, "patch_size": 16}
    tokens = json.loads((HERE / "clip/config.json").read_text())["text_config"]
    text = {k: tokens[k] for k in ("vocab_size", "eos_token_id", "bos_token_id", "pad_token_id")}
    check(vitrine, "clip", transformers.CLIPModel(transformers.CLIPConfig(text_config=text, vision_config=vision)), 77)
    small = json.loads((HERE / "siglip/config.json").read_text())["text_config"]
    config = transformers.SiglipConfig(text_config={"vocab_size": small["vocab_size"]}, vision_config=vision)
    check(vitrine, "siglip", transformers.SiglipModel(config), 64)
    small = json.loads((HERE / "siglip2/config.json").read_text())["text_config"]
    vision = {**shared, "num_patches": 256, "patch_size": 16}
    config = transformers.Siglip2Config(text_config={"vocab_size": small["vocab_size"]}, vision_config=vision)
    check(vitrine, "siglip2", transformers.Siglip2Model(config), 64)


main()
