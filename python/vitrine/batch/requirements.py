"""Packages that only a part of the work needs."""

from __future__ import annotations

import importlib
from typing import Any

from .._errors import Error


def require(name: str, extra: str) -> Any:
    """The module ``name``, or one sentence that says how it is installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != name.partition(".")[0]:
            raise
        package = name.partition(".")[0]
        raise Error(f"found no package {package}, expected it (pip install 'vitrine[{extra}]')") from error
