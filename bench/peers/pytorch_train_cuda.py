#!/usr/bin/env python3
"""Times steps of training a ViT in PyTorch on a CUDA device, eager and compiled; prints a JSON line for each.

  pytorch_train_cuda.py --config configs/imagenet-vit-b16.json [--batch 64] [--modes eager,compiled] [--seconds 3]

A step is what `vitrine bench --train` times: the configuration's model, loss, clipping and optimiser (PyTorch's fused
one), on random images that come from pinned memory. f32 is f32: TF32 is off, in convolutions too. The host waits for the device
once a round, as nobody needs a step's loss before the next step; a round's steps are timed together. Compiling is done
before anything is timed. A peer whose loss isn't finite, or doesn't fall on the two batches that it is shown again and
again, gets no time.

--device cpu goes the same way without a GPU, for rehearsals.
"""

import argparse
import json
import math
import pathlib
import statistics
import time

import torch
from torch import nn

import train_models
import training
from common import fail


class Steps:
    """A model in training on two batches in turns."""

    def __init__(self, options, config, mode):
        fields = config["model"]
        self.device = options.device
        random = torch.Generator().manual_seed(options.seed)
        shape = (options.batch, fields["channels"], fields["image_height"], fields["image_width"])
        self.batches = [(torch.randn(shape, generator=random),
                         torch.randint(fields["classes"], (options.batch,), generator=random)) for _ in range(2)]
        if self.device == "cuda":
            self.batches = [(x.pin_memory(), y.pin_memory()) for x, y in self.batches]
        torch.manual_seed(options.seed)
        kind = train_models.FastMyViT if fields["per_head_maps"] else train_models.FastViT
        self.model = kind(fields).to(self.device)
        self.optimizer = train_models.make_optimizer(self.model, config, fused=True)
        self.clip_norm = config["clip_norm"]
        criterion = nn.CrossEntropyLoss(label_smoothing=config["label_smoothing"])
        self.loss = lambda x, y: criterion(self.model(x), y)
        if mode == "compiled":
            self.loss = torch.compile(self.loss, dynamic=False)
        self.at = 0

    def step(self):
        """The loss, on the device: nobody waits for it."""
        x, y = (part.to(self.device, non_blocking=True) for part in self.batches[self.at % 2])
        self.at += 1
        self.optimizer.zero_grad()
        loss = self.loss(x, y)
        loss.backward()
        if self.clip_norm > 0:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)
        self.optimizer.step()
        return loss.detach()

    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def round(self, steps):
        """Milliseconds a step."""
        self.wait()
        started = time.perf_counter()
        for _ in range(steps):
            self.step()
        self.wait()
        return 1e3 * (time.perf_counter() - started) / steps


def measure(options, config, mode):
    started = time.perf_counter()
    steps = Steps(options, config, mode)
    try:
        first = steps.step().item()
    except Exception as error:  # of any of a compiler's parts; its text is long
        fail(f"{mode}: " + " ".join(str(error).split("\n")[:2])[:280])
    ready = time.perf_counter() - started
    for _ in range(2 * options.warmup):
        last = steps.step()
    last = last.item()
    if not math.isfinite(last) or last >= first:
        fail(f"{mode}: the loss goes from {first:.4f} to {last:.4f}, expected it to fall")
    count = max(2, round(1e3 * options.seconds / options.rounds / steps.round(2)))
    rounds = [steps.round(count) for _ in range(options.rounds)]
    median = statistics.median(rounds)
    on_gpu = options.device == "cuda"
    return {
        "peer": f"pytorch-{mode}", "config": str(options.config), "batch": options.batch, "dtype": "f32", "median_ms": median,
        "min_ms": min(rounds), "max_ms": max(rounds), "steps": count * options.rounds,
        "images_per_second": 1e3 * options.batch / median, "ready_seconds": ready,
        "memory_bytes": torch.cuda.max_memory_allocated() if on_gpu else None,
        "device": torch.cuda.get_device_name() if on_gpu else "cpu",
        "versions": {"torch": torch.__version__, "cuda": torch.version.cuda},
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=pathlib.Path, required=True)
    parser.add_argument("--batch", type=int, help="instead of the configuration's")
    parser.add_argument("--modes", default="eager,compiled")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--threads", type=int, default=2, help="with --device cpu")
    parser.add_argument("--seconds", type=float, default=3, help="that all rounds of a mode take about")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warmup", type=int, default=3, help="pairs of steps that don't count")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        fail("PyTorch finds no CUDA device")
    torch.set_num_threads(options.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    config = training.read_config(options.config)
    if config["accumulation"] != 1:
        fail(f"{options.config}: accumulation is {config['accumulation']}, expected 1")
    options.batch = options.batch or config["batch_size"]
    for mode in options.modes.split(","):
        if mode not in ("eager", "compiled"):
            fail(f"--modes names '{mode}', expected eager or compiled")
        print(json.dumps(measure(options, config, mode)), flush=True)
        if options.device == "cuda":
            torch.cuda.reset_peak_memory_stats()


if __name__ == "__main__":
    main()
