#!/usr/bin/env python3
"""Does `vitrine classify` keep the device busy while it decodes? Times a folder of pictures three ways, in turns.

    bench/pipeline.py --vitrine build/release/vitrine --decode build/release/bench/decode_folder

decode    the same decoding on as many threads, and nothing else
model     the model alone on tensors that are there already (`vitrine bench`), for as many pictures
classify  everything, from the start of the process to its end; the time of a call with one picture (opening the
          device, loading weights) is shown besides

Printed are the medians and the ratio of classify to the larger of the two others, which is 1 where decoding, upload and
computation overlap perfectly. On a device that is the CPU decoding and model share the cores: there the sum of the two
is the least that can be, so the ratio only says something where one of them is small. Everything measured goes to --out.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from PIL import Image


def make_pictures(folder, count, width, height):
    """JPEGs that compress like photos: smooth shapes and a little noise."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    for i in range(count):
        path = folder / f"{i:05}.jpg"
        if path.exists():
            continue
        waves = random.uniform(1, 12, (3, 4, 3))
        planes = [sum(np.sin(x * a / width * 6 + y * b / height * 6 + c) for a, b, c in wave) for wave in waves]
        pixels = np.stack(planes, -1) * 30 + 128 + random.normal(0, 5, (height, width, 3))
        Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(path, quality=90)


def run(command):
    start = time.monotonic()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    seconds = time.monotonic() - start
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit status {done.returncode}: {done.stderr.strip()[-500:]}")
    return seconds, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrine", default="build/release/vitrine")
    parser.add_argument("--decode", default="build/release/bench/decode_folder")
    parser.add_argument("--arch", default="vit_tiny_patch16_224")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--device")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--pictures", type=int, default=1000)
    parser.add_argument("--size", default="320x240", help="of the pictures, WIDTHxHEIGHT")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=pathlib.Path, help="where the pictures are kept")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("pipeline.json"))
    options = parser.parse_args()

    width, height = map(int, options.size.split("x"))
    folder = options.folder or pathlib.Path(tempfile.mkdtemp(prefix="vitrine-pipeline-"))
    make_pictures(folder, options.pictures, width, height)
    common = ["--arch", options.arch, "--batch", options.batch, "--dtype", options.dtype]
    if options.device:
        common += ["--device", options.device]
    one_picture = sorted(folder.iterdir())[0]

    def decode():
        result = json.loads(run([options.decode, folder])[1])
        if result["pictures"] != options.pictures:
            sys.exit(f"{folder}: found {result['pictures']} pictures, expected {options.pictures}")
        return result["seconds"]

    def model():
        # As many batches as the pictures make: a machine that others use has slow minutes.
        batches = ["--runs", max(1, options.pictures // options.batch)]
        line = json.loads(run([options.vitrine, "bench", *common, *batches, "--json"])[1].splitlines()[-1])
        return line["median_ms"] / 1e3 * options.pictures / options.batch

    def classify(what=folder, expected=options.pictures):
        seconds, out = run([options.vitrine, "classify", what, *common, "--json"])
        if len(out.splitlines()) != expected:
            sys.exit(f"classify printed {len(out.splitlines())} lines, expected {expected}")
        return seconds

    ways = {"decode": decode, "model": model, "classify": classify, "one picture": lambda: classify(one_picture, 1)}
    ways["one picture"]()  # fills the cache of compiled kernels
    seconds = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, measure in ways.items():
            seconds[name].append(measure())
            print(f"{name:12} {seconds[name][-1]:8.2f} s", file=sys.stderr)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    ratio = medians["classify"] / max(medians["decode"], medians["model"])
    print(f"{options.pictures} pictures of {options.size}, {options.arch} {options.dtype}, batch {options.batch}")
    for name, value in medians.items():
        print(f"  {name:12} {value:8.2f} s")
    print(f"  classify / max(decode, model) = {ratio:.3f}")
    options.out.write_text(json.dumps({"options": {k: str(v) for k, v in vars(options).items()}, "seconds": seconds,
                                       "medians": medians, "ratio": ratio}, indent=1) + "\n")


if __name__ == "__main__":
    main()
