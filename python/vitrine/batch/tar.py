"""Tar archives that may break off: what stands before the break is kept, and the break is said."""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from typing import Any

from .sources import filesystem, kind_of

_BLOCK = tarfile.BLOCKSIZE
MOST_PICTURE = 3 << 29  # bytes, as vitrine itself reads of a file


class TarBreak(Exception):
    """Where and how an archive stops being one."""


def _check_end(file: Any, offset: int) -> None:
    """tarfile takes every header that it can't read for the end: whether it was one is seen here."""
    file.seek(offset)
    block = file.read(_BLOCK)
    if not block:
        raise TarBreak(f"found its end at byte {offset} without the mark of an end, expected two blocks of zeros")
    if len(block) < _BLOCK or block.count(0) < _BLOCK:
        raise TarBreak(f"found no header at byte {offset}, expected a member's or the end")
    while rest := file.read(1 << 20):
        if rest.count(0) < len(rest):
            raise TarBreak(f"found more behind the end at byte {offset}, expected nothing")


def read_tar(url: str) -> Iterator[tuple[str, bytes | None]]:
    """Name and bytes of each picture in an archive, in order; a TarBreak where it breaks.

    There are no bytes where a picture has too many.
    An OSError of the place where it lies isn't a break: that may be better the next time.
    """
    fs, path = filesystem(url)
    compressed = not url.lower().endswith(".tar")
    whole = None if compressed else int(fs.info(path)["size"])
    with fs.open(path, "rb") as raw:
        file: Any = gzip.GzipFile(fileobj=raw) if compressed else raw
        where = "its beginning"
        try:
            with tarfile.open(fileobj=file, mode="r:") as archive:
                while (member := archive.next()) is not None:
                    where = f"byte {member.offset}, {member.name!r}"
                    if not member.isreg() or kind_of(member.name) != "picture":
                        continue
                    # Before so much memory is asked for.
                    if whole is not None and member.offset_data + member.size > whole:
                        raise TarBreak(f"breaks at {where}: found {member.size} bytes promised, and the file's end before")
                    data = archive.extractfile(member)
                    if data is not None:
                        yield member.name, data.read() if member.size <= MOST_PICTURE else None
                _check_end(file, archive.offset)
        except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise TarBreak(f"breaks at {where}: {error}") from error
