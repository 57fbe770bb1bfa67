"""What a worker is told, in names and numbers alone, and what it answers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .._errors import Error
from .results import Format
from .store import PRIVATE

RECORDS = f"{PRIVATE}/shards"


@dataclass(frozen=True)
class ModelNames:
    """What opens a model on any machine that has its files; words as in vitrine.load."""

    model: str
    precision: str = "auto"
    image_size: tuple[int, int] | None = None
    profile: str | None = None
    overrides: tuple[str, ...] = ()


@dataclass(frozen=True)
class Options:
    """What the results depend on besides model and plan."""

    precision: str
    image_size: tuple[int, int] | None
    profile: str | None
    overrides: tuple[str, ...]
    shard_size: int
    batch_size: int
    format: Format
    dtype: str
    normalize: bool
    column: str | None
    exif: bool | None

    def to_json(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Job:
    """One run, as its workers know it."""

    out: str
    model: str
    model_sha256: str
    options: Options
    shards: int
    devices: tuple[str, ...] = ()  # that a worker may take; all where empty

    @property
    def names(self) -> ModelNames:
        o = self.options
        return ModelNames(self.model, o.precision, o.image_size, o.profile, o.overrides)


@dataclass(frozen=True)
class Done:
    """A shard that is written; ``fresh`` unless it had been before."""

    number: int
    record: dict[str, Any]
    fresh: bool
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failed:
    """A shard that isn't; with a ``fatal`` error none will be."""

    number: int
    sentence: str
    fatal: Error | None = None


Outcome = Done | Failed


def record_name(number: int) -> str:
    return f"{RECORDS}/{number}.json"
