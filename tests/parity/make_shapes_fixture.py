#!/usr/bin/env python3
"""Writes shapes/: what transformers makes of pictures that keep their shape (SigLIP 2's NaFlex).

    python3 tests/parity/make_shapes_fixture.py      # transformers 5, torchvision, Pillow before 13, a processor with AVX2

The pictures are one batch there, filled up and masked. For each: the size that the processor gives it, hashes of its numbers
as the processors on Pillow and on PyTorch have them, and, in features.npy, what the model of fixtures/hf_siglip2 makes of the
former in float64.
"""

import json
import pathlib

import numpy as np
import PIL
import torch
import transformers
from PIL import Image
from transformers.models.siglip2.image_processing_pil_siglip2 import Siglip2ImageProcessorPil
from transformers.models.siglip2.image_processing_siglip2 import Siglip2ImageProcessor

from noise_pictures import fnv, noise_picture

HERE = pathlib.Path(__file__).parent
PATCH, MOST = 8, 20
# None is a column of patches: PyTorch 2.15 interpolates the positions of those wrongly.
SIZES = [(64, 64), (97, 61), (61, 97), (300, 20), (40, 260), (7, 5), (1, 1), (640, 480), (481, 640), (64, 63), (33, 200), (500, 375)]


def picture_of(patches, rows, columns):
    """[3, height, width] of patches as rows."""
    cut = patches[:rows * columns].reshape(rows, columns, PATCH, PATCH, 3)
    return cut.transpose(4, 0, 2, 1, 3).reshape(3, rows * PATCH, columns * PATCH)


def main():
    pictures = [Image.fromarray(noise_picture(i, *size)) for i, size in enumerate(SIZES)]
    options = {"patch_size": PATCH, "max_num_patches": MOST}
    made = {kind: cls(**options)(pictures, return_tensors="pt")
            for kind, cls in (("fnv", Siglip2ImageProcessorPil), ("fast", Siglip2ImageProcessor))}
    shapes = made["fnv"]["spatial_shapes"].tolist()
    rows = []
    for i, (size, shape) in enumerate(zip(SIZES, shapes)):
        hashes = {kind: fnv(np.ascontiguousarray(picture_of(of["pixel_values"][i].numpy(), *shape), np.float32).tobytes())
                  for kind, of in made.items()}
        rows.append({"seed": i, "from": list(size), "shape": [3, shape[0] * PATCH, shape[1] * PATCH], **hashes})
    model = transformers.Siglip2VisionModel.from_pretrained(HERE / "fixtures" / "hf_siglip2").double().eval()
    with torch.no_grad():
        features = model(made["fnv"]["pixel_values"].double(), made["fnv"]["pixel_attention_mask"], made["fnv"]["spatial_shapes"]).pooler_output
    folder = HERE / "shapes"
    folder.mkdir(exist_ok=True)
    np.save(folder / "features.npy", features.numpy())
    libraries = {"pillow": PIL.__version__, "torch": torch.__version__, "transformers": transformers.__version__}
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    (folder / "pictures.json").write_text(
        f'{{"libraries": {json.dumps(libraries)}, "patch": {PATCH}, "most_patches": {MOST}, "pictures": [\n  {lines}]}}\n')
    print(f"{folder}: {len(rows)} pictures, {shapes}")


if __name__ == "__main__":
    main()
