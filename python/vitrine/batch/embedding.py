"""The one function: plans, sees what is done already, has the rest done, and sums up."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import vitrine

from .._errors import Error
from .engines import Setting
from .engines import engine as engine_named
from .job import Done, Failed, Job, Options
from .manifest import Manifest, begin, finished, summarize, write_manifest
from .model_files import model_files
from .plan import make_plan
from .requirements import require
from .results import Format
from .store import Store
from .text import counted

Engine = Literal["local", "dask", "ray"]


@dataclass(frozen=True)
class Progress:
    """How far a run is, told after each shard; ``pictures`` are those of this call."""

    shards: int
    done: int
    pictures: int
    rows: int
    failed: int  # shards that could not be done


def _sources(sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    listed = [os.fspath(sources)] if isinstance(sources, str | os.PathLike) else [os.fspath(source) for source in sources]
    if not listed:
        raise Error("found no sources, expected folders, globs, pictures, tars or Parquet files")
    return listed


def _everywhere(name: str) -> str:
    """A model's name as processes in other folders understand it."""
    return os.path.abspath(name) if os.path.exists(name) else name


def _at_least_one(**numbers: int | None) -> None:
    for name, value in numbers.items():
        if value is not None and value < 1:
            raise Error(f"{name}: found {value}, expected 1 or more")


def _one_of(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise Error(f"{name}: found {value!r}, expected {' or '.join(map(repr, known))}")


def embed(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    model: str | os.PathLike[str],
    engine: Engine = "local",
    workers: int | None = None,
    devices: Sequence[str | int] = (),
    address: str | None = None,
    client: Any = None,
    resources: Mapping[str, float] | None = None,
    shard_size: int = 1000,
    batch_size: int = 8,
    format: Format = "npy",
    dtype: Literal["float16", "float32"] = "float16",
    normalize: bool = False,
    column: str | None = None,
    exif: bool | None = None,
    precision: Literal["auto", "f32", "f16"] = "auto",
    image_size: int | tuple[int, int] | None = None,
    profile: str | None = None,
    overrides: Sequence[str] = (),
    progress: Callable[[Progress], None] | None = None,
) -> Manifest:
    """Embeds any number of pictures into a folder, shard by shard, on one machine or many.

    ``sources`` are folders, with those inside, globs, ranges ``{000..127}``, pictures, tars and Parquet
    files, anywhere that fsspec reaches; ``out`` is a folder, there too. A tar and a row group of a Parquet
    file are a shard each, loose pictures are ``shard_size`` together. A shard is written whole or not at
    all, and never twice: the same call again does what is missing, and one that would give other results is
    refused. Each picture is a row of its shard, in the source's order, or a failure in the
    :class:`Manifest`.

    ``format="npy"`` is clip-retrieval's: ``img_emb/img_emb_N.npy`` and ``metadata/metadata_N.parquet``;
    ``"parquet"`` has all in ``embeddings/embeddings_N.parquet``. ``dtype`` is that of the numbers there,
    ``normalize`` makes rows of length 1. ``column`` names the pictures' column of Parquet files that have
    several. ``precision`` is vitrine.load's dtype; ``image_size``, ``profile`` and ``overrides`` are its
    own.

    ``engine="local"`` is this process, with a model on each of ``devices``. ``"dask"`` and ``"ray"`` start
    ``workers`` processes here, or use the cluster at ``address``, or Dask's ``client``; ``resources`` are
    what a worker must have for a shard. The bytes are the same, from the same kind of device.

    >>> import tempfile, vitrine.batch
    >>> with tempfile.TemporaryDirectory() as out:
    ...     done = vitrine.batch.embed(SAMPLES, out, model=DIGITS)
    >>> done.rows, done.dim, len(done.failures)
    (10, 64, 0)
    """
    for package in ("pyarrow", "fsspec"):
        require(package, "batch")
    _at_least_one(workers=workers, shard_size=shard_size, batch_size=batch_size)
    _one_of("format", format, ("npy", "parquet"))
    _one_of("dtype", dtype, ("float16", "float32"))
    _one_of("precision", precision, ("auto", "f32", "f16"))
    run = engine_named(engine)
    listed = _sources(sources)
    store = Store(os.fspath(out))
    if engine != "local" and store.is_of_one_process:
        raise Error(f"{store}: found a folder of this process alone, expected one that the workers of {engine} see")
    name = _everywhere(os.fspath(model))
    options = Options(
        precision=precision,
        image_size=(image_size, image_size) if isinstance(image_size, int) else image_size,
        profile=profile,
        overrides=tuple(overrides),
        shard_size=shard_size,
        batch_size=batch_size,
        format=format,
        dtype=dtype,
        normalize=normalize,
        column=column,
        exif=exif,
    )
    files = model_files(name)
    plan = make_plan(listed, store.url, shard_size, column)
    store.lock()
    try:
        begin(store, listed, plan, name, files, options, vitrine.__version__)
        store.remove_unfinished()
        records = finished(store, options)
        missing = [shard for shard in plan.shards if shard.number not in records]
        job = Job(store.url, name, files.sha256, options, len(plan.shards), tuple(map(str, devices)))
        setting = Setting(workers, address, client, tuple(sorted((resources or {}).items())))
        failed: list[Failed] = []
        pictures = rows = 0
        said: set[str] = set()
        if missing:
            for outcome in run(job, missing, setting):
                if isinstance(outcome, Done):
                    records[outcome.number] = outcome.record
                    pictures += outcome.record["pictures"]
                    rows += outcome.record["rows"]
                    for sentence in outcome.warnings:
                        if sentence not in said:
                            warnings.warn(sentence, stacklevel=2)
                    said.update(outcome.warnings)
                else:
                    failed.append(outcome)
                if progress:
                    progress(Progress(len(plan.shards), len(records), pictures, rows, len(failed)))
        told = records.keys() | {one.number for one in failed}
        if not (failed and failed[-1].fatal):
            failed += [Failed(s.number, f"{engine} ended without a word of it") for s in missing if s.number not in told]
        manifest = summarize(store, plan, name, files, options, records.values())
        write_manifest(store, manifest, files, records.values())
    finally:
        store.unlock()
    if failed and failed[-1].fatal:
        raise failed[-1].fatal
    if failed:
        first = min(failed, key=lambda one: one.number)
        raise Error(
            f"{store}: {counted(len(failed), 'shard')} of {len(plan.shards):,} could not be done, which the same call tries again; "
            f"shard {first.number}, {plan.shards[first.number]}: {first.sentence}"
        )
    return manifest
