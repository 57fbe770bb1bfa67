#!/usr/bin/env python3
"""Writes the committed fixtures: make_fixtures.py [--out DIR] [NAME...]. README.md says what they are.

Seeded by each fixture's name, so running it again gives the same checkpoints and inputs byte for byte,
and the same references up to float64's last digits (they come from this machine's BLAS).
"""

import argparse
import pathlib
import sys

import numpy as np
import torch

import cases
import conditioning
import naming

# How far a whole model's outputs may be from float64, as a relative error. Stored F16 counts as exact.
LIMITS = {"f32": 2e-5, "f16": 5e-3}


def write_fixture(case, folder):
    built = cases.build(case)
    reference = built.reference()
    for stale in folder.glob("model*.safetensors*"):
        stale.unlink()
    missing = [what for what in case.outputs if what not in reference]
    if missing:
        raise ValueError(
            f"{case.name}: lists the outputs {', '.join(missing)}, which the model does not have"
        )
    report = conditioning.check(case, built, reference, LIMITS)
    resized = cases.resized(case, built)
    if resized is not None:
        report += conditioning.check_resized(case, resized, LIMITS)
    cases.write(case, built, folder)
    for what in case.outputs:
        np.save(folder / f"{what}.npy", reference[what])
    extra = {}
    if resized is not None:
        judged = conditioning.judged_output(case)
        np.save(folder / "resized_input.npy", resized.image)
        np.save(folder / f"resized_{judged}.npy", resized.reference()[judged])
        extra = {"resized": {"image_size": list(resized.size), "output": judged}}
    cases.write_json(
        folder / "meta.json",
        {
            **extra,
            "covers": case.covers,
            "limits": LIMITS,
            # A folder is read with its config.json; a bare file has its sizes inferred from names and shapes.
            "model": "." if built.config is not None else naming.file_name(case.shards),
            "naming": case.naming,
            "outputs": {what: list(reference[what].shape) for what in case.outputs},
            "set": list(case.overrides),
            "stored": case.dtype,
        },
    )
    return report


def main():
    parser = argparse.ArgumentParser(description="Write the PyTorch fixtures of tests/parity.")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "fixtures")
    parser.add_argument("names", nargs="*", help="only these fixtures")
    arguments = parser.parse_args()
    known = {case.name for case in cases.FIXTURES}
    for name in arguments.names:
        if name not in known:
            parser.error(f"no fixture is called '{name}', expected one of: {', '.join(sorted(known))}")
    # One thread: a reference must not depend on how many cores summed it.
    torch.set_num_threads(1)
    total = 0
    for case in cases.FIXTURES:
        if arguments.names and case.name not in arguments.names:
            continue
        folder = arguments.out / case.name
        report = write_fixture(case, folder)
        size = sum(path.stat().st_size for path in folder.iterdir())
        total += size
        print(f"{case.name:30} {size / 1024:7.1f} KiB  {report}")
    print(f"{'total':30} {total / 1024:7.1f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
