"""What a model is, to the byte: the files that vitrine.load would read, and their hash."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from .. import _vitrine
from .._errors import ModelError
from .text import shown

# Weights, configurations and labels; what else lies beside them is no part of the model.
_ENDINGS = (".safetensors", ".json", ".txt")


@dataclass(frozen=True)
class ModelFile:
    """One file of a model."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class ModelFiles:
    """A model's files, and one hash of all their names and bytes."""

    files: tuple[ModelFile, ...]
    sha256: str


def find_model(model: str) -> Path:
    """The folder or file that a model's name means to vitrine.load."""
    return Path(_vitrine.find_model(model))


def _parts(path: Path) -> list[tuple[str, Path]]:
    """Name and path of each file of a model, a training's best one and an adapter's base included."""
    if path.is_file():
        index = path.name.endswith(".json")
        files = sorted(path.parent.glob("*.safetensors")) if index else []
        return [(file.name, file) for file in [path, *files]]
    parts = [
        (str(file.relative_to(path)), file)
        for folder in (path, path / "best")
        if folder.is_dir()
        for file in sorted(folder.iterdir())
        if file.is_file() and file.name.endswith(_ENDINGS)
    ]
    for name, file in list(parts):
        if os.path.basename(name) == "adapter_config.json":
            base = str(json.loads(file.read_bytes()).get("base_model_name_or_path") or "")
            beside = file.parent / base
            found = find_model(base) if Path(base).exists() or not beside.exists() else beside
            parts += [(f"base/{inner}", part) for inner, part in _parts(found)]
    return parts


def model_files(model: str) -> ModelFiles:
    """Reads all files of a model once."""
    path = find_model(model)
    if not path.exists():
        raise ModelError(f"{shown(model)}: found neither a file nor a folder of this name, expected a model's")
    parts = _parts(path)
    if not any(name.endswith(".safetensors") for name, _ in parts):
        raise ModelError(f"{shown(str(path))}: found no .safetensors file, expected a model's folder or file")
    files: list[ModelFile] = []
    whole = hashlib.sha256()
    for name, part in parts:
        with part.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        files.append(ModelFile(name, part.stat().st_size, digest))
        whole.update(f"{len(name)}:{name}:{digest}\n".encode("utf-8", "backslashreplace"))
    return ModelFiles(tuple(files), whole.hexdigest())
