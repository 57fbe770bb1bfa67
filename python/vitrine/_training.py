"""Training, as the tool's `train` does it."""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _progress, _vitrine
from ._errors import Error

Record = dict[str, Any]
Callback = Callable[[Record], object]


def train(
    config: Mapping[str, Any] | str | os.PathLike[str] | None,
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    callbacks: Sequence[Callback] = (),
    model: str | os.PathLike[str] | None = None,
    device: str | int | None = None,
    devices: Sequence[str | int] | None = None,
    classes: int | None = None,
    image_size: int | tuple[int, int] | None = None,
    overrides: Sequence[str] = (),
    resume: bool = False,
    recompute: bool = False,
    checkpoint_seconds: float = 60,
    progress: bool = False,
) -> Record:
    """Trains a classifier, and returns how it does on the data set's test part.

    ``config`` is what ``vitrine train --config`` reads, as a dictionary or the file's path; with ``model``, a
    trained one to begin with, it may be None. ``data`` is a folder as the tool takes it, ``out`` another for
    checkpoints and the trained model. Each callback is called with what the tool prints as JSON: a dictionary
    for every epoch, every validation within one, and the test at last. ``devices`` share each batch.

    Ctrl-C, and whatever a callback raises, ends it after the update under way, saves, and is raised then: the
    same call with ``resume=True`` goes on from there.
    """
    if config is None and model is None:
        raise Error("train: found neither config nor model, expected one of them or both")
    if device is not None and devices is not None:
        raise Error("train: found device and devices, expected one of the two")
    height, width = (image_size, image_size) if isinstance(image_size, int) else image_size or (0, 0)
    settings = None
    if isinstance(config, Mapping):
        try:
            settings = json.dumps(config, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise Error(f"config: found what JSON can't hold ({error}), expected numbers, words, lists and dictionaries") from error
        named = "config"
    else:
        named = os.fspath(config) if config is not None else ""
    records: list[Record] = []

    def take(line: str) -> None:
        records.append(json.loads(line))
        for callback in callbacks:
            callback(records[-1])

    with _progress.bar(progress, "batches") as bar:

        def show(done: int, total: int, loss: float, rate: float) -> None:
            bar.show(done, total, loss=f"{loss:.4f}", images_per_second=f"{rate:.0f}")

        _vitrine.train(
            named,
            settings,
            os.fspath(data),
            os.fspath(out),
            os.fspath(model) if model is not None else "",
            [str(one) for one in devices] if devices is not None else ["" if device is None else str(device)],
            devices is not None,
            list(overrides),
            classes,
            height,
            width,
            resume,
            recompute,
            checkpoint_seconds,
            take,
            logging.getLogger("vitrine").info,
            lambda sentence: warnings.warn(sentence, stacklevel=3),
            show if progress else None,
        )
    return records[-1]
