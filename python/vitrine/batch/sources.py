"""From what somebody names to the files that are meant, wherever fsspec finds them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from .._errors import Error
from .requirements import require
from .text import shown

# What images/picture_files.cpp takes out of a folder.
PICTURE_ENDINGS = (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".webp")
TAR_ENDINGS = (".tar", ".tar.gz", ".tgz")
PARQUET_ENDINGS = (".parquet",)

Kind = Literal["picture", "tar", "parquet"]
_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")


@dataclass(frozen=True)
class File:
    """One file of the sources: a path where it is the machine's own, else a URL."""

    kind: Kind
    url: str
    size: int


@dataclass(frozen=True)
class Listing:
    """The files in their order, and how many others were passed over for their names."""

    files: tuple[File, ...]
    ignored: int


def kind_of(name: str) -> Kind | None:
    """What a file is, by its name.

    >>> kind_of("a/0001.JPG"), kind_of("train-00.tar.gz"), kind_of("labels.txt")
    ('picture', 'tar', None)
    """
    name = name.lower()
    if name.endswith(PICTURE_ENDINGS):
        return "picture"
    if name.endswith(TAR_ENDINGS):
        return "tar"
    return "parquet" if name.endswith(PARQUET_ENDINGS) else None


def expanded(pattern: str) -> list[str]:
    """The names that WebDataset's ranges stand for.

    >>> expanded("train-{008..011}.tar")
    ['train-008.tar', 'train-009.tar', 'train-010.tar', 'train-011.tar']
    """
    found = _RANGE.search(pattern)
    if not found:
        return [pattern]
    first, last = found.groups()
    if int(last) < int(first):
        raise Error(f"{shown(pattern)}: found the range {found.group()}, expected it to rise")
    numbers = (str(number).zfill(len(first)) for number in range(int(first), int(last) + 1))
    rest = expanded(pattern[found.end() :])
    return [pattern[: found.start()] + number + end for number in numbers for end in rest]


def filesystem(url: str) -> tuple[Any, str]:
    """fsspec's file system for a URL or path, and the path in it."""
    core = require("fsspec.core", "batch")
    try:
        fs, path = core.url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise Error(f"{shown(url)}: {error}") from error
    return fs, str(path)


def is_local(fs: Any) -> bool:
    """Whether that is the machine's own file system."""
    protocol = fs.protocol if isinstance(fs.protocol, str) else fs.protocol[0]
    return protocol in ("file", "local")


def url_of(fs: Any, path: str) -> str:
    """What finds a file again from any process: its path where it is the machine's own."""
    return path if is_local(fs) else str(fs.unstrip_protocol(path))


def _entries(source: str, below_out: str) -> Iterator[tuple[str, int, bool]]:
    """URL and size of each file that a source stands for, and whether somebody named it itself."""
    fs, path = filesystem(source)
    if fs.exists(path):
        info = fs.info(path)
        if info["type"] != "directory":
            yield url_of(fs, path), int(info.get("size") or 0), True
            return
        found = fs.find(path, detail=True)
    elif any(sign in path for sign in "*?["):
        found = fs.glob(path, detail=True)
        for folder in sorted(name for name, info in found.items() if info["type"] == "directory"):
            del found[folder]
            found.update(fs.find(folder, detail=True))
    else:
        raise Error(f"{shown(source)}: found neither a file nor a folder, expected one")
    for name in sorted(found):
        url = url_of(fs, name)
        if not url.startswith(below_out):
            yield url, int(found[name].get("size") or 0), False


def list_files(sources: Iterable[str], out: str) -> Listing:
    """All files of ``sources``, each once, in their order; what lies below ``out`` is none of them.

    A folder or a glob gives what has the ending of a picture, a tar or a Parquet file, sorted by name;
    a file that is named itself is a picture, whatever it is called.
    """
    files: dict[str, File] = {}
    ignored = 0
    for source in sources:
        fs, _ = filesystem(source)
        # A name that is there is itself, whatever it looks like.
        plain = is_local(fs) and os.path.exists(source)
        before = len(files)
        again = False
        for pattern in [source] if plain else expanded(source):
            for url, size, named in _entries(pattern, out.rstrip("/") + "/"):
                kind = kind_of(url) or ("picture" if named else None)
                again = again or url in files
                if kind is None:
                    ignored += 1
                elif url not in files:
                    files[url] = File(kind, url, size)
        if len(files) == before and not again:
            endings = ", ".join(("*.jpg", "*.png", "*.webp", "*.tar", "*.parquet"))
            raise Error(f"{shown(source)}: found no pictures, expected files named {endings}")
    return Listing(tuple(files.values()), ignored)
