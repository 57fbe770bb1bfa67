"""Models that tasks share: opened once in a process, by name."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import vitrine

from .._errors import ImageError
from .devices import device_for_worker, find_device
from .job import ModelNames

_models: dict[tuple[ModelNames, int | str | None], vitrine.Model] = {}
_opening = threading.Lock()


def open_model(names: ModelNames, device: int | str | None) -> vitrine.Model:
    """vitrine.load, by names."""
    return vitrine.load(
        names.model,
        device=find_device(device) if isinstance(device, str) else device,
        dtype=names.precision,  # type: ignore[arg-type]  # load says which it knows
        image_size=names.image_size,
        profile=names.profile,
        overrides=names.overrides,
    )


def opened(names: ModelNames, device: int | str | None = None) -> vitrine.Model:
    """This process' model of those names; without a ``device`` one that no other process has claimed."""
    with _opening:
        if (names, device) not in _models:
            _models[names, device] = open_model(names, device_for_worker(()) if device is None else device)
        return _models[names, device]


def embeddings(model: vitrine.Model, pictures: Sequence[Any], batch_size: int, exif: bool | None) -> vitrine.Embeddings:
    """Rows of pictures of which some may be missing (None): those are errors beside the others."""
    there = [i for i, picture in enumerate(pictures) if picture is not None]
    found = model.embed([pictures[i] for i in there], batch_size=batch_size, exif=exif, errors="return")
    errors = {there[i]: error for i, error in found.errors.items()}
    for i, picture in enumerate(pictures):
        if picture is None:
            errors[i] = ImageError("found nothing, expected a picture")
    indices = np.array([there[i] for i in found.indices], np.int64)
    return vitrine.Embeddings(found.rows, indices, dict(sorted(errors.items())))
