#!/usr/bin/env python3
"""Times a ViT on PyTorch's CPU backend and prints one JSON line.

  pytorch_vit.py --model M.safetensors --input X.npy [--output logits.npy] [--threads 2] [--dtype f32]

It runs torchvision's implementation, whose attention is PyTorch's fused one: the fastest that a user of
PyTorch gets without compiling. (Weights packed for oneDNN and switching the encoder's fast path off were tried:
neither was faster.)

Debian's PyTorch multiplies matrices with whichever BLAS is installed, and it is all that counts. Netlib's
reference one is many times slower than OpenBLAS. Of OpenBLAS's builds it has to be the one for OpenMP: PyTorch's
own OpenMP threads keep spinning between two operators, and take the cores away from another pool's threads.
compare.py picks it where it is installed; `configuration` in the result says which it was.
"""

import os
import pathlib
import platform
import re

import numpy as np
import torch
import torchvision

import common

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def blas():
    """What multiplies matrices: the library that PyTorch was built with, or the shared one that it loaded."""
    built_with = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    if built_with and built_with[1] != "generic":
        return built_with[1]
    maps = pathlib.Path("/proc/self/maps")
    paths = re.findall(r"(/\S*blas\S*\.so\S*)", maps.read_text()) if maps.exists() else []
    if not paths:
        return "generic BLAS"
    if any(re.search(r"/blas/libblas\.so", path) for path in paths):
        return "reference BLAS (slow)"
    name = pathlib.Path(paths[0]).parent.name
    kernels = os.environ.get("OPENBLAS_CORETYPE")
    return f"{name}, {kernels} kernels" if kernels else name


def main():
    options = common.parser(__doc__, dtypes=tuple(DTYPES)).parse_args()
    torch.set_num_threads(options.threads)
    model, image = common.torchvision_model(options)
    model = model.to(DTYPES[options.dtype])

    def run():
        with torch.inference_mode():
            return np.ascontiguousarray(model(image.to(DTYPES[options.dtype])).float().numpy())

    common.report(options, run, "pytorch-cpu", configuration=blas(),
                  versions={"torch": torch.__version__, "torchvision": torchvision.__version__,
                            "python": platform.python_version()})


if __name__ == "__main__":
    main()
