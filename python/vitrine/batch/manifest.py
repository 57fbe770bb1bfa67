"""What a run was begun with, what of it is done, and what it all came to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._errors import Error
from .job import RECORDS, Options, record_name
from .model_files import ModelFiles
from .plan import Plan, difference
from .results import FOLDERS
from .store import PRIVATE, Store
from .text import shown

VERSION = 1
PLAN = f"{PRIVATE}/plan.json"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Failure:
    """A picture without a row, or, where ``picture`` is None, the break of its source."""

    shard: int
    source: str
    picture: str | None
    sentence: str


@dataclass(frozen=True)
class Manifest:
    """What a run came to, as ``manifest.json`` in its folder says it.

    ``pictures`` are those that were found, and each is a row or a failure; a source that breaks is a
    failure, too, but no picture.
    """

    out: str
    model: str
    model_sha256: str
    options: Mapping[str, Any]
    shards: int
    done: int
    pictures: int
    rows: int
    dim: int | None
    failures: tuple[Failure, ...]
    ignored: int
    devices: tuple[str, ...]

    @property
    def complete(self) -> bool:
        return self.done == self.shards


def begin(store: Store, sources: Sequence[str], plan: Plan, model: str, files: ModelFiles, options: Options, version: str) -> None:
    """Writes down what a run is, or sees that it is what was begun there; else an Error that names what differs."""
    found = store.read_json(PLAN)
    if found is None:
        for folder in FOLDERS[options.format]:
            if store.sizes(folder):
                raise Error(f"{store}: found files in {folder} and no {PLAN}, expected a new folder or one that a batch began")
        store.write_json(
            PLAN,
            {
                "version": VERSION,
                "vitrine": version,
                "sources": [shown(source) for source in sources],
                "model": {
                    "name": shown(model),
                    "sha256": files.sha256,
                    "files": [{"name": shown(f.name), "size": f.size, "sha256": f.sha256} for f in files.files],
                },
                "options": options.to_json(),
                "ignored": plan.ignored,
                "shards": plan.to_json(),
            },
        )
        return
    if found.get("version") != VERSION:
        raise Error(f"{store}/{PLAN}: found the version {found.get('version')}, expected {VERSION}")
    _refuse(store, _other_model(found["model"], files) or _other_option(found["options"], options) or None)
    changed = difference(found["shards"], plan)
    _refuse(store, changed and f"other sources: {changed}")


def _refuse(store: Store, what: str | None) -> None:
    if what:
        raise Error(f"{store}: found {what}; expected what the run there was begun with, or another folder")


def _other_model(begun: Mapping[str, Any], files: ModelFiles) -> str | None:
    if begun["sha256"] == files.sha256:
        return None
    before = {file["name"]: file["sha256"] for file in begun["files"]}
    now = {shown(file.name): file.sha256 for file in files.files}
    name = next(name for name in [*now, *before] if now.get(name) != before.get(name))
    how = "more" if name not in before else "no more" if name not in now else "with other bytes"
    return f"another model than {begun['name']} was: {name} is there {how}"


def _other_option(begun: Mapping[str, Any], options: Options) -> str | None:
    for name, value in options.to_json().items():
        if begun.get(name) != value:
            return f"{name}={value!r} where it was {begun.get(name)!r}"
    return None


def finished(store: Store, options: Options) -> dict[int, dict[str, Any]]:
    """The records of shards that are done; one whose files are gone is dropped, and will be done again."""
    records: dict[int, dict[str, Any]] = {}
    there = {f"{folder}/{name}": size for folder in FOLDERS[options.format] for name, size in store.sizes(folder).items()}
    for record in store.read_all_json(RECORDS).values():
        number = int(record["shard"])
        if all(there.get(name) == file["size"] for name, file in record["files"].items()):
            records[number] = record
        else:
            store.remove(record_name(number))
    return records


def summarize(
    store: Store, plan: Plan, model: str, files: ModelFiles, options: Options, records: Iterable[Mapping[str, Any]]
) -> Manifest:
    """All records as one manifest, in the order of their shards."""
    records = sorted(records, key=lambda record: int(record["shard"]))
    failures = tuple(
        Failure(int(record["shard"]), one["source"], one["picture"], one["sentence"])
        for record in records
        for one in record["failures"]
    )
    return Manifest(
        out=store.url,
        model=model,
        model_sha256=files.sha256,
        options=options.to_json(),
        shards=len(plan.shards),
        done=len(records),
        pictures=sum(int(record["pictures"]) for record in records),
        rows=sum(int(record["rows"]) for record in records),
        dim=int(records[0]["dim"]) if records else None,
        failures=failures,
        ignored=plan.ignored,
        devices=tuple(sorted({str(record["device"]) for record in records})),
    )


def write_manifest(store: Store, manifest: Manifest, files: ModelFiles, records: Iterable[Mapping[str, Any]]) -> None:
    """The manifest as a file, for programs: with the model's files, and the hash of each result."""
    results = {name: file for record in records for name, file in record["files"].items()}
    store.write_json(
        MANIFEST,
        {
            "version": VERSION,
            "complete": manifest.complete,
            "model": {
                "name": shown(manifest.model),
                "sha256": files.sha256,
                "files": [{"name": shown(f.name), "size": f.size, "sha256": f.sha256} for f in files.files],
            },
            "options": dict(manifest.options),
            "counts": {
                "shards": manifest.shards,
                "done": manifest.done,
                "pictures": manifest.pictures,
                "rows": manifest.rows,
                "failures": len(manifest.failures),
                "ignored": manifest.ignored,
            },
            "dim": manifest.dim,
            "devices": list(manifest.devices),
            "failures": [
                {"shard": f.shard, "source": f.source, "picture": f.picture, "sentence": f.sentence} for f in manifest.failures
            ],
            "files": dict(sorted(results.items())),
        },
    )
