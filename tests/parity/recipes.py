"""timm's mixing, erasing, losses and distillation, with the random numbers that Vitrine draws.

timm's own code does the work (`timm` from PyPI). What it would draw from NumPy and `random` comes from here instead: the
same Philox words in the same order as train/recipes/mixing.cpp takes them.
"""

import contextlib
import math

import numpy as np
import timm.data.mixup
import timm.data.random_erasing
import timm.loss
import timm.task
import torch
from torch import nn

import philox

MIXING, ERASING = 0x6D697875, 0x65726173  # train/data/random_streams.h

MIXUP = {"mixup_alpha": 0.0, "cutmix_alpha": 0.0, "cutmix_minmax": None, "prob": 1.0, "switch_prob": 0.5,
         "mode": "batch"}  # fmt: skip
ERASE = {"probability": 0.0, "mode": "const", "min_area": 0.02, "max_area": 1 / 3, "min_aspect": 0.3,
         "max_aspect": 0.0, "min_count": 1, "max_count": 0}  # fmt: skip
DISTILLATION = {"model": "", "kind": "hard", "alpha": 0.5, "tau": 1.0, "sum": False}


class Draws:
    """UniformDraws of train/random_draws.h."""

    def __init__(self, seed, use, number, place):
        self.key = (seed & 0xFFFFFFFF, seed >> 32)
        self.stream, self.at = (number & 0xFFFFFFFF, use), place << 14

    def next(self):
        block = self.at // 4
        counter = np.array([[block & 0xFFFFFFFF, block >> 32, *self.stream]], np.uint64)
        word = int(philox.philox(counter, self.key)[0, self.at % 4])
        self.at += 1
        return (word + 0.5) * 2.0**-32

    def whole(self, first, last):
        return first + int(self.next() * (last - first + 1))

    def log_gamma(self, shape):
        boost = math.log(self.next()) / shape if shape < 1 else 0.0
        d = (shape + 1 if shape < 1 else shape) - 1 / 3
        while True:
            x, u = float(philox.normal_quantile(np.float64(self.next()))), self.next()
            v = (1 + x / math.sqrt(9 * d)) ** 3
            if v > 0 and math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
                return math.log(d) + math.log(v) + boost

    def beta(self, shape):
        x, y = self.log_gamma(shape), self.log_gamma(shape)
        return 1 / (1 + math.exp(y - x))


class NumPyRandom:
    """np.random for timm.data.mixup: each row draws for itself, whatever the order in which timm asks."""

    def __init__(self, mixup, seed, number, rows):
        self.rows = [Draws(seed, MIXING, number, row) for row in range(rows)]
        self.uniforms, self.lambdas, self.boxes = [], [], []
        for draws in self.rows:
            cuts = mixup.cutmix_alpha > 0
            prob = draws.next()
            switch = draws.next() if cuts and mixup.mixup_alpha > 0 and prob < mixup.mix_prob else 0.0
            use_cutmix = cuts and (mixup.mixup_alpha == 0 or switch < mixup.switch_prob)
            mixes = prob < mixup.mix_prob
            self.uniforms.append((prob, switch))
            self.lambdas.append(draws.beta(mixup.cutmix_alpha if use_cutmix else mixup.mixup_alpha) if mixes else 0.5)
            if mixes and use_cutmix:
                self.boxes.append(draws)
        self.two = mixup.mixup_alpha > 0 and mixup.cutmix_alpha > 0
        self.asked = 0

    def rand(self, rows=None):
        """Batches ask whether to mix and then how; samples how, and last whether."""
        first = self.asked == 0
        self.asked += 1
        if rows is None:
            return self.uniforms[0][0 if first else 1]
        return np.array([uniform[1 if first and self.two else 0] for uniform in self.uniforms])

    def beta(self, a, b, size=None):
        return self.lambdas[0] if size is None else np.array(self.lambdas)

    def randint(self, low, high, size=None):
        # timm's boxes take two numbers (or four) from a row before the next row's.
        self.taken = getattr(self, "taken", 0)
        draws = self.boxes[self.taken // self.numbers]
        self.taken += 1
        return draws.whole(low, max(low, high - 1))


class NumPy:
    def __init__(self, random):
        self.random = random

    def __getattr__(self, name):
        return getattr(np, name)


class PythonRandom:
    """The module random for timm.data.random_erasing."""

    def __init__(self, draws):
        self.draws = draws

    def random(self):
        return self.draws.next()

    def uniform(self, low, high):
        return low + (high - low) * self.draws.next()

    def randint(self, low, high):
        return self.draws.whole(low, high)


@contextlib.contextmanager
def replaced(module, name, value):
    kept = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, kept)


