"""Vision Transformers on any GPU, through Vulkan compute.

>>> import vitrine
>>> model = vitrine.load(DIGITS)
>>> model.classify(SAMPLES + "/7.png")[0][0].label
'7'
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from . import _vitrine
from ._errors import DeviceError, Error, ImageError, ModelError
from ._graph import Graph, Value
from ._model import Answer, Attention, Embeddings, Model
from ._training import train

__version__ = "0.1.0"
__all__ = [
    "Answer",
    "Attention",
    "Device",
    "DeviceError",
    "Embeddings",
    "Error",
    "Graph",
    "ImageError",
    "Model",
    "ModelError",
    "Value",
    "devices",
    "load",
    "train",
]


@dataclass(frozen=True)
class Device:
    """A Vulkan device, and why it would be used or not."""

    index: int
    name: str
    kind: str
    driver: str
    memory_bytes: int
    f16: bool
    uuid: bytes
    chosen: bool
    reason: str


def devices(device: str | int | None = None) -> list[Device]:
    """All Vulkan devices; ``chosen`` is the one that ``load(..., device=device)`` takes.

    >>> import vitrine
    >>> any(device.chosen for device in vitrine.devices())
    True
    """
    return [Device(**one) for one in _vitrine.devices("" if device is None else str(device))]  # type: ignore[arg-type]


def load(
    model: str | os.PathLike[str] | None = None,
    *,
    arch: str | None = None,
    device: str | int | None = None,
    dtype: Literal["auto", "f32", "f16"] = "auto",
    image_size: int | tuple[int, int] | None = None,
    profile: str | None = None,
    overrides: Sequence[str] = (),
    seed: int = 0,
) -> Model:
    """Opens a model on a device.

    ``model`` is a folder or a .safetensors file as its publisher left it, or the name of one in Hugging
    Face's cache; nothing is downloaded. ``arch`` names an architecture instead, with random weights from
    ``seed``. ``device`` is a number or a part of a name; left out, ``VITRINE_DEVICE``, else the best one.
    ``image_size`` (height, width) is that of other images than the model's own, ``profile`` another
    preprocessing, ``overrides`` are fields of the configuration, ``"KEY=VALUE"``.

    >>> import vitrine
    >>> len(vitrine.load(DIGITS).labels)
    10
    """
    if (model is None) == (arch is None):
        raise Error("load: found " + ("neither model nor arch" if model is None else "model and arch") + ", expected one")
    height, width = (image_size, image_size) if isinstance(image_size, int) else image_size or (0, 0)
    session = _vitrine.Session(
        os.fspath(model) if model is not None else "",
        arch or "",
        seed,
        "" if device is None else str(device),
        dtype,
        height,
        width,
        profile or "",
        list(overrides),
    )
    session.show_warnings()
    return Model(session)
