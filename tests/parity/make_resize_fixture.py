"""Writes preprocessing/resize.json: hashes of what Pillow's resize makes of noise_pictures.py's pictures.

    python3 tests/parity/make_resize_fixture.py

Needs Pillow and NumPy. The file says which version it was made by.
"""

import itertools
import json
import pathlib

import numpy as np
import PIL
from PIL import Image

from noise_pictures import fnv, noise_picture

FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "hamming": Image.Resampling.HAMMING,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}

# width, height, width and height of the result
SIZES = [
    (1, 1, 1, 1), (1, 1, 8, 5), (2, 3, 31, 17), (3, 200, 9, 9), (200, 3, 9, 9),
    (64, 64, 64, 64), (64, 48, 64, 20), (48, 64, 20, 64), (64, 48, 64, 90),
    (61, 47, 32, 32), (61, 47, 31, 53), (61, 47, 122, 94), (100, 100, 33, 33), (101, 77, 99, 76),
    (97, 131, 7, 5), (255, 257, 16, 48), (403, 301, 64, 56), (640, 11, 48, 48), (11, 640, 48, 48),
    (800, 600, 24, 32),
]


def main():
    cases = []
    for (name, code), (width, height, to_width, to_height) in itertools.product(FILTERS.items(), SIZES):
        seed = len(cases)
        picture = Image.fromarray(noise_picture(seed, width, height))
        result = np.asarray(picture.resize((to_width, to_height), code))
        cases.append({"filter": name, "seed": seed, "from": [width, height], "to": [to_width, to_height],
                      "fnv": fnv(result.tobytes())})
    path = pathlib.Path(__file__).parent / "preprocessing" / "resize.json"
    lines = ",\n".join(json.dumps(case) for case in cases)
    path.write_text(f'{{"pillow": "{PIL.__version__}", "cases": [\n{lines}\n]}}\n')
    print(f"{path}: {len(cases)} cases")


if __name__ == "__main__":
    main()
