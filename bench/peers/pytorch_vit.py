#!/usr/bin/env python3
"""Times a ViT on PyTorch's CPU backend and prints one JSON line.

  pytorch_vit.py [--arch vit_base_patch16_224] [--batch 8] [--dtype f32] [--threads 2]
  pytorch_vit.py --model M.safetensors --input X.npy --output logits.npy

It runs torchvision's implementation, whose attention is PyTorch's fused one: the fastest that a user of
PyTorch gets without compiling. Weights come from --model (timm's or torchvision's names) or from --seed.
The logits are checked before anything is timed. `checksum` is FNV-1a over their bytes as float32.

Debian's PyTorch multiplies matrices with whichever BLAS is installed. With netlib's reference one
(libblas3) it is many times slower than with libopenblas0-pthread; the result says which it was.
"""

import argparse
import json
import pathlib
import platform
import re
import statistics
import sys
import time

import numpy as np
import safetensors.torch
import torch
import torchvision
from torchvision.models.vision_transformer import VisionTransformer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "parity"))
import naming  # noqa: E402  (the same weights under torchvision's names)

WIDTHS = {"tiny": (192, 12, 3), "small": (384, 12, 6), "base": (768, 12, 12), "large": (1024, 24, 16)}
TORCHVISION = {
    "vit_b_16": "vit_base_patch16_224",
    "vit_b_32": "vit_base_patch32_224",
    "vit_l_16": "vit_large_patch16_224",
    "vit_l_32": "vit_large_patch32_224",
}
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
# How far a reduced dtype's logits may be from float32's before the time is not worth having.
CHECK = {"f32": 1e-4, "bf16": 0.1, "f16": 0.02}


def fail(sentence):
    sys.exit(f"pytorch_vit.py: {sentence}")


def blas():
    """What multiplies matrices: the library that PyTorch was built with, or the shared one that it loaded."""
    built_with = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    if built_with and built_with[1] != "generic":
        return built_with[1]
    maps = pathlib.Path("/proc/self/maps")
    paths = re.findall(r"(/\S*blas\S*\.so\S*)", maps.read_text()) if maps.exists() else []
    if not paths:
        return "generic"
    if any(re.search(r"/blas/libblas\.so", path) for path in paths):
        print(
            "pytorch_vit.py: this is netlib's reference BLAS, which is slow; install libopenblas0-pthread "
            "for times that PyTorch deserves",
            file=sys.stderr,
        )
        return "reference"
    return pathlib.Path(paths[0]).parent.name


def make_model(arch, classes):
    found = re.fullmatch(r"vit_(tiny|small|base|large)_patch(\d+)_(\d+)", TORCHVISION.get(arch, arch))
    if not found:
        fail(
            f"--arch is '{arch}', expected vit_(tiny|small|base|large)_patchP_SIZE or "
            f"{', '.join(TORCHVISION)}"
        )
    width, depth, heads = WIDTHS[found[1]]
    size = int(found[3])
    model = VisionTransformer(
        image_size=size,
        patch_size=int(found[2]),
        num_layers=depth,
        num_heads=heads,
        hidden_dim=width,
        mlp_dim=4 * width,
        num_classes=classes,
    )
    return model.eval(), (3, size, size)


def load_weights(model, path, seed):
    if path is None:
        # Not torchvision's own initialisation: it leaves the classifier, and so the logits, at zero.
        model.load_state_dict(
            {
                name: torch.from_numpy(naming.random_values(name, tuple(value.shape), seed)).float()
                for name, value in model.state_dict().items()
            }
        )
        return
    state = safetensors.torch.load_file(path)
    if "patch_embed.proj.weight" in state:
        state = naming.to_torchvision(state)
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        fail(f"{path} does not fit the architecture: {error}")


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def checked_logits(model, image, dtype, classes):
    """(logits as float32, error): their shape is right, they are finite, not alike, and near float64's."""
    with torch.inference_mode():
        logits = model(image).float()
        reference = model.double()(image[:1].double())
    model.to(DTYPES[dtype])
    if logits.shape != (len(image), classes):
        fail(f"the logits' shape is {tuple(logits.shape)}, expected {(len(image), classes)}")
    if not torch.isfinite(logits).all():
        fail("the logits are not finite")
    if logits.std() == 0:
        fail("the logits are all alike")
    error = float((logits[:1] - reference).norm() / reference.norm())
    if not error <= CHECK[dtype]:
        fail(f"the logits are {error:.1e} from float64's, expected at most {CHECK[dtype]:.0e}")
    return logits, error


def measure(model, image, warmup, iterations):
    """Milliseconds of each timed pass."""
    times = []
    with torch.inference_mode():
        for i in range(warmup + iterations):
            started = time.perf_counter_ns()
            model(image)
            if i >= warmup:
                times.append((time.perf_counter_ns() - started) / 1e6)
    return times


def main():
    parser = argparse.ArgumentParser(description="Time a ViT on PyTorch's CPU backend.")
    parser.add_argument("--arch", default="vit_base_patch16_224")
    parser.add_argument("--batch", type=int, default=1, help="images at a time, unless --input is given")
    parser.add_argument("--dtype", choices=DTYPES, default="f32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", help="a float32 checkpoint under timm's or torchvision's names")
    parser.add_argument("--input", help="float32 images [B, 3, H, W] as .npy")
    parser.add_argument("--output", help="where the logits go, as .npy")
    options = parser.parse_args()
    for name in ("batch", "threads", "iterations", "classes"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} is {getattr(options, name)}, expected at least 1")

    torch.set_num_threads(options.threads)
    model, image_shape = make_model(options.arch, options.classes)
    load_weights(model, options.model, options.seed)
    if options.input:
        image = torch.from_numpy(np.load(options.input))
        if image.dtype != torch.float32 or image.ndim != 4 or tuple(image.shape[1:]) != image_shape:
            fail(
                f"{options.input} holds {image.dtype} {tuple(image.shape)}, expected float32 (B, "
                f"{', '.join(map(str, image_shape))})"
            )
    else:
        pixels = np.random.default_rng(options.seed + 1).standard_normal(
            (options.batch, *image_shape), dtype=np.float32
        )
        image = torch.from_numpy(pixels)
    dtype = DTYPES[options.dtype]
    model, image = model.to(dtype), image.to(dtype)

    logits, error = checked_logits(model, image, options.dtype, options.classes)
    values = np.ascontiguousarray(logits.numpy(), dtype="<f4")
    if options.output:
        np.save(options.output, values)
    times = measure(model, image, options.warmup, options.iterations)
    print(
        json.dumps(
            {
                "peer": "pytorch-cpu",
                "arch": options.arch,
                "batch": len(image),
                "dtype": options.dtype,
                "threads": options.threads,
                "median_ms": statistics.median(times),
                "min_ms": min(times),
                "max_ms": max(times),
                "error_float64": error,
                "checksum": fnv1a(values.tobytes()),
                "versions": {
                    "torch": torch.__version__,
                    "torchvision": torchvision.__version__,
                    "blas": blas(),
                    "python": platform.python_version(),
                },
            }
        )
    )


if __name__ == "__main__":
    main()
