"""This process: a thread for each device, which takes one shard after the other."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence

from ..._errors import Error
from ..devices import find_device
from ..job import Failed, Job, Outcome
from ..plan import Shard
from ..worker import Worker
from . import Setting


def run(job: Job, shards: Sequence[Shard], setting: Setting) -> Iterator[Outcome]:
    """Gives shards' outcomes as they end; when the caller stops asking, so do the devices."""
    if setting.workers is not None or setting.address is not None or setting.client is not None or setting.resources:
        raise Error("engine 'local': found workers, address, client or resources, expected devices= for more than one")
    devices: Sequence[str | None] = job.devices or (None,)
    workers = [Worker(job, None if name is None else find_device(name)) for name in devices]
    waiting: queue.SimpleQueue[Shard] = queue.SimpleQueue()
    for shard in shards:
        waiting.put(shard)
    outcomes: queue.SimpleQueue[Outcome | BaseException] = queue.SimpleQueue()
    stop = threading.Event()

    def work(worker: Worker) -> None:
        while not stop.is_set():
            try:
                outcomes.put(worker.do(waiting.get_nowait(), stop.is_set))
            except queue.Empty:
                return
            except BaseException as error:
                outcomes.put(error)
                return

    threads = [threading.Thread(target=work, args=[worker], daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        for _ in shards:
            outcome = outcomes.get()
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome
            if isinstance(outcome, Failed) and outcome.fatal:
                return
    finally:
        stop.set()
        for thread in threads:
            thread.join()
