#!/usr/bin/env python3
"""Writes train_pictures/: ten steps of PyTorch on pictures that torchvision's crops and timm's RandAugment changed, with the
random numbers that Vitrine draws.

    python3 tests/parity/make_augmented_training.py

The pictures are noise_pictures.py's, in folders of classes, read and changed in the order that Vitrine's seed gives them.
Everything is computed in float64; a float32 run beside it shows what rounding alone costs, and runs with another magnitude
or another mirroring show that the fixture would tell. Needs PyTorch, torchvision, timm, Pillow before 13 (which resizes
columns before rows where a picture's height shrinks more than its width) and NumPy.
"""

import pathlib

import numpy as np
import PIL
import torch
from PIL import Image
from torchvision.transforms import InterpolationMode, functional

import cases
import make_augment_fixture
import make_crop_fixture
import make_train_fixtures
import philox
import recipes
import training
from noise_pictures import noise_picture

CROPS, PLACES, OPERATIONS, ORDER = 0x63726F70, 0x6175676D, 0x6F707273, 0x6F726465  # train/data/random_streams.h
# Width, height and class of each picture; the seed is its number.
PICTURES = [(57, 31, "a"), (20, 24, "a"), (33, 47, "a"), (90, 64, "a"), (24, 20, "b"), (41, 41, "b"), (64, 90, "b"),
            (31, 57, "b"), (50, 22, "c"), (22, 50, "c"), (48, 48, "c"), (75, 33, "c")]  # fmt: skip
CONFIG = {
    "model": {"image_height": 24, "image_width": 20, "patch_height": 8, "patch_width": 10, "dim": 16, "depth": 1, "heads": 2,
              "mlp_hidden": 24, "classes": 3, "init": "torch"},
    "data": {"mean": list(make_augment_fixture.MEAN), "std": [0.229, 0.224, 0.225],
             "random_resized_crop": {"scale": [0.2, 1], "ratio": [0.75, 4 / 3], "interpolation": "bicubic"}, "flip": True,
             "rand_augment": {"magnitude": 9, "num_layers": 2, "prob": 1, "magnitude_std": 0.5, "increasing": True,
                              "interpolation": "bilinear"},
             "color_jitter": {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1}},
    "optimizer": "adamw", "lr": 0.003, "beta1": 0.8, "beta2": 0.95, "eps": 1e-3, "weight_decay": 0.1, "label_smoothing": 0.1,
    "mixup": {"mixup_alpha": 0.8, "cutmix_alpha": 1.0}, "random_erasing": {"probability": 0.5},
    "batch_size": 6, "epochs": 5, "seed": 21,
}  # fmt: skip


def words(seed, use, epoch, block):
    """The four words of a block of a stream."""
    counter = np.array([[block & 0xFFFFFFFF, block >> 32, epoch, use]], np.uint64)
    return [int(word) for word in philox.philox(counter, (seed & 0xFFFFFFFF, seed >> 32))[0]]


def order_of(count, seed, epoch):
    """train/data/epoch_order.cpp"""
    samples = list(range(count))
    for i in range(count):
        high, low, *_ = words(seed, ORDER, epoch, i)
        left = count - i
        k = i + ((high * left + (low * left >> 32)) >> 32)
        samples[i], samples[k] = samples[k], samples[i]
    return samples


class OwnDraws(make_augment_fixture.Draws):
    """What chance does to one picture: uniform numbers, and normal ones made of them."""

    def __init__(self, seed, epoch, sample):
        self.draws = recipes.Draws(seed, OPERATIONS, epoch, sample)

    def uniform(self):
        return self.draws.next()

    def normal(self):
        return float(philox.normal_quantile(np.float64(self.draws.next())))


def as_timm_says(rand):
    spec = "rand-m{magnitude}-n{num_layers}-p{prob}-mstd{magnitude_std}".format(**rand)
    return {"spec": spec + ("-inc1" if rand["increasing"] else ""), "interpolation": rand["interpolation"]}


