#!/usr/bin/env python3
"""Compares `vitrine run` with PyTorch in float64 on models of full size.

  full_models.py SCRATCH --vitrine build/release/vitrine [--dtype f32,f16] [--device D] [MODEL...]

Writes each model's checkpoint under its family's names, an input and the float64 logits (features where
there is no classifier) into
SCRATCH/MODEL (and keeps them: a second run reuses what the same scripts wrote), runs the program twice
for each dtype and prints a table. Exit status 1 when an error exceeds its limit, two runs differ in a
byte, or the best class differs where the reference is sure of it.
"""

import argparse
import hashlib
import itertools
import pathlib
import subprocess
import sys
import time

import numpy as np
import torch

import cases
from cases import Case

LIMITS = {"f32": 2e-5, "f16": 5e-3}
SURE = 0.01  # the reference's two best logits are further apart than this share of their range

TINY = {"embed_dim": 192, "num_heads": 3}
SMALL = {"embed_dim": 384, "num_heads": 6}
MODELS = (
    Case("vit_b_16", "torchvision's vit_b_16", {}, "torchvision"),
    Case(
        "deit_tiny_distilled",
        "DeiT-tiny with two tokens and two heads, timm's names",
        {**TINY, "distilled": True},
    ),
    Case(
        "hf_deit_tiny_distilled",
        "the same under Hugging Face's names",
        {**TINY, "distilled": True},
        "hf_deit",
        config=True,
    ),
    Case(
        "vit_small_representation",
        "ViT-S/16 with a representation layer",
        {**SMALL, "representation_size": 512},
    ),
    Case("vit_tiny_mean_pooled", "ViT-Ti/16, mean of the patch tokens", {**TINY, "global_pool": "avg"}),
    Case(
        "vit_small_images",
        "32x32 images, patches of 4, eight heads of width 48, no q/k/v bias",
        {
            "img_size": 32,
            "patch_size": 4,
            "embed_dim": 384,
            "num_heads": 8,
            "num_classes": 10,
            "qkv_bias": False,
        },
        overrides=("heads=8",),
    ),
    Case("hf_vit_tiny", "ViT-Ti/16, Hugging Face's names", dict(TINY), "hf_vit", config=True),
    Case("myvit", "MyViT", {}, "myvit"),
    Case(
        "dinov2_small",
        "DINOv2-S/14 at 518x518, timm's names; and at 224x224",
        {**SMALL, "img_size": 518, "patch_size": 14, "layer_scale": True, "num_classes": 0},
        batch=1,
    ),
    Case(
        "dinov2_giant_two_blocks",
        "two blocks of DINOv2-g/14 with their gated MLPs, registers, timm's names",
        {
            "img_size": 224,
            "patch_size": 14,
            "embed_dim": 1536,
            "num_heads": 24,
            "depth": 2,
            "mlp_ratio": 16 / 3,
            "swiglu": True,
            "layer_scale": True,
            "reg_tokens": 4,
            "no_embed_class": True,
            "num_classes": 0,
        },
    ),
    Case(
        "hf_dinov2_small_classifier",
        "DINOv2-S/14 with registers and a classifier, Hugging Face's names, in two shards",
        {
            **SMALL,
            "patch_size": 14,
            "layer_scale": True,
            "reg_tokens": 4,
            "position_registers": False,
            "global_pool": "token_and_mean",
        },
        "hf_dinov2_registers_classifier",
        shards=2,
        config=True,
    ),
    Case(
        "hf_clip_base",
        "CLIP B/16 with its projection inside the whole model's file, Hugging Face's names",
        cases.hf_clip(img_size=224, patch_size=16, embed_dim=768, depth=12, num_heads=12, embedding_size=512),
        "hf_clip",
        config=True,
    ),
    Case(
        "hf_siglip_base",
        "SigLIP B/16, Hugging Face's names",
        cases.hf_siglip(img_size=224, patch_size=16, embed_dim=768, depth=12, num_heads=12),
        "hf_siglip_vision",
        config=True,
    ),
)
OTHER_SIZES = {"dinov2_small": (224, 224)}  # to which the positions are resampled as well


def fingerprint(case):
    """Changes with the case and with every script that its files come from."""
    here = pathlib.Path(__file__).parent
    names = ("cases.py", "hugging_face.py", "models.py", "naming.py", "positions.py")
    sources = b"".join((here / name).read_bytes() for name in names)
    return hashlib.sha256(sources + repr((case, OTHER_SIZES.get(case.name))).encode()).hexdigest()


def judged_output(case):
    return "logits" if "logits" in case.outputs and case.options.get("num_classes", 1000) else "features"


