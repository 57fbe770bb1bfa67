#!/usr/bin/env python3
"""Times a step of fine-tuning in Vitrine and in PyTorch (timm, peft), in turns: everything, LoRA, and the head alone.

    bench/fine_tuning.py --arch vit_small_patch16_224 --batch 16 --json fine_tuning.json

Both begin with random weights and see the same number of pictures a step. Vitrine's are PNG files of the model's size that
this script draws, neither mirrored nor cut, and its step is the second epoch's mean, with the reading of them; PyTorch's lie
in memory as float32. The head alone learns from features that the trunk has computed before. Memory is the most that each
process had resident; both run on the CPU.
PyTorch needs timm and peft (PyPI) in the Python that runs this.
"""
import argparse
import importlib.metadata
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

import numpy as np

from make_checkpoint import random_values, shapes_of, write_safetensors
from systems import ending, openblas

HERE = pathlib.Path(__file__).resolve().parent


def say(text):
    print(f"fine_tuning: {text}", file=sys.stderr, flush=True)


def draw_pictures(folder, side, classes, steps, batch):
    from PIL import Image
    random = np.random.default_rng(0)
    for number in range(steps * batch):
        into = folder / "train" / f"class{number % classes}"
        into.mkdir(parents=True, exist_ok=True)
        small = Image.fromarray(random.integers(0, 256, (14, 14, 3), dtype=np.uint8))
        small.resize((side, side)).save(into / f"{number}.png")
    (folder / "test").mkdir()
    for label in range(min(classes, steps * batch)):
        into = folder / "test" / f"class{label}"
        into.mkdir()
        Image.new("RGB", (side, side)).save(into / "0.png")


def run(command, environment, limit):
    """The JSON lines that a command prints; RuntimeError if it fails."""
    process = subprocess.Popen(list(map(str, command)), env={**os.environ, **environment}, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # what it has started, too
        process.wait()
        raise RuntimeError(f"took longer than {limit:.0f} s") from None
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    if process.returncode != 0:
        raise RuntimeError(ending(process.returncode, errors))
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


# Waits for a program and says what it had resident at the most; of this process's own children nobody else's counts.
PEAK = """import json, resource, subprocess, sys
status = subprocess.call(sys.argv[1:])
print(json.dumps({"peak_rss_bytes": 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}))
sys.exit(status)"""


def vitrine(options, model, data, train):
    with tempfile.TemporaryDirectory(prefix="vitrine-fine-tuning-") as out:
        command = [sys.executable, "-c", PEAK, options.vitrine, "train", "--data", data, "--model", model, "--out",
                   f"{out}/run", "--train", train, "--batch-size", options.batch, "--epochs", 2, "--no-flip",
                   "--no-resized-crop"]
        lines = run(command, {}, options.limit)
    second = [line for line in lines if "epoch" in line][1]
    return {"step_ms": 1e3 * second["seconds"] / options.steps, "peak_rss_bytes": lines[-1]["peak_rss_bytes"]}


def pytorch(options, train):
    return run([sys.executable, HERE / "peers" / "pytorch_fine_tune.py", "--arch", options.arch, "--train", train, "--batch",
                options.batch, "--image-size", options.side, "--classes", options.classes, "--steps", options.steps],
               next(iter(openblas().values())), options.limit)[-1]


def table(rows):
    print("| trained | system | ms a step | memory | PyTorch's time / Vitrine's |")
    print("|---|---|---|---|---|")
    for row in rows:
        if "refused" in row:
            print(f"| {row['train']} | {row['system']} | {row['refused']} | | |")
            continue
        ratio = f"{row['times_vitrine']:.2f}" if "times_vitrine" in row else "1"
        print(f"| {row['train']} | {row['system']} | {row['step_ms']:.1f} ({row['least']:.1f} to {row['most']:.1f}) "
              f"| {row['peak_rss_bytes'] / 2**20:.0f} MiB | {ratio} |")


def summarise(train, system, rounds, ours=None):
    row = {"train": train, "system": system, "rounds": rounds}
    steps = [one["step_ms"] for one in rounds]
    row.update(step_ms=statistics.median(steps), least=min(steps), most=max(steps),
               peak_rss_bytes=max(one["peak_rss_bytes"] for one in rounds))
    if ours:  # round by round, so that what both suffered in one round cancels
        row["times_vitrine"] = statistics.median(a["step_ms"] / b["step_ms"] for a, b in zip(rounds, ours))
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrine", type=pathlib.Path, default=HERE.parent / "build/release/vitrine")
    parser.add_argument("--arch", default="vit_small_patch16_224")
    parser.add_argument("--train", default="all,lora:8,head", help="what is trained, comma-separated")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=4, help="of an epoch")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=900, help="seconds that one measurement may take")
    parser.add_argument("--json", type=pathlib.Path, help="a file for all that was measured")
    options = parser.parse_args()
    shapes, options.side = shapes_of(options.arch, 1000)

    rows = []
    with tempfile.TemporaryDirectory(prefix="vitrine-fine-tuning-") as scratch:
        scratch = pathlib.Path(scratch)
        draw_pictures(scratch / "data", options.side, options.classes, options.steps, options.batch)
        checkpoint = scratch / f"{options.arch}.safetensors"
        random = np.random.default_rng(0)
        write_safetensors(checkpoint, {name: random_values(random, name, shape) for name, shape in shapes.items()})
        for train in options.train.split(","):
            systems = {"vitrine": lambda: vitrine(options, checkpoint, scratch / "data", train),
                       "pytorch": lambda: pytorch(options, train)}
            rounds = {name: [] for name in systems}
            refused = {}
            for turn in range(options.rounds):
                for name in set(systems) - set(refused):
                    try:
                        rounds[name].append(systems[name]())
                        say(f"{train}, round {turn + 1} of {options.rounds}: {name}: {rounds[name][-1]['step_ms']:.1f} ms a step")
                    except RuntimeError as error:
                        refused[name] = str(error)
                        say(f"{train}: {name}: {error}")
            for name in systems:
                if name in refused:
                    rows.append({"train": train, "system": name, "refused": refused[name]})
                else:
                    ours = rounds["vitrine"] if name != "vitrine" and "vitrine" not in refused else None
                    rows.append(summarise(train, name, rounds[name], ours))
            if options.json:
                options.json.write_text(json.dumps({"options": {k: str(v) for k, v in vars(options).items()}, "rows": rows}, indent=1))
    versions = []
    for package in ("torch", "timm", "peft"):
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            pass
    print(f"{options.arch}, batch {options.batch}, {', '.join(versions)}\n")
    table(rows)


if __name__ == "__main__":
    main()
