#!/usr/bin/env python3
"""Kills a training at random moments, goes on from what it left, and compares all files at the end.

    tests/apps/kill_training.py --program build/release/vitrine --kills 20 --seed 1 [-- EXTRA ARGUMENTS OF vitrine train]

The training has all that may go wrong when it stops in the middle: random rectangles, mirrors, RandAugment, color jitter, mixup and
cutmix, random erasing, dropout, distillation, an average of the weights, a learning rate of its own for each layer, accumulated
gradients, validation, several checkpoints, TensorBoard's events, and products in f16 where the device has matrix units
(Mesa's software driver as `tests/drivers/with_driver discrete_card`). It is saved after every update. What comes behind `--` is added to every run.

A process gets SIGKILL after a random time. One that was quicker has finished its training, and another begins. In the
end each of them has to have left what one that nobody disturbed leaves:

- the same files under the same names, nothing besides, and nothing unfinished;
- in them the same bytes, but for what a clock decides: the column images_per_second of log.csv; in TensorBoard's events
  the time of each record, the value train/images_per_second, and the records' checksums; in checkpoints the fields
  seconds, and log_bytes, log.csv's length, which that column changes;
- the same last line on stdout: the test's result.

Prints a line a kill on stderr and a JSON line at the end; exit status 1 where anything differs.
"""

import argparse
import csv
import io
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib

MODEL = {"image_size": 24, "patch_size": 8, "channels": 3, "dim": 48, "depth": 2, "heads": 3, "classes": 4,
         "init": "torch", "stochastic_depth": 0.1, "dropout": 0.1}  # fmt: skip
EVERYTHING = {
    "model": {**MODEL, "distillation_token": True, "distilled_head": True},
    "data": {"mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25], "flip": True, "random_resized_crop": {},
             "rand_augment": "rand-m9-mstd0.5-inc1", "color_jitter": 0.3},
    "optimizer": "adamw", "lr": 0.003, "weight_decay": 0.05, "clip_norm": 1, "label_smoothing": 0.1,
    "epochs": 10, "batch_size": 8, "accumulation": 2, "schedule": "cosine", "warmup_epochs": 1,
    "layer_decay": 0.75, "ema_decay": 0.9, "repeats": 2, "sampling": "balanced",
    "mixup": {"mixup_alpha": 0.8, "cutmix_alpha": 1.0}, "random_erasing": {"probability": 0.5, "mode": "pixel"},
    "validate_every": 3, "keep": 3, "tensorboard": True, "seed": 3,
}  # fmt: skip
EVENTS = "events.out.tfevents.0.vitrine"


def write_png(path, width, height, pixels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + pixels[3 * width * y : 3 * width * (y + 1)] for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) +
                     chunk(b"IEND", b""))  # fmt: skip


