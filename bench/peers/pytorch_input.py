#!/usr/bin/env python3
"""Counts the photographs a second that PyTorch's DataLoader gives, alone or to a training of a small ViT, on the CPU.

  pytorch_input.py --data DIR --workers 2 --batch 64 --model '{"image_size": 224, ...}' [--train]

A folder for each class. Prints a JSON line with "images_per_second" of all batches but the first two, which wait for the workers to
start. torchvision and timm come from PyPI.
"""
import argparse
import json
import pathlib
import time

import torch
from timm.data.auto_augment import rand_augment_transform
from timm.models.vision_transformer import VisionTransformer
from torchvision import datasets, transforms
from torchvision.transforms import InterpolationMode

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def loader_of(options, size):
    transform = transforms.Compose([
        transforms.RandomResizedCrop(size, interpolation=InterpolationMode.BILINEAR),
        transforms.RandomHorizontalFlip(),
        rand_augment_transform("rand-m9-n2-inc1", {"img_mean": tuple(round(255 * m) for m in MEAN)}),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ])
    return torch.utils.data.DataLoader(datasets.ImageFolder(options.data, transform), batch_size=options.batch, shuffle=True,
                                       num_workers=options.workers, drop_last=True, prefetch_factor=4)


def step_of(sizes):
    model = VisionTransformer(img_size=sizes["image_size"], patch_size=sizes["patch_size"], embed_dim=sizes["dim"],
                              depth=sizes["depth"], num_heads=sizes["heads"], num_classes=sizes["classes"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    loss = torch.nn.CrossEntropyLoss()

    def step(pictures, labels):
        optimizer.zero_grad()
        loss(model(pictures), labels).backward()
        optimizer.step()

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--model", required=True)
    parser.add_argument("--train", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    sizes = json.loads(options.model)
    step = step_of(sizes) if options.train else lambda pictures, labels: None
    start, seen = 0.0, 0
    for number, (pictures, labels) in enumerate(loader_of(options, sizes["image_size"])):
        step(pictures, labels)
        if number < 2:
            start = time.perf_counter()
        else:
            seen += len(labels)
    print(json.dumps({"images_per_second": seen / (time.perf_counter() - start)}))


if __name__ == "__main__":
    main()
