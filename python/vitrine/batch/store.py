"""A folder, anywhere that fsspec reaches, in which a file is whole or isn't there."""

from __future__ import annotations

import json
import os
import uuid
from typing import Any

from .._errors import Error
from .requirements import require
from .sources import filesystem, is_local, url_of
from .text import shown

PRIVATE = "_vitrine"
_UNFINISHED = f"{PRIVATE}/unfinished"
# There an object appears when all of it has arrived, and renaming would copy it.
_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oci", "memory"}


class Store:
    """Where results go. Any process may open it again by its ``url``."""

    def __init__(self, url: str) -> None:
        self._fs, path = filesystem(url)
        self._path = path.rstrip("/")
        self._lock: int | None = None
        self._folders: set[str] = set()
        self.url = url_of(self._fs, self._path)

    def __str__(self) -> str:
        return shown(self.url)

    @property
    def is_local(self) -> bool:
        return is_local(self._fs)

    @property
    def is_of_one_process(self) -> bool:
        """Whether no other process sees what is written there."""
        return self.url.startswith("memory://")

    def _at(self, name: str) -> str:
        return f"{self._path}/{name}"

    def _make_folder(self, path: str) -> None:
        folder = path.rpartition("/")[0]
        if folder not in self._folders:
            self._fs.makedirs(folder, exist_ok=True)
            self._folders.add(folder)

    def write(self, name: str, data: bytes) -> None:
        """The whole file at once, in place of one of that name."""
        try:
            self._write(self._at(name), data)
        except FileNotFoundError:  # a folder that was there before
            self._folders.clear()
            self._write(self._at(name), data)

    def _write(self, path: str, data: bytes) -> None:
        self._make_folder(path)
        protocols = (self._fs.protocol,) if isinstance(self._fs.protocol, str) else self._fs.protocol
        if _OBJECT_STORES.intersection(protocols):
            self._fs.pipe_file(path, data)
            return
        unfinished = self._at(f"{_UNFINISHED}/{uuid.uuid4().hex}")
        self._make_folder(unfinished)
        if not self.is_local:
            self._fs.pipe_file(unfinished, data)
            self._fs.mv(unfinished, path)
            return
        with open(unfinished, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
        try:
            os.fsync(folder)  # the name, too
        finally:
            os.close(folder)

    def write_json(self, name: str, value: Any) -> None:
        self.write(name, (json.dumps(value, indent=1) + "\n").encode())

    def read_json(self, name: str) -> Any:
        """What a file says, None where there is none."""
        try:
            data = self._fs.cat_file(self._at(name))
        except FileNotFoundError:
            return None
        return self._parse(name, data)

    def _parse(self, name: str, data: bytes) -> Any:
        try:
            return json.loads(data)
        except ValueError as error:
            raise Error(f"{self}/{name}: {error}, expected what a batch wrote there") from error

    def read_all_json(self, folder: str) -> dict[str, Any]:
        """What all files of a folder say, by their names."""
        names = list(self.sizes(folder))
        found = self._fs.cat([self._at(f"{folder}/{name}") for name in names]) if names else {}
        if isinstance(found, bytes):
            found = {self._at(f"{folder}/{names[0]}"): found}
        return {path.rpartition("/")[2]: self._parse(path, data) for path, data in found.items()}

    def remove(self, name: str) -> None:
        self._fs.rm_file(self._at(name))

    def sizes(self, folder: str) -> dict[str, int]:
        """Name and size of each file of a folder."""
        try:
            listed = self._fs.ls(self._at(folder), detail=True, refresh=True)
        except TypeError:  # a file system that knows nothing to refresh
            listed = self._fs.ls(self._at(folder), detail=True)
        except FileNotFoundError:
            return {}
        return {
            str(one["name"]).rstrip("/").rpartition("/")[2]: int(one["size"] or 0)
            for one in listed
            if one["type"] != "directory"
        }

    def remove_unfinished(self) -> None:
        """What a crash left half-written."""
        if self._fs.exists(self._at(_UNFINISHED)):
            self._fs.rm(self._at(_UNFINISHED), recursive=True)
        self._folders.discard(self._at(_UNFINISHED))

    def lock(self) -> None:
        """Keeps a second run out, as long as this process lives; elsewhere than on this machine nothing can."""
        if not self.is_local:
            return
        fcntl = require("fcntl", "batch")
        path = self._at(f"{PRIVATE}/lock")
        self._make_folder(path)
        self._lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.unlock()
            raise Error(f"{self}: found another run at work in it, expected to be alone") from error

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
