"""Ray: an actor for each device, which takes one shard after the other."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..._errors import Error
from ..job import Done, Failed, Job, Outcome
from ..plan import Shard
from ..ray import PREFIX, node_resources
from ..requirements import require
from ..worker import do_shard, open_worker
from . import ATTEMPTS, Setting

_AHEAD = 2  # shards that an actor knows of, so that it never waits for the next


class ShardActor:
    """Opens the model once, on the device that it was given."""

    def __init__(self, job: Job, device: str | None) -> None:
        self._job, self._device = job, device

    def ready(self) -> Error | None:
        """Opens the model; what is wrong where that doesn't work."""
        return open_worker(self._job, self._device)

    def do(self, shard: Shard) -> Outcome:
        return do_shard(self._job, shard)


@dataclass
class _Lane:
    """A place for an actor: which device, and what it has in hand."""

    device: str | None
    share: float
    actor: Any = None
    opening: Any = None  # the answer of ready(), as long as it isn't there
    shards: dict[Any, Shard] = field(default_factory=dict)
    crashes: int = 0  # since it last did a shard


@contextmanager
def _ray(setting: Setting, job: Job) -> Iterator[Any]:
    """Ray as it runs already, that of a cluster, or one of this machine for the time being."""
    ray = require("ray", "ray")
    if ray.is_initialized():
        yield ray
        return
    if setting.address is not None:
        ray.init(address=setting.address, log_to_driver=False)
    else:
        workers = setting.workers or max(1, len(job.devices))
        cpus = max(workers, os.cpu_count() or 1)
        # "local": without a word it would join whichever Ray was started here last.
        ray.init(
            address="local", num_cpus=cpus, resources=node_resources(), include_dashboard=False, log_to_driver=False
        )
    try:
        yield ray
    finally:
        ray.shutdown()


def _lanes(ray: Any, job: Job, setting: Setting, shards: int) -> list[_Lane]:
    """One for each Vulkan device that nodes have told of, or so many as were asked for, spread over them."""
    # Software devices of several nodes have one UUID: as many lanes as there are of it.
    amounts = {name.removeprefix(PREFIX): int(n) for name, n in ray.cluster_resources().items() if name.startswith(PREFIX)}
    missing = [device for device in job.devices if device not in amounts]
    if missing:
        known = ", ".join(sorted(amounts)) or "none"
        raise Error(f"devices: found {', '.join(missing)}, expected UUIDs that Ray's nodes have told of: {known}")
    there = [name for name in job.devices or sorted(amounts) for _ in range(amounts[name])]
    if not there:
        # Nodes that were started without them: each actor finds its device itself.
        return [_Lane(None, 0) for _ in range(min(setting.workers or 1, shards))]
    count = min(setting.workers or len(there), shards)
    sharing = -(-count // len(there))
    share = math.floor(1e4 / sharing) / 1e4  # in Ray's smallest parts
    return [_Lane(there[i % len(there)], share) for i in range(count)]


def run(job: Job, shards: Sequence[Shard], setting: Setting) -> Iterator[Outcome]:
    """A shard whose actor dies is done again by whichever is free; names travel, models and pictures don't."""
    if setting.client is not None:
        raise Error("engine 'ray': found a client, expected address or none")
    with _ray(setting, job) as ray:
        loop = _Loop(ray, job, setting, shards)
        try:
            yield from loop.outcomes()
        finally:
            loop.end()


class _Loop:
    """Gives shards to actors and takes their outcomes; starts actors anew that died."""

    def __init__(self, ray: Any, job: Job, setting: Setting, shards: Sequence[Shard]) -> None:
        self._ray, self._job, self._setting = ray, job, setting
        self._actor = ray.remote(ShardActor)
        self._waiting = deque(shards)
        self._attempts: dict[int, int] = {}
        self._lanes = _lanes(ray, job, setting, len(shards))
        for lane in self._lanes:
            self._start(lane)

    def _start(self, lane: _Lane) -> None:
        resources = dict(self._setting.resources)
        if lane.device is not None:
            resources[PREFIX + lane.device] = lane.share
        lane.actor = self._actor.options(num_cpus=1, max_restarts=0, resources=resources).remote(self._job, lane.device)
        lane.opening = lane.actor.ready.remote()

    def _hand_out(self) -> None:
        for _ in range(_AHEAD):  # one each before anybody has two
            for lane in self._lanes:
                if lane.opening is None and len(lane.shards) < _AHEAD and self._waiting:
                    shard = self._waiting.popleft()
                    self._attempts[shard.number] = self._attempts.get(shard.number, 0) + 1
                    lane.shards[lane.actor.do.remote(shard)] = shard

    def _died(self, lane: _Lane) -> Iterator[Outcome]:
        """Its shards go back, and another actor takes its place, unless there is no living there."""
        for shard in lane.shards.values():
            if self._attempts[shard.number] < ATTEMPTS:
                self._waiting.appendleft(shard)
            else:
                yield Failed(shard.number, f"found its actor dead {ATTEMPTS} times, expected it to live")
        lane.shards.clear()
        lane.crashes += 1
        self._ray.kill(lane.actor)
        if lane.crashes < ATTEMPTS:
            self._start(lane)
        else:
            self._lanes.remove(lane)

    def outcomes(self) -> Iterator[Outcome]:
        while self._waiting or any(lane.shards for lane in self._lanes):
            if not self._lanes:
                raise Error(f"engine 'ray': found every actor dead {ATTEMPTS} times in a row, expected one to live")
            self._hand_out()
            by_answer = {answer: lane for lane in self._lanes for answer in [*lane.shards, lane.opening] if answer is not None}
            first, others = self._ray.wait(list(by_answer), num_returns=1)
            # And whatever else is there: asking costs more the more actors there are.
            more = self._ray.wait(others, num_returns=len(others), timeout=0)[0] if others else []
            for answer in [*first, *more]:
                lane = by_answer[answer]
                if answer is not lane.opening and answer not in lane.shards:
                    continue  # its actor has died meanwhile
                for outcome in self._take(answer, lane):
                    yield outcome
                    if isinstance(outcome, Failed) and outcome.fatal:
                        return

    def _take(self, answer: Any, lane: _Lane) -> Iterator[Outcome]:
        ray = self._ray
        try:
            said = ray.get(answer)
        except ray.exceptions.RayActorError:
            yield from self._died(lane)
            return
        except ray.exceptions.RayError as error:
            if answer is lane.opening:
                raise Error(f"engine 'ray': {_first_line(error)}") from error
            said = Failed(lane.shards[answer].number, _first_line(error))
        if answer is lane.opening:
            lane.opening = None
            if said is not None:
                raise said
            return
        lane.crashes = 0
        del lane.shards[answer]
        outcome: Done | Failed = said
        yield outcome

    def end(self) -> None:
        for lane in self._lanes:
            self._ray.kill(lane.actor)


def _first_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else ''}"
