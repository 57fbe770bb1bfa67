#!/usr/bin/env python3
"""Writes tests/parity/fixtures/foreign_tensors.json: names and shapes of models that Vitrine doesn't compute.

Of timm one architecture of each kind of names, of transformers one small model of each class as it is saved; of what
is repeated the first block alone. Beside each stands what it is called in a refusal, which the unit test asks for.
"""
import json
import pathlib
import struct
import sys
import tempfile

import timm
import torch
import transformers

TIMM = {
    "swin_tiny_patch4_window7_224": "a Swin",
    "swinv2_tiny_window8_256": "a Swin",
    "convnext_tiny": "a convolutional network",
    "resnet18": "a convolutional network",
}
TRANSFORMERS = {
    "ConvNextModel": "a convolutional network",
    "HieraModel": "stages",
    "Llama4VisionModel": "Llama 4",
    "ResNetModel": "a convolutional network",
    "SegformerModel": "stages",
    "SwinModel": "a Swin",
    "ViTMAEForPreTraining": "a masked autoencoder",
    "VideoMAEForPreTraining": "a masked autoencoder",
    "VJEPA2Model": "a model of videos",
}
SMALL = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2, "vision_output_dim": 32,
         "decoder_hidden_size": 32, "decoder_num_hidden_layers": 1, "decoder_num_attention_heads": 2, "decoder_intermediate_size": 48}
TOO_LARGE = {"Llama4VisionModel"}  # to be saved: its names are those of the module


def first_blocks(tensors):
    def is_later(name):
        return any(part.isdigit() and part != "0" for part in name.split("."))
    return {name: shape for name, shape in tensors.items() if not is_later(name)}


def header_of(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    return {name: entry["shape"] for name, entry in header.items() if name != "__metadata__"}


def saved(name):
    model_class = getattr(transformers, name)
    config = model_class.config_class()
    for part in (config, getattr(config, "vision_config", None), getattr(config, "text_config", None)):
        for key, value in SMALL.items():
            if part is not None and isinstance(getattr(part, key, None), int):
                setattr(part, key, value)
    if name in TOO_LARGE:
        with torch.device("meta"):
            model = model_class(config)
        return {key: list(tensor.shape) for key, tensor in model.state_dict().items()}
    model = model_class(config)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return header_of(pathlib.Path(folder) / "model.safetensors")


def main():
    models = []
    for name, called in TIMM.items():
        with torch.device("meta"):
            model = timm.create_model(name)
        tensors = {key: list(tensor.shape) for key, tensor in model.state_dict().items()}
        models.append({"library": "timm", "name": name, "called": called, "tensors": first_blocks(tensors)})
    for name, called in TRANSFORMERS.items():
        try:
            tensors = saved(name)
        except Exception as error:  # said, and left out
            print(f"{name}: {error!r}"[:300], file=sys.stderr)
            continue
        model_type = getattr(transformers, name).config_class.model_type
        models.append({"library": "transformers", "name": name, "type": model_type, "called": called,
                       "tensors": first_blocks(tensors)})
    path = pathlib.Path(__file__).parent / "fixtures/foreign_tensors.json"
    versions = {"timm": timm.__version__, "transformers": transformers.__version__}
    lines = ",\n".join(json.dumps(model, separators=(",", ":")) for model in models)
    path.write_text(f'{{"versions":{json.dumps(versions)},"models":[\n{lines}\n]}}\n')
    print(len(models), "models", path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
