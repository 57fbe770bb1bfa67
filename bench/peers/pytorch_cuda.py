#!/usr/bin/env python3
"""Times a ViT on PyTorch's CUDA backend, eager or compiled, and prints one JSON line.

  pytorch_cuda.py --model M.safetensors --input X.npy [--output logits.npy] [--definition plain|torchvision|timm]
                  [--compile] [--dtype f32|f16]

Times are from images in the host's memory (pinned, so that the copy is as fast as it gets) to logits there, as
Vitrine's are; `device_ms` is by CUDA's events, from images on the device to logits there. f32 is f32: TF32 is off, in
convolutions too. --compile is torch.compile(mode="max-autotune") for this batch size alone, which also replays
CUDA graphs; compiling is done before anything is timed.

--device cpu goes the same way without a GPU, for rehearsals.
"""

import time

import numpy as np
import torch

import common

DTYPES = {"f32": torch.float32, "f16": torch.float16}
DEFINITIONS = {"plain": common.plain_model, "torchvision": common.torchvision_model, "timm": common.timm_model}


def main():
    parser = common.parser(__doc__, dtypes=tuple(DTYPES))
    parser.add_argument("--definition", choices=tuple(DEFINITIONS), default="plain")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--warm-seconds", type=float, default=1, help="runs before the first timed one, for the clocks")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    if on_gpu and not torch.cuda.is_available():
        common.fail("PyTorch finds no CUDA device")
    torch.set_num_threads(options.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False

    model, images = DEFINITIONS[options.definition](options)
    dtype = DTYPES[options.dtype]
    model = model.to(options.device, dtype)
    if options.compile:
        started = time.perf_counter()
        model = torch.compile(model, mode="max-autotune", dynamic=False)
    on_device = torch.empty(images.shape, device=options.device)
    if on_gpu:
        images = images.pin_memory()

    def forward():
        return model(on_device.to(dtype)).float()

    def run():
        with torch.inference_mode():
            on_device.copy_(images, non_blocking=True)
            return np.ascontiguousarray(forward().cpu().numpy())  # waits for the device

    def device_ms(iterations):
        times = []
        with torch.inference_mode():
            for _ in range(iterations):
                before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                before.record()
                forward()
                after.record()
                after.synchronize()
                times.append(before.elapsed_time(after))
        return times

    more = {"versions": {"torch": torch.__version__, "cuda": torch.version.cuda},
            "device": torch.cuda.get_device_name() if on_gpu else "cpu"}
    if options.compile:
        try:
            run()
        except Exception as error:  # of any of a compiler's parts; its text is long
            common.fail("torch.compile: " + " ".join(str(error).split("\n")[:2])[:280])
        more["compile_seconds"] = time.perf_counter() - started
    end = time.perf_counter() + options.warm_seconds
    while time.perf_counter() < end:
        run()
    common.report(options, run, f"pytorch-{'compiled' if options.compile else 'eager'}", device_ms if on_gpu else None,
                  definition=options.definition, **more)


if __name__ == "__main__":
    main()
