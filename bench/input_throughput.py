#!/usr/bin/env python3
"""Times how many photographs a second reach a training, in Vitrine and through PyTorch's DataLoader, in turns.

    bench/input_throughput.py --pictures 20000 --rounds 3 --json input.json

JPEG files of 500x375 that this script draws (about 48 KB each) are decoded, cut by RandomResizedCrop to 224, mirrored, changed by
timm's RandAugment (rand-m9-n2-inc1) and normalised, on both sides by the same random rules. Timed are the input alone (`vitrine bench
--train CONFIG --data DIR`, one epoch, which decodes every picture; the DataLoader), and with a training of a ViT of one small block
with AdamW behind it (the second epoch of `vitrine train`). Both run on the CPU, PyTorch with as many workers as there are processors.
It needs torchvision and timm (PyPI) in the Python that runs this.
"""
import argparse
import importlib.metadata
import json
import os
import pathlib
import statistics
import sys
import tempfile

import numpy as np

from fine_tuning import HERE, run

MODEL = {"image_size": 224, "patch_size": 32, "dim": 16, "depth": 1, "heads": 1}
CLASSES = 10
MEASURED = {"the input alone": False, "with a training of one small block": True}
WIDTH, HEIGHT = 500, 375


def say(text):
    print(f"input_throughput: {text}", file=sys.stderr, flush=True)


def draw(folder, count):
    """Soft shapes with a fine texture: photographs' sizes as JPEG, and no two alike."""
    from PIL import Image
    random = np.random.default_rng(0)
    noise = lambda width, height: Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=np.uint8))
    for number in range(count):
        picture = Image.blend(noise(16, 12).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC),
                              noise(125, 94).resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR), 0.25)
        into = folder / "train" / f"class{number % CLASSES}"
        into.mkdir(parents=True, exist_ok=True)
        picture.save(into / f"{number}.jpg", quality=90)
    for label in range(CLASSES):
        into = folder / "test" / f"class{label}"
        into.mkdir(parents=True)
        picture.save(into / "0.jpg", quality=90)


def vitrine(options, data, scratch, trains):
    config = scratch / "config.json"
    config.write_text(json.dumps({
        "model": {**MODEL, "classes": CLASSES}, "batch_size": options.batch, "epochs": 2, "optimizer": "adamw", "lr": 1e-3,
        "data": {"random_resized_crop": {"interpolation": "bilinear"}, "flip": True, "rand_augment": "rand-m9-n2-inc1",
                 "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}}))
    if not trains:
        return run([options.vitrine, "bench", "--train", config, "--data", data, "--json"], {}, options.limit)[-1]["images_per_second"]
    with tempfile.TemporaryDirectory(prefix="vitrine-input-") as out:
        lines = run([options.vitrine, "train", "--data", data, "--config", config, "--out", f"{out}/run"], {}, options.limit)
    return [line for line in lines if "epoch" in line][1]["images_per_second"]


def pytorch(options, data, trains):
    command = [sys.executable, HERE / "peers" / "pytorch_input.py", "--data", data / "train", "--batch", options.batch,
               "--workers", os.cpu_count(), "--model", json.dumps({**MODEL, "classes": CLASSES})]
    return run(command + (["--train"] if trains else []), {}, options.limit)[-1]["images_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrine", type=pathlib.Path, default=HERE.parent / "build/release/vitrine")
    parser.add_argument("--pictures", type=int, default=20000)
    parser.add_argument("--data", type=pathlib.Path, help="a folder to draw them into, and to find them in the next time")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=3600, help="seconds that one measurement may take")
    parser.add_argument("--alone", action="store_true", help="the input alone, without a training behind it")
    parser.add_argument("--json", type=pathlib.Path, help="a file for all that was measured")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="vitrine-input-") as scratch:
        scratch = pathlib.Path(scratch)
        data = options.data or scratch / "data"
        if not data.exists():
            say(f"drawing {options.pictures} pictures")
            draw(data, options.pictures)
        systems = {"Vitrine": lambda trains: vitrine(options, data, scratch, trains),
                   "PyTorch": lambda trains: pytorch(options, data, trains)}
        measured = {what: trains for what, trains in MEASURED.items() if not (trains and options.alone)}
        rounds = {what: {name: [] for name in systems} for what in measured}
        for turn in range(options.rounds):
            for what, trains in measured.items():
                for name, measure in systems.items():
                    rounds[what][name].append(measure(trains))
                    say(f"round {turn + 1} of {options.rounds}: {what}: {name}: {rounds[what][name][-1]:.1f} pictures a second")
        if options.json:
            options.json.write_text(json.dumps({"options": {k: str(v) for k, v in vars(options).items()}, "rounds": rounds},
                                               indent=1))
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("torch", "torchvision", "timm", "pillow"))
    print(f"{options.pictures} pictures, batch {options.batch}, {os.cpu_count()} processors, {versions}\n")
    print("| pictures a second | Vitrine | PyTorch | Vitrine's / PyTorch's |")
    print("|---|---|---|---|")
    for what, of_systems in rounds.items():
        cells = [f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})" for values in of_systems.values()]
        ratio = statistics.median(a / b for a, b in zip(*of_systems.values()))
        print(f"| {what} | {' | '.join(cells)} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
