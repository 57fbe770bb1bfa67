"""How far something is, by tqdm where it is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Bar:
    """A bar that is told how much is done; one without tqdm, or that nobody asked for, shows nothing."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def show(self, done: int, total: int | None = None, **facts: object) -> None:
        if self._bar is None:
            return
        if total is not None and self._bar.total != total:
            self._bar.reset(total)
        if facts:
            self._bar.set_postfix(facts, refresh=False)
        self._bar.update(done - self._bar.n)


@contextmanager
def bar(wanted: bool, what: str, total: int | None = None) -> Iterator[Bar]:
    """A bar of ``total`` of something, for as long as it is worked on."""
    made = None
    if wanted:
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped, import-not-found, unused-ignore]
        except ImportError:
            pass
        else:
            made = tqdm(total=total, unit=f" {what}")
    try:
        yield Bar(made)
    finally:
        if made is not None:
            made.close()
