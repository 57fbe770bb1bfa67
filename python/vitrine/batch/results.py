"""What a shard's rows are written as: clip-retrieval's arrays and tables, or tables alone."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._errors import Error
from .requirements import require
from .text import shown

Format = Literal["npy", "parquet"]
FOLDERS: dict[Format, tuple[str, ...]] = {"npy": ("img_emb", "metadata"), "parquet": ("embeddings",)}


def file_names(format: Format, number: int, shards: int) -> tuple[str, ...]:
    """The files of a shard, numbered with as many digits as clip-retrieval takes.

    >>> file_names("npy", 7, 120)
    ('img_emb/img_emb_007.npy', 'metadata/metadata_007.parquet')
    >>> file_names("parquet", 7, 8)
    ('embeddings/embeddings_7.parquet',)
    """
    digits = str(number).zfill(len(str(shards)))
    if format == "npy":
        return f"img_emb/img_emb_{digits}.npy", f"metadata/metadata_{digits}.parquet"
    return (f"embeddings/embeddings_{digits}.parquet",)


def as_stored(rows: NDArray[np.float32], names: Sequence[str], dtype: str, normalize: bool) -> NDArray[Any]:
    """Rows in the type that they are stored in; one that it can't hold is an Error."""
    if normalize:
        length = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))[:, None]
        rows = (rows / np.where(length == 0, 1, length)).astype(np.float32)
    if dtype == "float32":
        return rows
    with np.errstate(over="ignore"):
        stored = rows.astype(np.float16)
    beyond = np.isinf(stored) & np.isfinite(rows)
    if beyond.any():
        row, column = (int(i) for i in np.argwhere(beyond)[0])
        value = float(rows[row, column])
        raise Error(f"{shown(names[row])}: found the value {value:g} in its row, expected at most 65504, or dtype='float32'")
    return stored


def encoded(format: Format, rows: NDArray[Any], names: Sequence[str], sources: Sequence[str]) -> tuple[bytes, ...]:
    """The files' bytes, in the order of file_names."""
    arrow, parquet = require("pyarrow", "batch"), require("pyarrow.parquet", "batch")
    columns: dict[str, Any] = {
        "image_path": arrow.array([shown(name) for name in names], arrow.string()),
        "source": arrow.array([shown(source) for source in sources], arrow.string()),
    }
    files: list[bytes] = []
    if format == "npy":
        array = io.BytesIO()
        np.save(array, rows)
        files.append(array.getvalue())
    else:
        flat = arrow.array(rows.reshape(-1))
        columns["embedding"] = arrow.FixedSizeListArray.from_arrays(flat, rows.shape[1])
    table = io.BytesIO()
    parquet.write_table(arrow.table(columns), table)
    files.append(table.getvalue())
    return tuple(files)