def changed(number, config, epoch):
    """uint8 [C, H, W]: a picture as it is seen in an epoch."""
    data, seed = config["data"], config["seed"]
    width, height, _ = PICTURES[number]
    image = Image.fromarray(noise_picture(number, width, height))
    crop = data["random_resized_crop"]
    numbers = [(word + 0.5) * 2.0**-32 for block in range(16) for word in words(seed, CROPS, epoch, number * 16 + block)]
    box = make_crop_fixture.chosen(image, crop["scale"], crop["ratio"], numbers)
    size = [config["model"]["image_height"], config["model"]["image_width"]]
    image = functional.resized_crop(image, *box, size, InterpolationMode(crop["interpolation"]), antialias=True)
    if data["flip"] and words(seed, PLACES, epoch, 2 * number + 1)[0] >> 31:
        image = functional.hflip(image)
    draws = OwnDraws(seed, epoch, number)
    image = make_augment_fixture.rand_augmented(image, as_timm_says(data["rand_augment"]), draws)
    ends = {name: [1 - by, 1 + by] for name, by in data["color_jitter"].items() if name != "hue"}
    ends["hue"] = [-data["color_jitter"]["hue"], data["color_jitter"]["hue"]]
    image = make_augment_fixture.jittered(image, {"color_jitter": ends}, draws)
    return np.moveaxis(np.asarray(image), -1, 0)


def run(config, dtype):
    """The losses of all steps, and how far each parameter moved."""
    classes = sorted({name for *_, name in PICTURES})
    recipe = training.config_of({**config, "data": {key: config["data"][key] for key in ("mean", "std")}})
    steps = len(PICTURES) // config["batch_size"] * config["epochs"]
    model = training.initialise(training.build(recipe["model"]), recipe["model"], config["seed"])
    before = {name: value.double().clone() for name, value in training.parameters(model).items()}
    trainer = training.Trainer(model.to(dtype), recipe, steps)
    losses = []
    for epoch in range(config["epochs"]):
        order = order_of(len(PICTURES), config["seed"], epoch)
        for at in range(0, len(order), config["batch_size"]):
            batch = order[at : at + config["batch_size"]]
            images = training.pixels(np.stack([changed(i, config, epoch) for i in batch]), config["data"])
            labels = torch.tensor([classes.index(PICTURES[i][2]) for i in batch])
            losses.append(trainer.step([(torch.from_numpy(images).to(dtype), labels)]))
    return losses, before, {name: value.double() for name, value in trainer.outcome().items()}


def with_data(**fields):
    return {**CONFIG, "data": {**CONFIG["data"], **fields}}


def main():
    torch.set_num_threads(1)
    if int(PIL.__version__.split(".")[0]) >= 13:
        raise SystemExit(f"found Pillow {PIL.__version__}, expected one before 13")
    losses, before, after = run(CONFIG, torch.float64)
    rows = make_train_fixtures.inert({name: tuple(value.shape) for name, value in before.items()})
    initial, final = (make_train_fixtures.without(tensors, rows) for tensors in (before, after))
    limit = make_train_fixtures.LIMITS["final"]
    single = make_train_fixtures.without(run(CONFIG, torch.float32)[2], rows)
    cost = make_train_fixtures.error(single, final, initial)
    print(f"rounding costs {cost[0]:.1e} ({cost[1]})")
    if cost[0] > limit / 2:
        raise ValueError("float32 alone comes near the limit")
    for what, other in (("magnitude", with_data(rand_augment={**CONFIG["data"]["rand_augment"], "magnitude": 8})),
                        ("flip", with_data(flip=False)), ("jitter", with_data(color_jitter={**CONFIG["data"]["color_jitter"], "hue": 0.11})),
                        ("crop", with_data(random_resized_crop={**CONFIG["data"]["random_resized_crop"], "scale": [0.21, 1]}))):  # fmt: skip
        told = make_train_fixtures.error(make_train_fixtures.without(run(other, torch.float64)[2], rows), final, initial)[0]
        print(f"another {what} changes the parameters by {told:.1g}")
        if told < 4 * limit:
            raise ValueError(f"another {what} would not show")
    folder = pathlib.Path(__file__).parent / "train_pictures"
    folder.mkdir(exist_ok=True)
    cases.write_json(folder / "train.json", CONFIG)
    cases.write_json(folder / "expected.json", {
        "pictures": [{"width": width, "height": height, "class": name} for width, height, name in PICTURES],
        "losses": losses, "limits": make_train_fixtures.LIMITS, "inert": rows,
        "projections": {"seed": make_train_fixtures.PROJECTION_SEED, "initial": make_train_fixtures.projections(initial),
                        "change": make_train_fixtures.projections({name: value - initial[name] for name, value in final.items()})},
    })  # fmt: skip
    print(f"losses {losses[0]:.4f} to {losses[-1]:.4f}")


if __name__ == "__main__":
    main()
