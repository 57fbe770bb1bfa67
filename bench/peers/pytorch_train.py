#!/usr/bin/env python3
"""Trains a configuration's ViT on MNIST's or CIFAR-10's files in PyTorch on the CPU, and prints what `vitrine train` does.

  pytorch_train.py --data DIR --config C.json [--version looped|fast|compiled] [--epochs N] [--steps N] [--seed S]

A JSON line an epoch, {"epoch", "loss", "seconds", "images_per_second"}, and a last one, {"test_loss",
"test_accuracy"}. Weights, loss, optimiser and schedule are the configuration's (tests/parity/training.py), and the
order of the images, their crops and which are mirrored are those of `vitrine train` for the same seed; of `looped` the
order is PyTorch's own.

--version looped: MyViT as its tutorial writes it (train_models.LoopedMyViT), and its way of feeding it: torch's
  DataLoader, picture by picture.
--version fast: the same model in as few calls as possible, all pictures in one tensor, a fused optimiser.
--version compiled: that through torch.compile, which needs a C++ compiler and python3-setuptools.

--steps N trains for N steps of an epoch only, after --warmup ones that don't count, and prints one line instead:
{"step_ms": median, "least_ms", "epoch_seconds": the median times the steps of an epoch, "steps", "images"}.

--backwards: the images of each batch go in the other way round. That is the same training but for the order of sums,
so what its end differs by is what rounding alone does to this model. --dtype f64 is the same in float64.

--out FILE: the weights at the end, under Vitrine's names, as safetensors (python3-safetensors).

--check instead compares loss and gradients of `looped` and `fast` on one batch in float64.
"""

import argparse
import json
import math
import pathlib
import statistics
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

import train_models
import training
from common import fail
from train_data import Batches, Pictures, read_set


class Training:
    def __init__(self, options, config):
        self.config = config
        images, labels = read_set(options.data, train=True)
        self.count = len(images)
        self.accumulation = config["accumulation"]
        self.steps_an_epoch = math.ceil(math.ceil(self.count / config["batch_size"]) / self.accumulation)
        self.total = self.steps_an_epoch * config["epochs"]
        if options.version == "looped":
            random = torch.Generator().manual_seed(config["seed"])
            self.batches = DataLoader(Pictures(images, labels, config["data"]), config["batch_size"], shuffle=True,
                                      generator=random)
        else:
            self.batches = Batches(images, labels, config, True, options.backwards)
        self.dtype = {"f32": torch.float32, "f64": torch.float64}[options.dtype]
        self.model = train_models.make(config, options.version == "looped").to(self.dtype)
        fast = {} if options.version == "looped" else {"fused": True}
        self.optimizer = train_models.make_optimizer(self.model, config, **fast)
        self.run = torch.compile(self.model) if options.version == "compiled" else self.model
        self.criterion = nn.CrossEntropyLoss(label_smoothing=config["label_smoothing"])
        self.at = 0

    def step(self, batches):
        """One step of the optimiser; the sum of its batches' losses."""
        for group in self.optimizer.param_groups:
            group["lr"] = training.learning_rate(self.config, self.at, self.total)
        self.optimizer.zero_grad()
        images, loss_sum = sum(len(labels) for _, labels in batches), 0.0
        for x, y in batches:
            loss = self.criterion(self.run(x.to(self.dtype)), y)
            (loss if len(batches) == 1 else loss * (len(y) / images)).backward()
            loss_sum += loss.item()
        if self.config["clip_norm"] > 0:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.config["clip_norm"])
        self.optimizer.step()
        self.at += 1
        return loss_sum

    def steps(self):
        """The losses of an epoch's steps."""
        gathered = []
        for batch in self.batches:
            gathered.append(batch)
            if len(gathered) == self.accumulation:
                yield self.step(gathered)
                gathered = []
        if gathered:
            yield self.step(gathered)

    def evaluate(self, folder):
        """Over all images, of the loss without smoothing."""
        images, labels = read_set(folder, train=False)
        loss, correct = 0.0, 0
        with torch.no_grad():
            for x, y in Batches(images, labels, self.config):
                result = self.model(x.to(self.dtype))
                loss += nn.functional.cross_entropy(result, y, reduction="sum").item()
                correct += int((result.argmax(dim=1) == y).sum())
        return {"test_loss": loss / len(labels), "test_accuracy": correct / len(labels)}


def time_steps(made, options):
    times, steps, started = [], made.steps(), time.perf_counter()
    while len(times) < options.warmup + options.steps:
        if next(steps, None) is None:
            steps = made.steps()  # the next epoch
        elif made.at % made.steps_an_epoch or made.steps_an_epoch == 1:  # not an epoch's last step, which may be smaller
            times.append(time.perf_counter() - started)
        started = time.perf_counter()
    times = times[options.warmup :]
    median = statistics.median(times)
    return {"step_ms": 1e3 * median, "least_ms": 1e3 * min(times), "epoch_seconds": median * made.steps_an_epoch,
            "steps": options.steps, "images": made.count}


def train(made, options):
    for epoch in range(made.config["epochs"]):
        started = time.perf_counter()
        loss = sum(made.steps()) / math.ceil(made.count / made.config["batch_size"])
        seconds = time.perf_counter() - started
        print(json.dumps({"epoch": epoch + 1, "loss": loss, "seconds": seconds,
                          "images_per_second": made.count / seconds}), flush=True)
    print(json.dumps(made.evaluate(options.data)), flush=True)
    if options.out:
        from safetensors.numpy import save_file

        weights = {name: value.detach() for name, value in made.model.named_parameters()}
        save_file({name: np.ascontiguousarray(value) for name, value in
                   train_models.canonical(made.model, weights).items()}, options.out)


def check(options, config):
    images, labels = read_set(options.data, train=True)
    x, y = next(iter(Batches(images[: config["batch_size"]], labels[: config["batch_size"]], config)))
    errors = train_models.compare(config, x, y)
    print(json.dumps(errors))
    if errors["loss"] > 1e-12 or errors["gradients"] > 1e-12:
        fail(f"the two versions differ: {errors['loss']:.1e} in the loss, {errors['gradients']:.1e} in gradients")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--config", type=pathlib.Path, required=True)
    parser.add_argument("--version", choices=("looped", "fast", "compiled"), default="fast")
    parser.add_argument("--epochs", type=int, help="instead of the configuration's")
    parser.add_argument("--seed", type=int, help="instead of the configuration's")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--backwards", action="store_true")
    parser.add_argument("--dtype", choices=("f32", "f64"), default="f32")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    config = training.read_config(options.config)
    for name in ("epochs", "seed"):
        if getattr(options, name) is not None:
            config[name] = getattr(options, name)
    if options.version == "looped" and (config["data"]["crop_padding"] or config["data"]["flip"]):
        fail("--version looped moves no pictures, expected crop_padding 0 and flip false")
    if options.version == "looped" and options.backwards:
        fail("--backwards is not for --version looped, whose batches are PyTorch's own")
    if options.check:
        check(options, config)
        return
    made = Training(options, config)
    if options.steps:
        print(json.dumps(time_steps(made, options)))
    else:
        train(made, options)


if __name__ == "__main__":
    main()
