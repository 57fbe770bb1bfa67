"""The data sets that `vitrine train` reads, in the order and with the crops and mirrors that it has for the same seed."""

import gzip
import math
import pathlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset

import train_models  # noqa: F401  (finds tests/parity)
from common import fail

import philox

ORDER, AUGMENTATION = 0x6F726465, 0x6175676D  # train/data/random_streams.h


def read_idx(folder, name, magic):
    paths = [folder / (name + ending) for ending in ("", ".gz")]
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        fail(f"{folder} holds no {name}, expected the files of MNIST or of CIFAR-10's binary version")
    data = (gzip.decompress if path.suffix == ".gz" else bytes)(path.read_bytes())
    rank = magic & 0xFF
    numbers = np.frombuffer(data, ">u4", 1 + rank)
    values = np.frombuffer(data, np.uint8, offset=4 * (1 + rank))
    if numbers[0] != magic or len(values) != math.prod(int(n) for n in numbers[1:]):
        fail(f"{path} is no IDX file of {rank} dimensions")
    return values.reshape([int(n) for n in numbers[1:]])


def read_cifar(paths):
    """Pictures [N, 3, 32, 32] and labels of records of 3073 bytes."""
    records = []
    for path in paths:
        values = np.frombuffer(path.read_bytes(), np.uint8)
        if len(values) == 0 or len(values) % 3073:
            fail(f"{path} has {len(values)} bytes, expected a multiple of 3073")
        records.append(values.reshape(-1, 3073))
    records = np.concatenate(records)
    return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0]


def read_set(folder, train):
    """uint8 [N, C, H, W] and labels as int64."""
    places = [pathlib.Path(folder), pathlib.Path(folder) / "cifar-10-batches-bin"]
    place = next((place for place in places if (place / "data_batch_1.bin").exists()), None)
    if place:
        names = [f"data_batch_{i}.bin" for i in range(1, 6)] if train else ["test_batch.bin"]
        images, labels = read_cifar([place / name for name in names])
    else:
        which = "train" if train else "t10k"
        images = read_idx(places[0], f"{which}-images-idx3-ubyte", 0x803)[:, None]
        labels = read_idx(places[0], f"{which}-labels-idx1-ubyte", 0x801)
    if len(images) != len(labels):
        fail(f"{folder} has {len(images)} pictures and {len(labels)} labels")
    return torch.from_numpy(images.copy()), torch.from_numpy(labels.astype(np.int64))


class Pictures(Dataset):
    """What a DataLoader asks for picture by picture."""

    def __init__(self, images, labels, data):
        self.images, self.labels = images, labels
        self.mean, self.std = (torch.tensor(data[key]).view(-1, 1, 1) for key in ("mean", "std"))

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return (self.images[i].float().div(255) - self.mean) / self.std, int(self.labels[i])


def words(blocks, seed, use, number):
    """The blocks of four words with these numbers, of one of Vitrine's streams."""
    counter = np.zeros((len(blocks), 4), np.uint64)
    counter[:, 0], counter[:, 2], counter[:, 3] = blocks, number, use
    return philox.philox(counter, (seed & 0xFFFFFFFF, seed >> 32))


def below(bound, high, low):
    half = np.uint64(32)
    return (high * bound + (low * bound >> half)) >> half


def epoch_order(count, seed, epoch):
    """Vitrine's order of the samples (train/data/epoch_order.cpp)."""
    drawn = words(np.arange(count, dtype=np.uint64), seed, ORDER, epoch)
    steps = below(np.arange(count, 0, -1, dtype=np.uint64), drawn[:, 0], drawn[:, 1])
    order = list(range(count))
    for i, step in enumerate(steps.tolist()):
        order[i], order[i + step] = order[i + step], order[i]
    return torch.tensor(order)


def placements(samples, padding, seed, epoch):
    """How far down and to the right each sample's crop begins in the padded picture, and whether it is mirrored
    (train/data/augmentation.cpp)."""
    samples = np.asarray(samples, np.uint64)
    place = words(2 * samples, seed, AUGMENTATION, epoch)
    mirror = words(2 * samples + np.uint64(1), seed, AUGMENTATION, epoch)
    sides = np.uint64(2 * padding + 1)
    down, right = (below(sides, place[:, i], place[:, i + 1]).astype(np.int64) for i in (0, 2))
    return torch.from_numpy(down), torch.from_numpy(right), torch.from_numpy((mirror[:, 0] >> np.uint64(31)) != 0)


class Batches:
    """All pictures in one tensor; a batch is an index operation."""

    def __init__(self, images, labels, config, shuffled=False, backwards=False):
        self.images, self.labels, self.shuffled, self.backwards = images, labels, shuffled, backwards
        self.seed, self.epoch = config["seed"], 0
        self.size, self.data = config["batch_size"], config["data"]
        self.mean, self.std = (torch.tensor(self.data[key]).view(-1, 1, 1) for key in ("mean", "std"))

    def moved(self, images, places, epoch):
        """Crops out of the pictures with black around them, as wide as crop_padding, and mirrored ones."""
        padding = self.data["crop_padding"]
        if not padding and not self.data["flip"]:
            return images
        count, _, height, width = images.shape
        down, right, mirrored = placements(places.numpy(), padding, self.seed, epoch)
        padded = nn.functional.pad(images, (padding,) * 4)
        rows, columns = down[:, None] + torch.arange(height), right[:, None] + torch.arange(width)
        images = padded[torch.arange(count)[:, None, None], :, rows[:, :, None], columns[:, None]]
        images = images.permute(0, 3, 1, 2)
        if self.data["flip"]:
            images = torch.where(mirrored.view(-1, 1, 1, 1), images.flip(3), images)
        return images

    def __iter__(self):
        count, epoch = len(self.images), self.epoch
        order = epoch_order(count, self.seed, epoch) if self.shuffled else torch.arange(count)
        self.epoch += 1
        for places in order.split(self.size):
            images, labels = self.images[places], self.labels[places]
            if self.shuffled:
                images = self.moved(images, places, epoch)
            if self.backwards:
                images, labels = images.flip(0), labels.flip(0)
            yield (images.float().div_(255) - self.mean) / self.std, labels
