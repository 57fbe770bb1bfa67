"""Names as they are written into results and sentences."""

from __future__ import annotations


def shown(name: str) -> str:
    r"""A name in valid UTF-8: bytes of a file's name that aren't show as escapes.

    >>> shown("caf\udce9.jpg")
    'caf\\udce9.jpg'
    """
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def counted(count: int, noun: str) -> str:
    """A number and what it is of.

    >>> counted(1, "shard"), counted(2000, "shard")
    ('1 shard', '2,000 shards')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
