"""Pictures in Parquet files: encoded, or as the paths of files."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from .._errors import Error
from .requirements import require
from .sources import filesystem
from .text import shown

PATH_NAMES = ("path", "file", "file_name", "filename", "image_path", "file_path", "filepath")


@dataclass(frozen=True)
class Column:
    """Where a file has its pictures: ``bytes``, Hugging Face's ``struct`` of bytes and path, or ``path``."""

    name: str
    kind: Literal["bytes", "struct", "path"]


def _kind(field: Any) -> Literal["bytes", "struct", "path"] | None:
    types = require("pyarrow", "batch").types
    kind = field.type
    if types.is_binary(kind) or types.is_large_binary(kind):
        return "bytes"
    if types.is_struct(kind):
        inside = {kind.field(i).name: kind.field(i).type for i in range(kind.num_fields)}
        holds_bytes = "bytes" in inside and (types.is_binary(inside["bytes"]) or types.is_large_binary(inside["bytes"]))
        return "struct" if holds_bytes else None
    return "path" if types.is_string(kind) or types.is_large_string(kind) else None


def choose_column(schema: Any, wanted: str | None, url: str) -> Column:
    """The column that has the pictures: the one that is asked for, else the only one that can."""
    kinds = {field.name: _kind(field) for field in schema}
    names = ", ".join(kinds) or "none"
    if wanted is not None:
        kind = kinds.get(wanted)
        if kind is None:
            what = f"the column {wanted!r} of {schema.field(wanted).type}" if wanted in kinds else f"the columns {names}"
            raise Error(f"{shown(url)}: found {what}, expected a column {wanted!r} of binary, struct with bytes, or string")
        return Column(wanted, kind)
    found = [Column(name, kind) for name, kind in kinds.items() if kind in ("bytes", "struct")]
    if not found:
        found = [Column(name, "path") for name in PATH_NAMES if kinds.get(name) == "path"]
    if len(found) != 1:
        which = ", ".join(column.name for column in found)
        several = f"{which} that may be the pictures" if found else f"{names}, none of which has to be the pictures"
        raise Error(f"{shown(url)}: found the columns {several}, expected column= (--column) to name one")
    return found[0]


def row_groups(url: str, column: str | None) -> int | None:
    """How many a file has; None where what it says of itself can't be read."""
    arrow, parquet = require("pyarrow", "batch"), require("pyarrow.parquet", "batch")
    fs, path = filesystem(url)
    with fs.open(path, "rb") as raw:
        try:
            file = parquet.ParquetFile(raw)
        except arrow.ArrowInvalid:
            return None
        choose_column(file.schema_arrow, column, url)
        return int(file.metadata.num_row_groups)


@dataclass(frozen=True)
class Cell:
    """A row's picture: encoded, or where it lies; neither where the row has none."""

    name: str
    data: bytes | None
    url: str | None


def read_row_group(url: str, group: int | None, wanted: str | None) -> Iterator[Cell]:
    """The pictures of a row group, in order. What is broken in it ends it with pyarrow's ArrowException."""
    parquet = require("pyarrow.parquet", "batch")
    fs, path = filesystem(url)
    with fs.open(path, "rb") as raw:
        file = parquet.ParquetFile(raw)
        if group is None:
            raise Error(f"{shown(url)}: found a Parquet file, expected the broken one that was planned")
        column = choose_column(file.schema_arrow, wanted, url)
        row = sum(file.metadata.row_group(i).num_rows for i in range(group))
        base = posixpath.basename(url)
        for batch in file.iter_batches(batch_size=64, row_groups=[group], columns=[column.name]):
            for value in batch.column(0).to_pylist():
                yield _cell(value, column, f"{base}#{row}", posixpath.dirname(url))
                row += 1


def _cell(value: Any, column: Column, name: str, folder: str) -> Cell:
    if value is None:
        return Cell(name, None, None)
    if column.kind == "bytes":
        return Cell(name, value, None)
    if column.kind == "struct":
        called = value.get("path") or name
        if value["bytes"] is not None:
            return Cell(called, value["bytes"], None)
        value = value.get("path")
        if not value:
            return Cell(name, None, None)
    # A relative path is seen from the Parquet file's folder.
    whole = value if "://" in value or value.startswith("/") else posixpath.join(folder, value)
    return Cell(value, None, whole)
