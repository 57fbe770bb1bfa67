"""What the tests share: the digit model and the tool itself, whose answers are what Python's have to equal."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import vitrine

TREE = Path(__file__).resolve().parents[2]
DIGITS = TREE / "assets" / "digits"
SAMPLES = TREE / "assets" / "samples"


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace["DIGITS"] = str(DIGITS)
    doctest_namespace["SAMPLES"] = str(SAMPLES)


@pytest.fixture(scope="session")
def digits() -> vitrine.Model:
    return vitrine.load(DIGITS)


@pytest.fixture(scope="session")
def samples() -> list[Path]:
    return sorted(SAMPLES.glob("*.png"))


@pytest.fixture(scope="session")
def tool() -> Callable[..., list[dict[str, Any]]]:
    """Runs the command-line tool and gives the JSON that it prints."""
    program = os.environ.get("VITRINE_PROGRAM")
    if not program:
        pytest.skip("VITRINE_PROGRAM doesn't say where the tool is")

    def run(*arguments: object) -> list[dict[str, Any]]:
        done = subprocess.run(
            [program, *map(str, arguments), "--json"], capture_output=True, text=True, check=True
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run
