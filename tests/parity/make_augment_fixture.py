"""Writes preprocessing/augmentations.json: hashes of what timm's RandAugment and torchvision's TrivialAugmentWide and
ColorJitter make of noise_pictures.py's pictures for given random numbers.

    python3 tests/parity/make_augment_fixture.py

Needs PyTorch, torchvision, timm, Pillow and NumPy. The file says which versions it was made by. The libraries draw
from several generators; here each is given its numbers from one list, in the order in which it asks. timm was written
when Pillow's posterize took 0 bits, and made black of everything; newer ones refuse that, so here it still does.
"""

import json
import pathlib
import random
import types

import numpy as np
import PIL
import timm
import torch
import torchvision
from PIL import Image, ImageOps
from timm.data import auto_augment
from torchvision.transforms import autoaugment, transforms

from noise_pictures import fnv, noise_picture

MEAN = (0.485, 0.456, 0.406)
# width, height
SIZES = [(37, 29), (32, 32), (24, 41), (96, 64), (5, 3), (1, 1)]
RAND = [
    {"spec": "rand-m9-mstd0.5-inc1"},
    {"spec": "rand-m9-n3-p1", "interpolation": "bilinear"},
    {"spec": "rand-m9-n3-p1-inc1", "interpolation": "bicubic"},
    {"spec": "rand-m15-n2-p1-mmax20-mstd2.5-inc1"},
    {"spec": "rand-m10-n4-mstd101-p0.8"},
    {"spec": "rand-m7-n4-p1-inc1-tweights"},
]
JITTERS = [
    {"brightness": [0.6, 1.4], "contrast": [0.6, 1.4], "saturation": [0.6, 1.4], "hue": [0, 0]},
    {"brightness": [0, 2], "contrast": [0, 2], "saturation": [0, 3], "hue": [-0.5, 0.5]},
    {"brightness": [1, 1], "contrast": [1, 1], "saturation": [1, 1], "hue": [-0.1, 0.1]},
]


class Index(int):
    """What torchvision asks of a tensor of one whole number."""

    def item(self):
        return int(self)


class Draws:
    """The numbers of one case: uniform ones below 1, and normally distributed ones."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.uniforms, self.normals = [], []

    def uniform(self):
        self.uniforms.append(round(self.random.random(), 9))
        return self.uniforms[-1]

    def normal(self):
        self.normals.append(round(self.random.gauss(0, 1), 9))
        return self.normals[-1]

    def below(self, count):
        return min(int(self.uniform() * count), count - 1)

    def choice(self, values, count=None, replace=True, p=None):
        if count is None:
            return values[self.below(len(values))]
        if p is None:
            return [values[self.below(len(values))] for _ in range(count)]
        # One after the other, none twice: what numpy.random.choice's are distributed as.
        left = list(zip(values, timm_weights()))
        chosen = []
        for _ in range(count):
            at, i = self.uniform() * sum(weight for _, weight in left), 0
            while at >= left[i][1] and i + 1 < len(left):
                at -= left[i][1]
                i += 1
            chosen.append(left.pop(i)[0])
        return chosen

    def permutation(self, count):
        order = list(range(count))
        for i in range(count - 1, 0, -1):
            k = self.below(i + 1)
            order[i], order[k] = order[k], order[i]
        return order


def timm_weights():
    return list(auto_augment.rand_augment_choices("weights").values())


def posterized(image, bits):
    return ImageOps.posterize(image, bits) if bits > 0 else image.point([0] * 256 * len(image.getbands()))


def rand_augmented(image, case, draws):
    bands = len(image.getbands())
    parameters = {"translate_const": int(min(image.size) * 0.45),
                  "img_mean": tuple(min(255, round(255 * x)) for x in MEAN[:bands])}
    if "interpolation" in case:
        parameters["interpolation"] = Image.Resampling[case["interpolation"].upper()]
    augment = auto_augment.rand_augment_transform(case["spec"], parameters)
    auto_augment.random = types.SimpleNamespace(
        random=draws.uniform, choice=draws.choice, uniform=lambda low, high: low + (high - low) * draws.uniform(),
        gauss=lambda mean, deviation: mean + draws.normal() * deviation)
    real, auto_augment.np = auto_augment.np, types.SimpleNamespace(random=types.SimpleNamespace(choice=draws.choice))
    auto_augment.ImageOps = types.SimpleNamespace(
        autocontrast=ImageOps.autocontrast, equalize=ImageOps.equalize, invert=ImageOps.invert,
        solarize=ImageOps.solarize, posterize=posterized)
    try:
        return augment(image)
    finally:
        auto_augment.random, auto_augment.np, auto_augment.ImageOps = random, real, ImageOps


def trivially_augmented(image, draws):
    autoaugment.torch = types.SimpleNamespace(
        linspace=torch.linspace, arange=torch.arange, tensor=torch.tensor, long=torch.long, Tensor=torch.Tensor,
        randint=lambda count, size, dtype=None: Index(draws.below(count)))
    try:
        return autoaugment.TrivialAugmentWide()(image)
    finally:
        autoaugment.torch = torch


def jittered(image, case, draws):
    class Given:
        def uniform_(self, low, high):
            return low + (high - low) * draws.uniform()

    jitter = transforms.ColorJitter(**{name: tuple(ends) for name, ends in case["color_jitter"].items()})
    transforms.torch = types.SimpleNamespace(randperm=draws.permutation, empty=lambda _: Given(), Tensor=torch.Tensor)
    try:
        return jitter(image)
    finally:
        transforms.torch = torch


def main():
    assert torch.linspace(0, 32, 31)[15] < 16, "the floats are a processor's that has multiply-adds"
    cases = []
    for kind, settings in (("rand_augment", RAND), ("trivial_augment", [{}]),
                           ("color_jitter", [{"color_jitter": jitter} for jitter in JITTERS])):
        repeats = {"rand_augment": 20, "trivial_augment": 80, "color_jitter": 10}[kind]
        for setting in settings:
            for i in range(repeats):
                seed = len(cases)
                width, height = SIZES[i % 4] if i % 10 else SIZES[4 + i // 10 % 2]
                grey = i % 7 == 3
                pixels = noise_picture(seed, width, height)
                image = Image.fromarray(np.ascontiguousarray(pixels[..., 0]) if grey else pixels)
                draws = Draws(seed)
                if kind == "rand_augment":
                    image = rand_augmented(image, setting, draws)
                elif kind == "trivial_augment":
                    image = trivially_augmented(image, draws)
                else:
                    image = jittered(image, setting, draws)
                cases.append({"kind": kind, **setting, "size": [width, height], "grey": grey, "seed": seed,
                              "uniform": draws.uniforms, "normal": draws.normals,
                              "fnv": fnv(np.asarray(image).tobytes())})
    path = pathlib.Path(__file__).parent / "preprocessing" / "augmentations.json"
    lines = ",\n".join(json.dumps(case) for case in cases)
    versions = {"timm": timm.__version__, "torchvision": torchvision.__version__, "pillow": PIL.__version__}
    path.write_text(f'{{"versions": {json.dumps(versions)}, "mean": {json.dumps(MEAN)}, "cases": [\n{lines}\n]}}\n')
    print(f"{path}: {len(cases)} cases")


if __name__ == "__main__":
    main()
