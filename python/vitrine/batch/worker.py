"""A model on a device, and the shards that it does: what every engine runs, once a process or device."""

from __future__ import annotations

import hashlib
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import vitrine
from numpy.typing import NDArray

from .._errors import DeviceError, Error, ModelError
from .devices import device_for_worker, find_device
from .job import Done, Failed, Job, Outcome, record_name
from .model_files import model_files
from .models import open_model
from .plan import Shard
from .results import as_stored, encoded, file_names
from .shard import Unreadable, read_shard
from .store import Store
from .text import shown

_PICTURE = "picture "  # what bytes are called in an ImageError: by their place in the call


class Stopped(Exception):
    """The shard was given up because the run ends."""


def _sentence(name: str, error: vitrine.ImageError) -> str:
    """An error of bytes names them by a number that says nothing here."""
    said = str(error)
    if error.path is None and said.startswith(_PICTURE):
        said = f"{name}{said[len(_PICTURE) :].lstrip('0123456789')}"
    return shown(said)


class Worker:
    """Opens a job's model, which has to be the one that the job was begun with."""

    def __init__(self, job: Job, device: int | str | None = None) -> None:
        found = model_files(job.model).sha256
        if found != job.model_sha256:
            raise ModelError(
                f"{shown(job.model)}: found a model of the hash {found[:12]} where this worker runs, "
                f"expected {job.model_sha256[:12]}, that of the run"
            )
        self._job = job
        self._store = Store(job.out)
        self.model = open_model(job.names, device)

    def do(self, shard: Shard, stopped: Callable[[], bool] = lambda: False) -> Outcome:
        """Writes a shard's rows and then its record, unless that is there already."""
        try:
            before = self._store.read_json(record_name(shard.number))
            if before is not None:
                return Done(shard.number, before, fresh=False)
            return Done(shard.number, self._write(shard, stopped), fresh=True)
        except Stopped:
            return Failed(shard.number, "the run was stopped")
        except DeviceError as error:
            return Failed(shard.number, str(error), error)
        except Error as error:
            return Failed(shard.number, str(error))
        except Exception as error:  # whatever a file system throws: the other shards go on
            return Failed(shard.number, f"{type(error).__name__}: {error}")

    def _write(self, shard: Shard, stopped: Callable[[], bool]) -> dict[str, Any]:
        begun = time.perf_counter()
        options = self._job.options
        pictures: list[tuple[str, str]] = []  # name and source of those that the model is shown
        failures: list[tuple[int, Unreadable]] = []  # with the place where each would stand

        def items() -> Iterator[str | bytes]:
            for one in read_shard(shard, options.column):
                if stopped():
                    raise Stopped
                if isinstance(one, Unreadable):
                    failures.append((len(pictures), one))
                else:
                    pictures.append((one.name, one.source))
                    yield one.item

        parts: list[NDArray[np.float32]] = []
        kept: list[tuple[str, str]] = []
        for part in self.model.stream(items(), batch_size=options.batch_size, exif=options.exif):
            parts.append(part.rows)
            kept += [pictures[place] for place in part.indices]
            for place, error in part.errors.items():
                name, source = pictures[place]
                failures.append((place, Unreadable(name, source, _sentence(name, error))))
        rows = np.concatenate(parts) if parts else self.model.embed([])
        failures.sort(key=lambda failure: failure[0])
        named = sum(one.name is not None for _, one in failures)
        names = [name for name, _ in kept]
        stored = as_stored(rows, names, options.dtype, options.normalize)
        files = encoded(options.format, stored, names, [source for _, source in kept])
        written: dict[str, dict[str, Any]] = {}
        for file, data in zip(file_names(options.format, shard.number, self._job.shards), files, strict=True):
            self._store.write(file, data)
            written[file] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        record = {
            "shard": shard.number,
            "pictures": len(kept) + named,
            "rows": len(rows),
            "dim": int(rows.shape[1]),
            "failures": [
                {"picture": one.name and shown(one.name), "source": shown(one.source), "sentence": one.sentence}
                for _, one in failures
            ],
            "files": written,
            "device": self.model.device,
            "seconds": round(time.perf_counter() - begun, 3),
        }
        # Last: with it the shard is done.
        self._store.write_json(record_name(shard.number), record)
        return record


_workers: dict[Job, tuple[Worker | Error, tuple[str, ...]]] = {}
_opening = threading.Lock()


@contextmanager
def _collected() -> Iterator[list[str]]:
    """Warnings, once each, instead of lines that nobody sees in a process somewhere."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as odd:
        warnings.simplefilter("always", UserWarning)
        yield said
    said += dict.fromkeys(str(one.message) for one in odd if issubclass(one.category, UserWarning))


def _opened(job: Job, device: str | None) -> tuple[Worker | Error, tuple[str, ...]]:
    with _opening:
        if job not in _workers:
            found: Worker | Error
            with _collected() as odd:
                try:
                    found = Worker(job, device_for_worker(job.devices) if device is None else find_device(device))
                except Error as error:
                    found = error
            _workers[job] = found, tuple(odd)
        return _workers[job]


def open_worker(job: Job, device: str | None = None) -> Error | None:
    """Opens this process' model for a job, once; what is wrong where that doesn't work, now and later."""
    found, _ = _opened(job, device)
    return found if isinstance(found, Error) else None


def forget(job: Job) -> None:
    """Gives up the model of a job that has ended."""
    with _opening:
        _workers.pop(job, None)


def do_shard(job: Job, shard: Shard) -> Outcome:
    """A shard in a process of its own, whose warnings travel with the outcome."""
    worker, odd = _opened(job, None)
    if isinstance(worker, Error):
        return Failed(shard.number, str(worker), worker)
    with _collected() as more:
        outcome = worker.do(shard)
    return replace(outcome, warnings=(*odd, *more)) if isinstance(outcome, Done) else outcome
