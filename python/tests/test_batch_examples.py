"""The examples of vitrine.batch, as somebody would run them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import vitrine
from batch_data import picture, rows
from conftest import DIGITS, TREE


def run(name: str, *arguments: object) -> str:
    command = [sys.executable, str(TREE / "python" / "examples" / name), *map(str, arguments)]
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for i in range(6):
        (folder / f"{i}.jpg").write_bytes(picture(i % 5))  # the last is the first once more
    return folder


def test_embed_folder(folder: Path, tmp_path: Path) -> None:
    said = run("embed_folder.py", folder, tmp_path / "out", "--model", DIGITS, "--pairs", 2).splitlines()
    assert said[0] == "6 of 6 pictures, 64 numbers each" and len(said) == 3
    likeness, first, second = said[1].split()
    assert {Path(first).name, Path(second).name} == {"0.jpg", "5.jpg"} and abs(float(likeness) - 1) < 0.005


def test_million_pictures_ray(folder: Path, tmp_path: Path, digits: vitrine.Model) -> None:
    for package in ("ray", "pandas"):
        pytest.importorskip(package, reason=f"found no {package}, which this example needs")
    pq = pytest.importorskip("pyarrow.parquet")
    said = run("million_pictures_ray.py", folder, tmp_path / "out", "--model", DIGITS, "--batch-size", 8)
    expected = digits.embed(sorted(folder.glob("*")))
    assert said == "6 of 6 pictures in 1 shards\n"
    assert rows(tmp_path / "out").tobytes() == expected.astype(np.float16).tobytes()
    said = run("million_pictures_ray.py", folder, tmp_path / "table", "--model", DIGITS, "--pipeline")
    assert said == "6 pictures\n"
    table = pq.read_table(tmp_path / "table").sort_by("path")
    assert set(table["error"].to_pylist()) == {""} and "bytes" not in table.column_names
    found = np.array([np.asarray(row).reshape(-1) for row in table["embedding"].to_pylist()], np.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)  # other batches
