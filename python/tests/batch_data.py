"""Small shards of drawn pictures, and what the tests of vitrine.batch ask of results."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vitrine
from numpy.typing import NDArray
from PIL import Image, ImageDraw

for package in ("fsspec", "pyarrow"):
    pytest.importorskip(package, reason=f"found no {package}, which vitrine.batch needs")

import pyarrow.parquet as pq  # noqa: E402

SHARDS, PICTURES = 8, 6


def picture(seed: int, kind: str = "JPEG", size: int = 40) -> bytes:
    """A few thick strokes on grey noise."""
    rng = np.random.default_rng(seed)
    image = Image.fromarray(rng.integers(0, 60, (size, size, 3), np.uint8))
    draw = ImageDraw.Draw(image)
    for _ in range(3):
        draw.line([tuple(point) for point in rng.integers(4, size - 4, (3, 2)).tolist()], fill="white", width=4)
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def write_tar(path: Path, members: Sequence[tuple[str, bytes]], mode: str = "w") -> None:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def write_tars(folder: Path, shards: int = SHARDS, pictures: int = PICTURES, size: int = 40) -> list[bytes]:
    """WebDataset's shards, with captions between the pictures; gives the pictures in order."""
    folder.mkdir(exist_ok=True)
    drawn: list[bytes] = []
    for shard in range(shards):
        members: list[tuple[str, bytes]] = []
        for i in range(pictures):
            number = shard * pictures + i
            drawn.append(picture(number, size=size))
            members += [(f"{number:06}.jpg", drawn[-1]), (f"{number:06}.txt", b"strokes")]
        write_tar(folder / f"{shard:05}.tar", members)
    return drawn


def results(out: Path) -> dict[str, str]:
    """The hash of each file of results, and nothing else that lies there."""
    files = [file for folder in ("img_emb", "metadata", "embeddings") for file in (out / folder).glob("*")]
    return {str(file.relative_to(out)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def rows(out: Path) -> NDArray[Any]:
    return np.concatenate([np.load(file) for file in sorted((out / "img_emb").glob("*.npy"))])


def image_paths(out: Path) -> list[str]:
    """Which picture each row is of, in the order of shards."""
    return [path for file in sorted((out / "metadata").glob("*")) for path in pq.read_table(file)["image_path"].to_pylist()]


def failures(done: vitrine.batch.Manifest) -> dict[str, str]:
    """The sentence of each picture, or of each source, that could not be read."""
    return {failure.picture or Path(failure.source).name: failure.sentence for failure in done.failures}
