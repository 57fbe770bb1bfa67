"""Dask: a task for each shard, a model for each worker."""

from __future__ import annotations

import queue
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..._errors import Error
from ..devices import worthwhile
from ..job import Done, Failed, Job, Outcome
from ..plan import Shard
from ..requirements import require
from ..worker import do_shard
from . import ATTEMPTS, Setting

_AHEAD = 2  # shards of each thread that a worker knows of, so that it never waits for the next
_LOST = 300  # seconds that workers of this machine may need to come back
_LOOK = 10


@contextmanager
def _client(job: Job, setting: Setting, shards: int) -> Iterator[tuple[Any, bool]]:
    """Whoever's client was given, that of a cluster elsewhere, or processes of this machine; whether its workers are ours alone."""
    distributed, config = require("distributed", "dask"), require("dask.config", "dask")
    if setting.client is not None:
        yield setting.client, False
    elif setting.address is not None:
        with distributed.Client(setting.address) as client:
            yield client, False
    else:
        count = setting.workers or len(job.devices) or max(1, len(worthwhile()))
        with (
            # A worker that takes longer than that to come back would be given up; a busy machine needs more than 15 s.
            config.set({"distributed.deploy.lost-worker-timeout": _LOST}),
            distributed.LocalCluster(
                n_workers=min(count, shards),
                threads_per_worker=1,
                processes=True,
                dashboard_address=":0",  # whichever port is free
                resources=dict(setting.resources) or None,
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client, True


class _Room:
    """How many shards may be on their way; counted anew as workers come and go."""

    def __init__(self, client: Any) -> None:
        self._client, self._room, self._asked = client, 0, 0.0

    def now(self) -> int:
        if not self._room or time.monotonic() - self._asked > 5:
            self._room = _AHEAD * sum(self._client.nthreads().values())
            self._asked = time.monotonic()
        return max(self._room, _AHEAD)


def _next(ended: queue.SimpleQueue[Any], client: Any, is_own: bool) -> Any:
    """The next task that has ended. A cluster elsewhere may get workers at any time; here none will come by itself."""
    without = 0.0
    while True:
        try:
            return ended.get(timeout=_LOOK)
        except queue.Empty:
            without = without + _LOOK if is_own and not client.nthreads() else 0
            if without > _LOST:
                raise Error(f"engine 'dask': found no worker for {_LOST} seconds, expected those that were started") from None


def _outcome(future: Any, shard: Shard) -> Outcome | None:
    """What a task came to; None where it was lost with its workers."""
    distributed = require("distributed", "dask")
    if future.status in ("cancelled", "lost"):
        return None
    try:
        outcome: Done | Failed = future.result()  # which is computed again if a worker took it along
    except distributed.KilledWorker:
        return None
    except Exception as error:
        return Failed(shard.number, f"{type(error).__name__}: {error}")
    return outcome


def run(job: Job, shards: Sequence[Shard], setting: Setting) -> Iterator[Outcome]:
    """A shard whose worker dies is done again elsewhere; names travel, models and pictures don't."""
    plugin_of = require("vitrine.batch.dask", "dask").ModelPlugin
    run_id = uuid.uuid4().hex[:12]
    attempts: dict[int, int] = {}
    waiting = iter(shards)
    on_their_way: dict[Any, Shard] = {}
    ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
    with _client(job, setting, len(shards)) as (client, is_own):
        plugin = plugin_of(job, run_id)
        client.register_plugin(plugin)

        def submit(shard: Shard) -> None:
            attempts[shard.number] = attempts.get(shard.number, 0) + 1
            future = client.submit(
                do_shard,
                job,
                shard,
                key=f"vitrine-shard-{run_id}-{shard.number}-{attempts[shard.number]}",
                pure=False,
                resources=dict(setting.resources) or None,
            )
            on_their_way[future] = shard
            future.add_done_callback(ended.put)

        room = _Room(client)
        try:
            while True:
                while len(on_their_way) < room.now() and (shard := next(waiting, None)) is not None:
                    submit(shard)
                if not on_their_way:
                    return
                future = _next(ended, client, is_own)
                shard = on_their_way.pop(future)
                outcome = _outcome(future, shard)
                if outcome is not None:
                    yield outcome
                    if isinstance(outcome, Failed) and outcome.fatal:
                        return
                elif attempts[shard.number] < ATTEMPTS:
                    submit(shard)
                else:
                    yield Failed(shard.number, f"found its worker dead {ATTEMPTS} times, expected it to live")
        finally:
            client.cancel(list(on_their_way), force=True)
            client.unregister_worker_plugin(plugin.name)
