"""A model in Ray Data's pipelines, and Vulkan's devices as Ray's resources.

    dataset.map_batches(
        vitrine.batch.ray.Embedder, fn_constructor_kwargs={"model": "facebook/dinov2-base"}, batch_size=256,
        resources={"vulkan": 1}, compute=ray.data.ActorPoolStrategy(size=4))

A node says which devices it has when it is started:

    ray start --address=HEAD --resources="$(python -m vitrine.batch.ray)"
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import Error
from .devices import worthwhile
from .job import ModelNames
from .models import embeddings, opened
from .requirements import require

POOL = "vulkan"  # a device, whichever
PREFIX = "vulkan_"  # and a device's UUID: that one


def node_resources() -> dict[str, float]:
    """This machine's devices as Ray's custom resources: ``vulkan``, how many, and one for each by its UUID.

    >>> resources = node_resources()
    >>> resources["vulkan"] == len(resources) - 1
    True
    """
    devices = worthwhile()
    return {POOL: float(len(devices))} | {PREFIX + device.uuid.hex(): 1.0 for device in devices}


def assigned_device() -> str | None:
    """The UUID of the device that Ray gave to this actor; None where it gave none, or just any."""
    ray = require("ray", "ray")
    if not ray.is_initialized():
        return None
    names = ray.get_runtime_context().get_assigned_resources()
    return next((str(name).removeprefix(PREFIX) for name in names if str(name).startswith(PREFIX)), None)


class Embedder:
    """For ``map_batches``: batches with a column of pictures, and two more of embeddings and errors.

    ``column`` has encoded pictures, paths or pixels. Each row gets its embedding and an empty ``error``, or
    a row of NaN and the sentence that says why. The model is opened once an actor, on the device that Ray
    gave it by UUID, else on one that no other actor of its machine has claimed.
    """

    def __init__(
        self,
        model: str,
        *,
        column: str = "bytes",
        output: str = "embedding",
        device: int | str | None = None,
        batch_size: int = 8,
        exif: bool | None = None,
        precision: str = "auto",
        **options: Any,
    ) -> None:
        self._column, self._output, self._batch_size, self._exif = column, output, batch_size, exif
        names = ModelNames(str(model), precision, **options)
        self.model = opened(names, assigned_device() if device is None else device)

    def __call__(self, batch: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        if self._column not in batch:
            raise Error(f"found the columns {', '.join(batch)}, expected {self._column!r} (column=)")
        pictures = list(batch[self._column])
        found = embeddings(self.model, pictures, self._batch_size, self._exif)
        rows = np.full((len(pictures), found.rows.shape[1]), np.nan, np.float32)
        rows[found.indices] = found.rows
        errors = [str(found.errors[i]) if i in found.errors else "" for i in range(len(pictures))]
        return {**batch, self._output: rows, "error": np.array(errors, dtype=object)}


if __name__ == "__main__":
    print(json.dumps(node_resources()))
