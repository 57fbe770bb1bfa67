"""How shards get to workers: one module an engine, each with ``run``.

``run(job, shards, setting)`` gives the outcome of each shard as it comes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ..._errors import Error
from ..job import Job, Outcome
from ..plan import Shard

NAMES = ("local", "dask", "ray")
ATTEMPTS = 5  # of a shard, while workers die under it


@dataclass(frozen=True)
class Setting:
    """Where workers run; nothing that results depend on."""

    workers: int | None = None
    address: str | None = None
    client: Any = None  # a dask.distributed.Client
    resources: tuple[tuple[str, float], ...] = ()


Run = Callable[[Job, Sequence[Shard], Setting], Iterator[Outcome]]


def engine(name: str) -> Run:
    """An engine by its name; its packages are imported when it runs."""
    if name not in NAMES:
        raise Error(f"engine: found {name!r}, expected {' or '.join(NAMES)}")
    return cast(Run, importlib.import_module(f"{__name__}.{name}").run)