def prepare(case, folder):
    """Writes the model unless an earlier run did; the file `made_by` comes last."""
    made_by = folder / "made_by"
    if made_by.exists() and made_by.read_text() == fingerprint(case):
        return
    made_by.unlink(missing_ok=True)
    built = cases.build(case)
    started = time.perf_counter()
    judged = judged_output(case)
    reference = built.reference()[judged]
    print(f"{case.name}: float64 {judged} in {time.perf_counter() - started:.1f} s", file=sys.stderr)
    cases.write(case, built, folder)
    np.save(folder / "reference.npy", reference)
    if case.name in OTHER_SIZES:
        size = OTHER_SIZES[case.name]
        shape = (*cases.image_shape(case)[:2], *size)
        image = np.random.default_rng([cases.seed_of(case), 2]).standard_normal(shape).astype(np.float32)
        np.save(folder / "resized_input.npy", image)
        resized = cases.Resized(case, built, size, image).reference()[judged]
        np.save(folder / "resized_reference.npy", resized)
    made_by.write_text(fingerprint(case))


def run(program, case, size, folder, dtype, device, name):
    """The output file's bytes and values, or a RuntimeError with what the program said."""
    output = folder / name
    output.unlink(missing_ok=True)
    model = folder if (folder / "config.json").exists() else folder / "model.safetensors"
    command = [
        program,
        "run",
        "--model",
        model,
        "--input",
        folder / ("resized_input.npy" if size else "input.npy"),
        "--output",
        output,
        "--what",
        judged_output(case),
        "--dtype",
        dtype,
    ]
    for override in case.overrides:
        command += ["--set", override]
    if size:
        command += ["--image-size", f"{size[0]}x{size[1]}"]
    if device:
        command += ["--device", device]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"exit status {done.returncode}: {done.stderr.strip()}")
    return output.read_bytes(), np.load(output)


def same_best_class(logits, reference):
    """(the best class agrees wherever the reference's is clear, the number of those rows)."""
    second, first = np.sort(reference, axis=1)[:, -2:].T
    sure = first - second > SURE * np.ptp(reference, axis=1)
    same = logits.argmax(axis=1) == reference.argmax(axis=1)
    return bool(same[sure].all()), int(sure.sum())


def compare(program, case, size, folder, dtype, device):
    """One row of the table: (cells, passed). `size` is another one than the model's, or None."""
    reference = np.load(folder / ("resized_reference.npy" if size else "reference.npy"))
    title = f"{case.name} {size[0]}x{size[1]}" if size else case.name
    limit = LIMITS[dtype]
    try:
        started = time.perf_counter()
        bytes_1, logits = run(program, case, size, folder, dtype, device, f"{dtype}_1.npy")
        seconds = time.perf_counter() - started
        bytes_2, _ = run(program, case, size, folder, dtype, device, f"{dtype}_2.npy")
    except RuntimeError as error:
        return (title, dtype, str(error)), False
    if logits.dtype != np.float32 or logits.shape != reference.shape:
        return (title, dtype, f"{logits.dtype} {logits.shape}, expected float32 {reference.shape}"), False
    error = float(np.linalg.norm(logits - reference) / np.linalg.norm(reference))
    classes = judged_output(case) == "logits"
    best, sure = same_best_class(logits, reference) if classes else (True, 0)
    passed = error <= limit and best and bytes_1 == bytes_2  # a NaN error is not <= limit
    cells = (
        title,
        dtype,
        f"{error:.2e}",
        f"{limit:.0e}",
        "yes" if bytes_1 == bytes_2 else "NO",
        f"{'yes' if best else 'NO'} ({sure}/{len(reference)} clear)" if classes else "no classes",
        f"{seconds:.1f}",
        "pass" if passed else "FAIL",
    )
    return cells, passed


HEADER = ("model", "dtype", "relative error", "limit", "same bytes", "best class", "seconds", "result")
WIDTHS = (27, 6, 15, 7, 11, 18, 8, 6)


def print_row(cells):
    print("  ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS)).rstrip(), flush=True)


def main():
    parser = argparse.ArgumentParser(
        description="Compare `vitrine run` with PyTorch float64 on full-size models."
    )
    parser.add_argument("scratch", type=pathlib.Path, help="where checkpoints, inputs and outputs go")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="only these")
    parser.add_argument(
        "--vitrine", type=pathlib.Path, help="the program; without it the models are only written"
    )
    parser.add_argument("--dtype", default="f32,f16", help="f32, f16 or both (default)")
    parser.add_argument("--device", help="passed on to the program")
    arguments = parser.parse_args()
    chosen = [case for case in MODELS if not arguments.models or case.name in arguments.models]
    unknown = set(arguments.models) - {case.name for case in MODELS}
    if unknown:
        parser.error(
            f"no model is called {', '.join(sorted(unknown))}, "
            f"expected some of: {', '.join(case.name for case in MODELS)}"
        )
    dtypes = arguments.dtype.split(",")
    if not set(dtypes) <= set(LIMITS):
        parser.error(f"--dtype is '{arguments.dtype}', expected f32, f16 or f32,f16")
    torch.set_num_threads(2)
    for case in chosen:
        prepare(case, arguments.scratch / case.name)
    if arguments.vitrine is None:
        return 0
    print_row(HEADER)
    failed = False
    for case in chosen:
        sizes = [None] + ([OTHER_SIZES[case.name]] if case.name in OTHER_SIZES else [])
        for size, dtype in itertools.product(sizes, dtypes):
            folder = arguments.scratch / case.name
            cells, passed = compare(arguments.vitrine, case, size, folder, dtype, arguments.device)
            print_row(cells)
            failed |= not passed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