def erase(images, options, seed, number):
    erasing = timm.data.random_erasing.RandomErasing(
        probability=options["probability"], min_area=options["min_area"], max_area=options["max_area"],
        min_aspect=options["min_aspect"], max_aspect=options["max_aspect"] or None, mode=options["mode"],
        min_count=options["min_count"], max_count=options["max_count"] or None, device="cpu",
    )  # fmt: skip
    images = images.clone()
    for row, image in enumerate(images):
        with replaced(timm.data.random_erasing, "random", PythonRandom(Draws(seed, ERASING, number, row))):
            erasing(image)
    return images


def mix(images, labels, options, smoothing, classes, seed, number):
    """Mixed images and soft targets."""
    mixup = timm.data.mixup.Mixup(**options, label_smoothing=smoothing, num_classes=classes)
    rows = {"batch": 1, "pair": len(images) // 2, "elem": len(images)}[options["mode"]]
    random = NumPyRandom(mixup, seed, number, rows)
    random.numbers = 4 if options["cutmix_minmax"] else 2
    with replaced(timm.data.mixup, "np", NumPy(random)):
        images, targets = mixup(images.clone(), labels)
    return images, targets.to(images.dtype)


def criterion_of(config):
    if config["loss"] == "bce":
        return timm.loss.BinaryCrossEntropy(
            smoothing=config["label_smoothing"], target_threshold=config["bce_target_threshold"],
            sum_classes=config["bce_sum"],
        )  # fmt: skip
    if config["mixup"]:
        return timm.loss.SoftTargetCrossEntropy()
    return nn.CrossEntropyLoss(label_smoothing=config["label_smoothing"])


class Wrapped(nn.Module):
    """A model of models.py as timm's tasks know models: logits, or a distilled one's two heads."""

    def __init__(self, model, mean, std, both_heads=False):
        super().__init__()
        self.model, self.both_heads = model, both_heads
        self.pretrained_cfg = {"mean": mean, "std": std}
        self.num_classes, self.in_chans = 0, len(mean)  # for teachers that timm makes itself

    def set_distilled_training(self, on):
        self.both_heads = on

    def forward(self, images):
        if not self.both_heads:
            return self.model(images)["logits"]
        heads = {}
        hooks = [
            getattr(self.model, name).register_forward_hook(lambda m, i, out, name=name: heads.update({name: out}))
            for name in ("head", "head_dist")
        ]
        self.model(images)
        for hook in hooks:
            hook.remove()
        return heads["head"], heads["head_dist"]


class Recipe:
    """What stands between a batch and its loss."""

    def __init__(self, model, config, teacher=None):
        self.model, self.config, self.passes = model, config, 0
        self.criterion = criterion_of(config)
        self.task = self.task_of(teacher) if config["distillation"] else None

    def task_of(self, teacher):
        """`teacher`: a module, and the mean and the std of its images."""
        options = {**DISTILLATION, **self.config["distillation"]}
        data, two_heads = self.config["data"], self.config["model"]["distilled_head"]
        dtype = next(self.model.parameters()).dtype
        module, mean, std = teacher
        teacher = Wrapped(module.to(dtype), mean, std).requires_grad_(False)
        # DeiT takes the mean over the classes where timm takes the sum.
        classes = self.config["model"]["classes"]
        soft_mean = options["kind"] == "soft" and not options["sum"]
        weights = {
            "task_loss_weight": 1 - options["alpha"],
            "distill_loss_weight": options["alpha"] / (classes if soft_mean else 1),
        }
        common = dict(
            teacher_model=teacher, criterion=self.criterion, temperature=options["tau"], device=torch.device("cpu"),
            dtype=dtype, verbose=False, **weights,
        )  # fmt: skip
        student = Wrapped(self.model, data["mean"], data["std"])
        if two_heads:
            task = timm.task.TokenDistillationTask(student, distill_type=options["kind"], **common)
        elif options["kind"] == "soft":
            task = timm.task.LogitDistillationTask(student, **common)
        else:  # timm has it for two heads alone
            student.forward = lambda images: (self.model(images)["logits"],) * 2
            task = timm.task.TokenDistillationTask(student, distill_type="hard", **common)
        task.train()
        return task

    def loss(self, images, labels):
        config, number = self.config, self.passes
        self.passes += 1
        if config["random_erasing"]:
            images = erase(images, {**ERASE, **config["random_erasing"]}, config["seed"], number)
        if config["mixup"]:
            images, labels = mix(
                images, labels, {**MIXUP, **config["mixup"]}, config["label_smoothing"], config["model"]["classes"],
                config["seed"], number,
            )  # fmt: skip
        if self.task:
            return self.task(images, labels)["loss"]
        return self.criterion(self.model(images)["logits"], labels)
