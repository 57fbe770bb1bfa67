"""Reading a shard's pictures, in order; what can't be read is named and the rest goes on."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import batched, groupby
from typing import Any

from .._errors import Error
from .parquet import Cell, read_row_group
from .plan import Shard
from .requirements import require
from .sources import filesystem, is_local
from .tar import MOST_PICTURE, TarBreak, read_tar
from .text import shown

_FETCHED_AT_ONCE = 32  # loose pictures that lie elsewhere


@dataclass(frozen=True)
class Picture:
    """A picture, encoded or as a path of this machine. ``name`` is what the source calls it."""

    name: str
    source: str
    item: str | bytes


@dataclass(frozen=True)
class Unreadable:
    """A picture that can't be had; without a ``name`` the break of the source itself."""

    name: str | None
    source: str
    sentence: str


def _is_utf8(name: str) -> bool:
    return shown(name) == name


def _said(error: BaseException) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text.splitlines()[0] if text else type(error).__name__


@dataclass(frozen=True)
class _Elsewhere:
    """A picture that a source names."""

    url: str
    name: str
    source: str

    @property
    def place(self) -> str:
        """The file system that it lies in."""
        scheme, found, rest = self.url.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}" if found else ""


def _fetch(wanted: Iterable[_Elsewhere]) -> Iterator[Picture | Unreadable]:
    """Pictures as paths where they are this machine's; several at once where they lie elsewhere.

    What isn't there stays so; another OSError may be better the next time, and ends the shard.
    """
    for _, group in groupby(wanted, lambda one: one.place):
        for some in batched(group, _FETCHED_AT_ONCE):
            fs, _ = filesystem(some[0].url)
            paths = [str(fs._strip_protocol(one.url)) for one in some]
            if is_local(fs) and all(map(_is_utf8, paths)):
                for one, path in zip(some, paths, strict=True):
                    yield Picture(one.name, one.source, path)
                continue
            found: dict[str, Any] = fs.cat(list(dict.fromkeys(paths)), on_error="return")
            for one, path in zip(some, paths, strict=True):
                data = found.get(path, FileNotFoundError())
                if isinstance(data, FileNotFoundError | PermissionError | IsADirectoryError):
                    yield Unreadable(one.name, one.source, f"{shown(one.name)}: {_said(data)}")
                elif isinstance(data, BaseException):
                    raise data
                else:
                    yield Picture(one.name, one.source, bytes(data))


def _tar(url: str) -> Iterator[Picture | Unreadable]:
    try:
        for name, data in read_tar(url):
            if data is None:
                yield Unreadable(name, url, f"{shown(name)}: found more than {MOST_PICTURE} bytes, expected at most those")
            else:
                yield Picture(name, url, data)
    except TarBreak as error:
        yield Unreadable(None, url, f"{shown(posixpath.basename(url))}: {error}")


def _cells(shard: Shard, column: str | None) -> Iterator[Cell | Unreadable]:
    """A row group's cells, and its break where it has one."""
    url = shard.files[0][0]
    arrow = require("pyarrow", "batch")
    try:
        yield from read_row_group(url, shard.row_group, column)
    except (arrow.ArrowException, OSError) as error:
        # pyarrow's own OSErrors have no number: broken pages. One of the system may be better the next time.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        where = "its footer" if shard.row_group is None else f"row group {shard.row_group}"
        yield Unreadable(None, url, f"{shown(posixpath.basename(url))}: breaks in {where}: {_said(error)}")


def _parquet(shard: Shard, column: str | None) -> Iterator[Picture | Unreadable]:
    url = shard.files[0][0]
    for elsewhere, group in groupby(_cells(shard, column), lambda one: isinstance(one, Cell) and one.url is not None):
        if elsewhere:
            yield from _fetch(_Elsewhere(cell.url, cell.name, url) for cell in group if isinstance(cell, Cell) and cell.url)
            continue
        for one in group:
            if isinstance(one, Unreadable):
                yield one
            elif one.data is None:
                yield Unreadable(one.name, url, f"{shown(one.name)}: found no picture in this row, expected one")
            else:
                yield Picture(one.name, url, one.data)


def read_shard(shard: Shard, column: str | None) -> Iterator[Picture | Unreadable]:
    """All pictures of a shard in the order of its sources."""
    if shard.kind == "pictures":
        return _fetch(_Elsewhere(url, url, url) for url, _ in shard.files)
    if shard.kind == "tar":
        return _tar(shard.files[0][0])
    if shard.kind == "parquet":
        return _parquet(shard, column)
    raise Error(f"found a shard of {shard.kind}, expected pictures, tar or parquet")
