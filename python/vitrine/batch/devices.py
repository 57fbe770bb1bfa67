"""Which device a worker takes: no two the same while there are others."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence

import vitrine

from .._errors import DeviceError
from .requirements import require

_SEATS = 64  # workers that share a device at most
_held: list[int] = []


def find_device(name: str) -> int | str:
    """What vitrine.load takes for a device's UUID, 32 digits; another name stays as it is."""
    if not re.fullmatch(r"[0-9a-f]{32}", name):
        return name
    for device in vitrine.devices():
        if device.uuid.hex() == name:
            return device.index
    raise DeviceError(f"found no device with the UUID {name}, expected one")


def worthwhile() -> list[vitrine.Device]:
    """The devices that workers of this machine are spread over: its GPUs, else the one that is chosen."""
    devices = vitrine.devices()
    gpus = [device for device in devices if device.kind in ("discrete", "integrated", "virtual")]
    if os.environ.get("VITRINE_DEVICE") or not gpus:
        return [device for device in devices if device.chosen]
    # An integrated one beside cards of its own would be the last to be done.
    cards = [device for device in gpus if device.kind == "discrete"]
    return cards or gpus


def claim(names: Sequence[str]) -> str:
    """The first of ``names`` that the fewest other processes of this machine have claimed, until this one ends.

    Locks on files keep the count; the system gives them up for a process however it dies.
    """
    fcntl = require("fcntl", "batch")
    folder = os.path.join(tempfile.gettempdir(), f"vitrine-devices-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    for seat in range(_SEATS):
        for name in names:
            file = os.open(os.path.join(folder, f"{re.sub(r'[^0-9A-Za-z]', '_', name)}-{seat}"), os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                continue
            _held.append(file)
            return name
    raise DeviceError(f"found {_SEATS} workers on each device of this machine already, expected fewer")


def device_for_worker(names: Sequence[str]) -> int | str | None:
    """The device that this process' worker takes: of ``names``, else of those that are worthwhile."""
    if not names:
        names = [device.uuid.hex() for device in worthwhile()]
    return find_device(claim(names)) if names else None
