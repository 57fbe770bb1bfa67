#!/usr/bin/env python3
"""Compares `vitrine preprocess` with each family's own loader, file by file, to the last bit.

  check_loaders.py --vitrine build/release/vitrine

A loader is what the library does between a path and the model: timm's and torchvision's transforms of Image.open(),
transformers' processors, on Pillow's pictures and on PyTorch's, behind the load_image() of its pipelines, which turns
by EXIF. Needs transformers 5, torchvision and a processor with AVX2. Prints a line a loader and what differs.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
from PIL import Image

import transformers
from make_preprocess_fixture import class_of, profile_config, profile_transform
from transformers.image_utils import load_image

PICTURES = pathlib.Path(__file__).parents[1] / "images" / "pictures"
FILES = ["jpeg_403x301.jpg", "jpeg_exif_3.jpg", "jpeg_exif_6.jpg", "jpeg_cmyk.jpg", "jpeg_progressive_grey.jpg", "png_exif.png",
         "png_grey_16.png", "png_grey_alpha_8.png", "png_grey_transparent.png", "png_palette_8.png", "png_palette_alpha.png",
         "png_palette_transparent.png", "png_rgb_alpha_8.png", "png_rgb_transparent.png", "webp_exif.webp"]
FAMILIES = ["hf", "hf-deit", "hf-dinov2", "clip", "siglip"]
SIZE = 224


def processor(profile, fast):
    """Of the class that works on Pillow's pictures or on PyTorch's."""
    config = profile_config(profile, SIZE)
    made = getattr(transformers, class_of(config) + ("" if fast else "Pil")).from_dict(config)
    return lambda path: np.asarray(made(load_image(str(path)), return_tensors="np")["pixel_values"][0])


def opened(profile):
    transform = profile_transform(profile, SIZE)
    return lambda path: transform(Image.open(path).convert("RGB"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vitrine", default="build/release/vitrine")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # Pillow's, of palettes with several transparent entries
    loaders = {name: opened(name) for name in ("timm", "torchvision")}
    for name in FAMILIES:
        loaders |= {name: processor(name, False), f"{name}-fast": processor(name, True)}
    equal = compared = 0
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "out.npy"
        for name, load in loaders.items():
            different = []
            for file in FILES:
                subprocess.run([options.vitrine, "preprocess", PICTURES / file, "--profile", name, "--size", str(SIZE), "--out", out],
                               check=True, stdout=subprocess.DEVNULL)
                ours, theirs = np.load(out)[0], np.ascontiguousarray(load(PICTURES / file), dtype=np.float32)
                compared += 1
                if ours.tobytes() == theirs.tobytes():
                    equal += 1
                else:
                    different.append(f"{file} ({np.abs(ours - theirs).max():.3g})" if ours.shape == theirs.shape else f"{file} (its shape)")
            print(name, *(different or ["equal"]), sep="\t", flush=True)
    print(f"{equal} of {compared} equal; transformers {transformers.__version__}")
    return 0 if equal == compared else 1


if __name__ == "__main__":
    sys.exit(main())
