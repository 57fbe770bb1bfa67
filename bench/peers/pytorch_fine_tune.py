#!/usr/bin/env python3
"""Fine-tunes a ViT of timm on the CPU with random pictures, and prints how long a step takes and what memory it wants.

  pytorch_fine_tune.py --arch vit_small_patch16_224 --train all|head|lora:RANK --batch 16 --steps 4

A JSON line: {"step_ms": the median, "least_ms", "peak_rss_bytes", "threads"}. AdamW and label smoothing, as
`vitrine train` fine-tunes by itself. The batch lies in memory as float32, so that reading pictures costs nothing here.
Of `head` "step_ms" is a step on features that were kept. timm, and peft for lora, come from PyPI.
"""
import argparse
import json
import pathlib
import resource
import statistics
import time

import torch

from common import fail


def make(options):
    import timm
    model = timm.create_model(options.arch, num_classes=options.classes)
    if options.train.startswith("lora:"):
        import peft
        rank = int(options.train.removeprefix("lora:"))
        model = peft.get_peft_model(model, peft.LoraConfig(
            r=rank, lora_alpha=2 * rank, target_modules=["qkv", "attn.proj", "fc1", "fc2"],
            modules_to_save=["head"]))
    return model


def timed(step, steps):
    step()
    seconds = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return {"step_ms": 1e3 * statistics.median(seconds), "least_ms": 1e3 * min(seconds)}


def measure(options):
    torch.manual_seed(0)
    model = make(options)
    model.train()
    pictures = torch.randn(options.batch, 3, options.image_size, options.image_size)
    labels = torch.randint(options.classes, (options.batch,))
    loss = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    line = {}
    forward, seen = model, pictures
    if options.train == "head":
        with torch.no_grad():
            seen = model.forward_head(model.forward_features(pictures), pre_logits=True)
        forward = model.get_classifier()
        model = forward
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4, weight_decay=0.05, fused=True)

    def step():
        optimizer.zero_grad()
        loss(forward(seen), labels).backward()
        optimizer.step()

    line.update(timed(step, options.steps))
    line["peak_rss_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    line["threads"] = torch.get_num_threads()
    return line


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="vit_small_patch16_224")
    parser.add_argument("--train", default="all")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    if options.train not in ("all", "head") and not options.train.startswith("lora:"):
        fail(f"--train is '{options.train}', expected all, head or lora:RANK")
    if options.threads:
        torch.set_num_threads(options.threads)
    print(json.dumps(measure(options)))


if __name__ == "__main__":
    main()
