"""What the peers in Python share: options, the same weights in torchvision's ViT, timing, the JSON line."""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "parity"))

WIDTHS = {"tiny": (192, 12, 3), "small": (384, 12, 6), "base": (768, 12, 12), "large": (1024, 24, 16)}


def fail(sentence):
    sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {sentence}")


def parser(description, dtypes=("f32",)):
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--arch", default="vit_base_patch16_224")
    made.add_argument("--model", required=True, help="a float32 checkpoint under timm's names")
    made.add_argument("--input", required=True, help="float32 images [B, 3, H, W] as .npy")
    made.add_argument("--output", help="where the logits go, as .npy")
    made.add_argument("--dtype", choices=dtypes, default="f32")
    made.add_argument("--threads", type=int, default=2)
    made.add_argument("--warmup", type=int, default=1)
    made.add_argument("--iterations", type=int, default=5, help="0: logits only")
    return made


def sizes_of(arch):
    """(width, depth, heads, patch, image size)"""
    found = re.fullmatch(r"vit_(tiny|small|base|large)_patch(\d+)_(\d+)", arch)
    if not found:
        fail(f"--arch is '{arch}', expected vit_(tiny|small|base|large)_patchP_SIZE")
    return (*WIDTHS[found[1]], int(found[2]), int(found[3]))


def read_images(options):
    size = sizes_of(options.arch)[-1]
    image = np.load(options.input)
    if image.dtype != np.float32 or image.ndim != 4 or image.shape[1:] != (3, size, size):
        fail(f"{options.input} holds {image.dtype} {image.shape}, expected float32 (B, 3, {size}, {size})")
    return image


def torchvision_model(options):
    """torchvision's ViT with the checkpoint's weights, and the images."""
    import safetensors.torch
    import torch
    from torchvision.models.vision_transformer import VisionTransformer

    import naming  # the same weights under torchvision's names

    width, depth, heads, patch, size = sizes_of(options.arch)
    state = safetensors.torch.load_file(options.model)
    model = VisionTransformer(image_size=size, patch_size=patch, num_layers=depth, num_heads=heads, hidden_dim=width,
                              mlp_dim=4 * width, num_classes=len(state["head.bias"]))
    try:
        model.load_state_dict(naming.to_torchvision(state))
    except RuntimeError as error:
        fail(f"{options.model} does not fit the architecture: {error}")
    return model.eval(), torch.from_numpy(read_images(options))


def run_quietly(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"{command[0]}: exit status {done.returncode}: {(done.stdout + done.stderr).strip()[-500:]}")


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def report(options, run, peer, **more):
    """Runs, writes the logits of the first run, times the others and prints the line. `run` takes the images in
    the host's memory and gives the logits there, as an array."""
    first = run()
    for _ in range(options.warmup - 1):
        run()
    if first.ndim != 2 or not np.isfinite(first).all():
        fail(f"the logits, of shape {first.shape}, are not all finite")
    if options.output:
        np.save(options.output, np.ascontiguousarray(first, dtype="<f4"))
    times = []
    last = first
    for _ in range(options.iterations):
        started = time.perf_counter_ns()
        last = run()
        times.append((time.perf_counter_ns() - started) / 1e6)
    line = {"peer": peer, "arch": options.arch, "batch": len(first), "dtype": options.dtype, "threads": options.threads}
    if times:
        line.update(median_ms=statistics.median(times), min_ms=min(times), max_ms=max(times))
    line["checksum"] = fnv1a(np.ascontiguousarray(last, dtype="<f4").tobytes())
    print(json.dumps({**line, **more}))
