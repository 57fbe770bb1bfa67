"""Writes preprocessing/classify.json: pictures through the libraries' preprocessing and PyTorch, in float64.

    PYTHONPATH=DIR_WITH_TIMM:DIR_WITH_TRANSFORMERS python3 tests/parity/make_classify_fixture.py

The models are those of fixtures/, the pictures those of tests/images/pictures. A case says what goes beside the
model, and holds probabilities and features of each picture.
"""

import json
import pathlib

import numpy as np
import torch
from PIL import Image

import cases
from make_preprocess_fixture import hugging_face, profile_transform, timm_transform

HERE = pathlib.Path(__file__).parent
PICTURES = ["jpeg_403x301.jpg", "png_palette_8.png", "jpeg_cmyk.jpg", "jpeg_1x7.jpg", "png_977x641.png", "jpeg_grey.jpg",
            "png_grey_alpha_16.png"]
BIT = {"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 20}, "crop_size": 16, "resample": 3,
       "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}


def size_of(name):
    config = json.loads((HERE / "fixtures" / name / "config.json").read_text())
    return config["image_size"]


def timm_config(name):
    return json.loads((HERE / "fixtures" / name / "config.json").read_text())["pretrained_cfg"]


def rounded(values):
    """Ten digits: a thousand times what float32 holds of them."""
    return [float(f"{value:.10g}") for value in values]


CASES = [
    # fixture, arguments, preprocessor_config.json, transform
    ("hf_vit", [], BIT, lambda: hugging_face("hf_vit", BIT)),
    ("hf_deit", [], None, lambda: profile_transform("hf-deit", size_of("hf_deit"))),
    ("hf_dinov2_classifier", [], None, lambda: profile_transform("hf-dinov2", size_of("hf_dinov2_classifier"))),
    ("timm_vit", [], None, lambda: timm_transform("timm_vit", timm_config("timm_vit"))),
    ("timm_vit", ["--profile", "siglip"], None, lambda: profile_transform("siglip", 32)),
    ("torchvision", ["--set", "heads=2"], None, lambda: profile_transform("torchvision", 24)),
    ("myvit", [], None, lambda: profile_transform("grey", 28)),
]


def main():
    torch.set_num_threads(1)
    by_name = {case.name: case for case in cases.FIXTURES}
    rows = []
    for name, arguments, preprocessor, transform in CASES:
        built, transform = cases.build(by_name[name]), transform()
        pictures = []
        for picture in PICTURES:
            image = Image.open(HERE.parent / "images" / "pictures" / picture).convert("RGB")
            outputs = cases.outputs_of(built.model, np.ascontiguousarray(transform(image))[None])
            pictures.append({"file": picture, "probabilities": rounded(outputs["probabilities"][0]),
                             "features": rounded(outputs["features"][0])})
        rows.append({"fixture": name, "arguments": arguments, "preprocessor": preprocessor, "pictures": pictures})
    path = HERE / "preprocessing" / "classify.json"
    lines = ",\n".join(json.dumps({k: v for k, v in row.items() if k != "pictures"})[:-1] + ', "pictures": [\n  ' +
                       ",\n  ".join(json.dumps(picture) for picture in row["pictures"]) + "]}" for row in rows)
    path.write_text(f'{{"cases": [\n{lines}\n]}}\n')
    print(f"{path}: {len(rows)} cases")


if __name__ == "__main__":
    main()
