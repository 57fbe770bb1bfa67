"""What may be given as a picture or a batch, as what the extension takes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import Error, ImageError

Item = str | bytes | NDArray[np.uint8]


def _is_torch(x: Any) -> bool:
    return type(x).__module__.partition(".")[0] == "torch"


def _on_host(x: Any) -> Any:
    """A torch tensor as an array of the same memory, where that is the host's already."""
    return x.detach().cpu().numpy() if _is_torch(x) else x


def _pixels(array: NDArray[Any]) -> NDArray[np.uint8]:
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3:
        raise Error(f"found an array of {array.shape} as a picture, expected [H, W], [H, W, C] or [C, H, W]")
    if array.shape[2] not in (1, 3, 4) and array.shape[0] in (1, 3, 4):
        array = array.transpose(1, 2, 0)
    if array.dtype != np.uint8:
        if not np.issubdtype(array.dtype, np.floating):
            raise Error(f"found a picture of {array.dtype}, expected uint8, or floats from 0 to 1")
        if not bool(((array >= 0) & (array <= 1)).all()):
            raise Error("found a picture of floats beyond 0 to 1, expected such (model(x) takes normalised ones)")
        array = np.rint(array * np.float32(255)).astype(np.uint8)
    return np.ascontiguousarray(array)


def _on_white(image: Any) -> Any:
    from PIL import Image

    clear = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear).convert("RGB")


def item(image: Any, exif: bool = False, white: bool = False) -> Item:
    """One picture: a path, a file's bytes, a PIL picture, an array or a torch tensor.

    With ``exif`` a PIL picture is turned as its file says, with ``white`` its one transparent color becomes
    white; with files that is done where they are decoded.
    """
    if isinstance(image, bytes | bytearray | memoryview):
        return bytes(image)
    if isinstance(image, str | os.PathLike):
        return os.fsdecode(os.fspath(image))
    if hasattr(image, "convert") and hasattr(image, "getbands"):
        try:
            if exif:
                from PIL import ImageOps

                image = ImageOps.exif_transpose(image)
            image = image.convert("RGB")
            return np.asarray(_on_white(image) if white and image.info.get("transparency") is not None else image)
        except (OSError, ValueError, SyntaxError) as error:
            name = getattr(image, "filename", None) or None
            raise ImageError(f"{name or 'a picture'}: {error}", name) from error
    if isinstance(image, np.ndarray) or _is_torch(image) or hasattr(image, "__array__"):
        return _pixels(np.asarray(_on_host(image)))
    raise Error(f"found a {type(image).__name__} as a picture, expected a path, bytes, a PIL picture or an array")


def is_one(images: Any) -> bool:
    """Whether that is a picture itself, not several."""
    if isinstance(images, str | os.PathLike | bytes | bytearray | memoryview):
        return True
    if hasattr(images, "convert") and hasattr(images, "getbands"):
        return True
    return getattr(images, "ndim", 4) < 4


def several(images: Any) -> list[Any]:
    """The pictures of a list, of any iterable, or of an array [N, ...]; a single one is a list of one."""
    if is_one(images):
        return [images]
    if not isinstance(images, Iterable):
        raise Error(f"found a {type(images).__name__}, expected pictures")
    return list(images)


def batch(x: Any) -> Any:
    """[B, C, H, W]: contiguous float32 on the host goes in as it is, all else is copied."""
    array = np.asarray(_on_host(x), dtype=np.float32, order="C")
    if array.ndim == 3:
        array = array[None]
    if array.ndim != 4:
        raise Error(f"found an array of {array.shape}, expected [B, C, H, W], normalised")
    return array
