"""Which pictures are a shard: planned from names alone, the same each time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

from .._errors import Error
from .parquet import row_groups
from .sources import File, Listing, list_files
from .text import counted, shown

_LOOKED_AT_ONCE = 16  # Parquet files, whose ends are far away


@dataclass(frozen=True)
class Shard:
    """What is done at once, and whole: loose pictures, a tar, or a row group of a Parquet file.

    ``row_group`` is None for a Parquet file that can't say how many it has: it is broken.
    """

    number: int
    kind: Literal["pictures", "tar", "parquet"]
    files: tuple[tuple[str, int], ...]  # URL and size
    row_group: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "files": [list(file) for file in self.files], "row_group": self.row_group}

    def __str__(self) -> str:
        first, last = self.files[0][0], self.files[-1][0]
        if self.kind == "pictures" and len(self.files) > 1:
            return f"{counted(len(self.files), 'picture')} from {shown(first)} to {shown(last)}"
        group = f", row group {self.row_group}" if self.row_group is not None else ""
        return f"{shown(first)} ({counted(self.files[0][1], 'byte')}{group})"


@dataclass(frozen=True)
class Plan:
    """All shards, and how many files of the sources were passed over for their names."""

    shards: tuple[Shard, ...]
    ignored: int

    def to_json(self) -> list[dict[str, Any]]:
        return [shard.to_json() for shard in self.shards]


def _groups(files: Sequence[File], column: str | None) -> Iterator[list[int | None]]:
    """Of each Parquet file its row groups, in order."""
    with ThreadPoolExecutor(_LOOKED_AT_ONCE) as pool:
        for count in pool.map(lambda file: row_groups(file.url, column), files):
            yield [None] if count is None else list(range(count))


def _shards(listing: Listing, shard_size: int, column: str | None) -> Iterator[Shard]:
    groups = _groups([file for file in listing.files if file.kind == "parquet"], column)
    number = 0
    loose: list[tuple[str, int]] = []

    def numbered(kind: Literal["pictures", "tar", "parquet"], files: Sequence[tuple[str, int]], group: int | None) -> Shard:
        nonlocal number
        number += 1
        return Shard(number - 1, kind, tuple(files), group)

    for file in listing.files:
        named = (file.url, file.size)
        if file.kind == "tar":
            yield numbered("tar", [named], None)
        elif file.kind == "parquet":
            for group in next(groups):
                yield numbered("parquet", [named], group)
        else:
            loose.append(named)
            if len(loose) == shard_size:
                yield numbered("pictures", loose, None)
                loose = []
    if loose:
        yield numbered("pictures", loose, None)


def make_plan(sources: Sequence[str], out: str, shard_size: int, column: str | None) -> Plan:
    """The shards of ``sources``: loose pictures by ``shard_size``, tars and row groups as they are."""
    listing = list_files(sources, out)
    shards = tuple(_shards(listing, shard_size, column))
    if not shards:
        raise Error(f"{', '.join(map(shown, sources))}: found Parquet files without a row, expected pictures")
    return Plan(shards, listing.ignored)


def difference(begun: list[dict[str, Any]], now: Plan) -> str | None:
    """What the sources have become since a run was begun, as a half sentence; None where they are the same."""
    found = now.to_json()
    for shard, old, new in zip(now.shards, begun, found, strict=False):
        if old != new:
            files = tuple((str(url), int(size)) for url, size in old["files"])
            before = Shard(shard.number, old["kind"], files, old["row_group"])
            if str(before) == str(shard):
                changed = next(file for file, was in zip(shard.files, files, strict=True) if file != was)
                return f"shard {shard.number} has another {shown(changed[0])} ({counted(changed[1], 'byte')})"
            return f"shard {shard.number} is {shard}, and was {before}"
    if len(found) != len(begun):
        return f"there are {counted(len(found), 'shard')}, and there were {len(begun):,}"
    return None
