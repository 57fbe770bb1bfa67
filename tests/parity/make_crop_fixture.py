"""Writes preprocessing/crops.json: what torchvision's RandomResizedCrop chooses for given random numbers, and hashes
of what it makes of noise_pictures.py's pictures, mirrored and not.

    python3 tests/parity/make_crop_fixture.py

Needs PyTorch, torchvision, Pillow and NumPy. The file says which versions it was made by. torchvision draws and
takes logarithms in float32; here it is given its random numbers, and float64, so that there is one right answer.
"""

import itertools
import json
import math
import pathlib
import random
import types

import numpy as np
import PIL
import torchvision
from PIL import Image
from torchvision.transforms import InterpolationMode, RandomResizedCrop, transforms
from torchvision.transforms import functional

from noise_pictures import fnv, noise_picture

FILTERS = {
    "nearest": InterpolationMode.NEAREST,
    "box": InterpolationMode.BOX,
    "bilinear": InterpolationMode.BILINEAR,
    "hamming": InterpolationMode.HAMMING,
    "bicubic": InterpolationMode.BICUBIC,
    "lanczos": InterpolationMode.LANCZOS,
}
# width, height; the last two have no rectangle of these proportions that is large enough
SIZES = [(61, 47), (47, 61), (403, 301), (33, 32), (5, 7), (1, 1), (200, 9), (7, 300)]
RANGES = [((0.08, 1), (3 / 4, 4 / 3)), ((0.5, 0.6), (1, 1)), ((0.9, 1), (0.5, 2))]
TO = [(24, 24), (31, 17)]


class Value(float):
    """What torchvision asks of a tensor of one number."""

    def item(self):
        return float(self)


class Given:
    """In place of torch in torchvision.transforms.transforms: numbers from 0 to 1 as they were drawn, four a try."""

    def __init__(self, numbers):
        self.tries = iter([numbers[i:i + 4] for i in range(0, len(numbers), 4)])
        self.scale = True

    def tensor(self, values):
        return values

    def log(self, values):
        return [math.log(value) for value in values]

    def exp(self, value):
        return Value(math.exp(value))

    def empty(self, _):
        return self

    def uniform_(self, low, high):
        if self.scale:
            self.current, self.places = next(self.tries), iter((2, 3))
        at = self.current[0 if self.scale else 1]
        self.scale = not self.scale
        return Value(low + (high - low) * at)

    def randint(self, low, high, size):
        assert low == 0 and size == (1,)
        return Value(min(int(self.current[next(self.places)] * high), high - 1))


def chosen(picture, scale, ratio, numbers):
    real = transforms.torch
    transforms.torch = types.SimpleNamespace(**{name: getattr(given, name) for given in [Given(numbers)] for name in
                                                ("tensor", "log", "exp", "empty", "randint")})
    try:
        return [int(side) for side in RandomResizedCrop.get_params(picture, list(scale), list(ratio))]
    finally:
        transforms.torch = real


def main():
    cases = []
    draw = random.Random(1)
    for (width, height), (scale, ratio) in itertools.product(SIZES, RANGES):
        for _ in range(3):
            seed = len(cases)
            numbers = [round(draw.random(), 9) for _ in range(40)]
            picture = Image.fromarray(noise_picture(seed, width, height))
            top, left, high, wide = chosen(picture, scale, ratio, numbers)
            name = list(FILTERS)[seed % len(FILTERS)]
            to_width, to_height = TO[seed % len(TO)]
            result = functional.resized_crop(picture, top, left, high, wide, [to_height, to_width], FILTERS[name],
                                             antialias=True)
            if seed % 3 == 0:
                result = functional.hflip(result)
            cases.append({"from": [width, height], "scale": scale, "ratio": ratio, "numbers": numbers,
                          "box": [top, left, high, wide], "filter": name, "to": [to_width, to_height],
                          "mirrored": seed % 3 == 0, "seed": seed, "fnv": fnv(np.asarray(result).tobytes())})
    path = pathlib.Path(__file__).parent / "preprocessing" / "crops.json"
    lines = ",\n".join(json.dumps(case) for case in cases)
    path.write_text(f'{{"torchvision": "{torchvision.__version__}", "pillow": "{PIL.__version__}", "cases": [\n'
                    f'{lines}\n]}}\n')
    print(f"{path}: {len(cases)} cases")


if __name__ == "__main__":
    main()