def write_pictures(folder, numbers):
    """Noise of odd sizes, in which each class brightens another quarter."""
    for part, count in (("train", 20), ("val", 5), ("test", 5)):
        for label in range(4):
            (folder / part / f"class{label}").mkdir(parents=True)
            for i in range(count):
                width, height = numbers.randrange(19, 60), numbers.randrange(19, 60)
                pixels = bytearray(numbers.randbytes(3 * width * height))
                for y in range(height):
                    for x in range(width):
                        if 2 * (2 * y // height) + 2 * x // width == label:
                            at = 3 * (y * width + x)
                            pixels[at : at + 3] = bytes(128 + value // 2 for value in pixels[at : at + 3])
                write_png(folder / part / f"class{label}" / f"{i}.png", width, height, bytes(pixels))


def without_clock(path):
    """What has to be the same of a file."""
    data = path.read_bytes()
    if path.name == "log.csv":
        rows = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
        return [{**row, "images_per_second": bool(row["images_per_second"])} for row in rows]
    if path.name == EVENTS:
        return [event_without_clock(event) for event in events_in(data, path)]
    if path.name == "checkpoint.safetensors" or path.parent.name == "checkpoints":
        (size,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8 : 8 + size])
        for field in ("seconds", "log_bytes"):
            del header["__metadata__"][field]
        return header, data[8 + size :]
    return data


def events_in(data, path):
    at = 0
    while at < len(data):
        if at + 12 > len(data):
            raise ValueError(f"{path}: ends in the middle of a record")
        (length,) = struct.unpack_from("<Q", data, at)
        if at + 16 + length > len(data):
            raise ValueError(f"{path}: ends in the middle of a record")
        yield data[at + 12 : at + 12 + length]
        at += 16 + length


def event_without_clock(event):
    """An Event begins with its time: field 1, a double. Speed is a Summary.Value: field 1 the tag, field 2 a float."""
    if event[0] != 0x09:
        raise ValueError("an event doesn't begin with its time")
    rest = bytearray(event[9:])
    tag = b"train/images_per_second"
    at = rest.find(tag)
    if at >= 0:
        at += len(tag)
        if rest[at] != 0x15:
            raise ValueError("an event's speed isn't a float")
        rest[at + 1 : at + 5] = bytes(4)
    return bytes(rest)


def files_of(folder):
    return {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if not path.is_dir()}


def differences(wanted, found):
    a, b = files_of(wanted), files_of(found)
    result = [f"{name} is missing" for name in a if name not in b]
    result += [f"{name} is one too many" for name in b if name not in a]
    return result + [f"{name} differs" for name in a if name in b and without_clock(a[name]) != without_clock(b[name])]


def updates_in(checkpoint):
    """How far a training is, by what it saved."""
    if not checkpoint.exists():
        return 0
    with open(checkpoint, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        return int(json.loads(file.read(size))["__metadata__"]["updates"])


class Training:
    def __init__(self, arguments, work):
        self.arguments, self.work = arguments, work
        (work / "config.json").write_text(json.dumps(self.with_teacher()))
        self.in_f16 = True

    def program(self, *arguments):
        return subprocess.run([self.arguments.program, *arguments], check=True, capture_output=True, text=True).stdout

    def with_teacher(self):
        teacher = {"model": MODEL, "epochs": 1, "batch_size": 16, "lr": 0.003}
        (self.work / "teacher.json").write_text(json.dumps(teacher))
        self.program("train", "--data", self.work / "data", "--config", self.work / "teacher.json", "--out",
                     self.work / "teacher")  # fmt: skip
        return {**EVERYTHING, "distillation": {"model": str(self.work / "teacher"), "alpha": 0.5}}

    def command(self, out):
        return [self.arguments.program, "train", "--data", self.work / "data", "--config", self.work / "config.json",
                "--out", self.work / out, "--resume", "--checkpoint-seconds", "0", "--precision", "f16",
                *self.arguments.extra]  # fmt: skip

    def run(self, out, seconds=None):
        """Its last line, or nothing where it was killed."""
        with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(self.command(out), stdout=said, stderr=errors, text=True)
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.returncode == -9:
                return None
            if process.returncode != 0:
                errors.seek(0)
                raise RuntimeError(f"exit status {process.returncode}: {errors.read()}")
            errors.seek(0)
            self.in_f16 = "trains in f32" not in errors.read()
            said.seek(0)
            return said.read().splitlines()[-1]


def kill_trainings(training, kills, numbers):
    work = training.work
    begun = time.monotonic()
    wanted = training.run("whole")
    whole = time.monotonic() - begun
    begun = time.monotonic()
    if training.run("whole") != wanted:
        raise RuntimeError("a training that is over says something else of its test when it is asked again")
    start = time.monotonic() - begun  # what a process needs besides: reading, recording, testing
    killed, finished, differing, moments = 0, 0, [], []
    while killed < kills or finished == 0:
        out = f"killed{finished}"
        said = None
        while said is None:
            # Mostly while it trains; one time in five wherever it is before that.
            earliest = 0 if numbers.random() < 0.2 else start / 2
            moment = numbers.uniform(earliest, start + (whole - start) / 4)
            said = training.run(out, moment if killed < kills else None)
            if said is None:
                killed += 1
                moments.append(updates_in(work / out / "checkpoint.safetensors"))
                print(f"kill {killed}: {moments[-1]} updates are saved", file=sys.stderr)
        finished += 1
        found = differences(work / "whole", work / out) + ([] if said == wanted else [f"the test says {said}"])
        differing += [f"{out}: {difference}" for difference in found]
        if not found:
            shutil.rmtree(work / out)
    for difference in differing:
        print(difference, file=sys.stderr)
    names = list(files_of(work / "whole"))
    print(json.dumps({"in_f16": training.in_f16, "kills": killed, "trainings": finished,
                      "updates": updates_in(work / "whole/checkpoint.safetensors"), "killed_after_updates": moments,
                      "seconds_undisturbed": round(whole, 1), "files": names, "differing": differing}))  # fmt: skip
    return not differing


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/release/vitrine", type=os.path.abspath)
    parser.add_argument("--kills", default=20, type=int)
    parser.add_argument("--seed", default=1, type=int, help="of the pictures and the moments")
    parser.add_argument("--work", type=pathlib.Path, help="folder to work in, kept; else a temporary one")
    parser.add_argument("extra", nargs="*", help="behind --: more arguments for vitrine train")
    arguments = parser.parse_args()
    numbers = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as temporary:
        work = (arguments.work or pathlib.Path(temporary)).absolute()
        if (work / "data").exists():
            parser.error(f"{work} is in use already")
        write_pictures(work / "data", numbers)
        try:
            return kill_trainings(Training(arguments, work), arguments.kills, numbers)
        except (RuntimeError, ValueError) as error:
            sys.exit(f"kill_training.py: {error}")
        except subprocess.CalledProcessError as error:
            sys.exit(f"kill_training.py: {error}: {error.stderr}")


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
