#!/usr/bin/env python3
"""Reads back with PyPI's tensorboard what `vitrine train --tensorboard` wrote, and compares it with log.csv.

    pip install tensorboard
    tests/parity/tables/check_event_file.py OUT
"""

import csv
import math
import pathlib
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

# Columns of log.csv, and what TensorBoard calls them.
TRAIN = {
    "loss": "train/loss",
    "learning_rate": "train/learning_rate",
    "gradient_norm": "train/gradient_norm",
    "skipped_steps": "train/skipped_steps",
    "images_per_second": "train/images_per_second",
}
VALIDATION = {"val_loss": "val/loss", "val_accuracy": "val/accuracy", "val_top5": "val/top5"}


def rounded(text):
    """The number as a float has it."""
    return struct.unpack("f", struct.pack("f", float(text)))[0]


def main():
    out = pathlib.Path(sys.argv[1])
    read = EventAccumulator(str(out), size_guidance={"scalars": 0, "images": 0})
    read.Reload()
    with open(out / "log.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    compared = 0
    for columns in (TRAIN, VALIDATION):
        for column, tag in columns.items():
            wanted = [(int(row["step"]), rounded(row[column])) for row in rows if row[column]]
            if not wanted:
                continue
            found = [(event.step, event.value) for event in read.Scalars(tag)]
            same = len(found) == len(wanted) and all(
                a[0] == b[0] and (a[1] == b[1] or (math.isnan(a[1]) and math.isnan(b[1])))
                for a, b in zip(found, wanted)
            )
            if not same:
                sys.exit(f"{tag}: found {found[:3]} ..., expected {wanted[:3]} ...")
            compared += len(found)
    pictures = [event for tag in read.Tags()["images"] for event in read.Images(tag)]
    for picture in pictures:
        width, height = struct.unpack(">II", picture.encoded_image_string[16:24])
        if (picture.width, picture.height) != (width, height):
            sys.exit(f"a picture says {picture.width}x{picture.height} and is {width}x{height}")
    tags, known = set(read.Tags()["scalars"]), set(TRAIN.values()) | set(VALIDATION.values())
    if tags - known:
        sys.exit(f"found the tags {sorted(tags - known)}, which log.csv has no column for")
    if compared == 0 or not pictures:
        sys.exit(f"found {compared} numbers and {len(pictures)} pictures, expected some of both")
    print(f"{compared} numbers and {len(pictures)} pictures are those of log.csv")


if __name__ == "__main__":
    main()
