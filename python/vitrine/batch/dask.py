"""A model in Dask's own collections: bags, arrays and dataframes of pictures to embeddings.

Tasks carry names; each worker opens the model once, at its first partition. Where workers have resources,
``with dask.annotate(resources={"GPU": 1}):`` around the computation sends the work to them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import vitrine
from numpy.typing import NDArray

from .._errors import Error
from .job import Job, ModelNames
from .models import embeddings, opened
from .requirements import require
from .worker import forget, open_worker

try:
    from distributed import WorkerPlugin
except ModuleNotFoundError:  # bags, arrays and dataframes run without it
    WorkerPlugin = object


class ModelPlugin(WorkerPlugin):
    """Opens a run's model when a worker starts, and gives it up when the run ends."""

    idempotent = True

    def __init__(self, job: Job, run_id: str) -> None:
        self.name = f"vitrine-{run_id}"
        self._job = job

    async def setup(self, worker: Any) -> None:
        # In a thread, so that the worker's event loop goes on. What is wrong each task will say.
        await asyncio.to_thread(open_worker, self._job)

    def teardown(self, worker: Any) -> None:
        forget(self._job)


@dataclass(frozen=True)
class _Call:
    """What a task carries besides its pictures."""

    names: ModelNames
    device: int | str | None
    batch_size: int
    exif: bool | None

    def model(self) -> vitrine.Model:
        return opened(self.names, self.device)

    def rows(self, pictures: Sequence[Any]) -> vitrine.Embeddings:
        return embeddings(self.model(), pictures, self.batch_size, self.exif)


def _call(
    model: str, device: int | str | None, batch_size: int, exif: bool | None, precision: str, options: dict[str, Any]
) -> _Call:
    return _Call(ModelNames(str(model), precision, **options), device, batch_size, exif)


def _bag_rows(pictures: Iterable[Any], call: _Call) -> list[NDArray[np.float32] | vitrine.ImageError]:
    found = call.rows(list(pictures))
    rows = {int(index): found.rows[row] for row, index in enumerate(found.indices)}
    return [found.errors[i] if i in found.errors else rows[i] for i in range(len(rows) + len(found.errors))]


def embed_bag(
    bag: Any,
    model: str,
    *,
    device: int | str | None = None,
    batch_size: int = 8,
    exif: bool | None = None,
    precision: str = "auto",
    **options: Any,
) -> Any:
    """A bag of pictures, as vitrine.Model.embed takes them, to one of rows; an ImageError where one can't be read."""
    return bag.map_partitions(_bag_rows, _call(model, device, batch_size, exif, precision, options))


def _array_rows(block: NDArray[Any], call: _Call) -> NDArray[np.float32]:
    return call.model().embed(block, batch_size=call.batch_size)


def embed_array(
    array: Any,
    model: str,
    *,
    dim: int | None = None,
    device: int | str | None = None,
    batch_size: int = 8,
    precision: str = "auto",
    **options: Any,
) -> Any:
    """An array of pictures, ``[N, H, W, C]`` or ``[N, C, H, W]``, to one of embeddings, ``[N, D]``.

    ``dim`` is D; left out, the model is opened here to see it.
    """
    if array.ndim != 4:
        raise Error(f"found an array of {array.ndim} dimensions, expected [N, H, W, C] or [N, C, H, W]")
    call = _call(model, device, batch_size, False, precision, options)
    if dim is None:
        dim = call.model().embed([]).shape[1]
    whole = array.rechunk({axis: -1 for axis in range(1, 4)})
    return whole.map_blocks(
        _array_rows,
        call,
        drop_axis=[1, 2, 3],
        new_axis=[1],
        chunks=(whole.chunks[0], (dim,)),
        dtype=np.float32,
        meta=np.empty((0, 0), np.float32),
    )


def _frame_rows(frame: Any, column: str, output: str, call: _Call) -> Any:
    arrow, pandas = require("pyarrow", "batch"), require("pandas", "dask")
    there = frame[column].notna().tolist()
    found = call.rows([value if is_there else None for value, is_there in zip(frame[column], there, strict=True)])
    rows: list[Any] = [None] * len(frame)
    errors: list[str | None] = [None] * len(frame)
    for row, index in enumerate(found.indices):
        rows[int(index)] = found.rows[row]
    for place, error in found.errors.items():
        errors[place] = str(error)
    kind = pandas.ArrowDtype(arrow.list_(arrow.float32()))
    text = pandas.ArrowDtype(arrow.string())
    return frame.assign(
        **{
            output: pandas.Series(pandas.arrays.ArrowExtensionArray(arrow.array(rows, kind.pyarrow_dtype)), frame.index),
            "error": pandas.Series(pandas.arrays.ArrowExtensionArray(arrow.array(errors, text.pyarrow_dtype)), frame.index),
        }
    )


def embed_dataframe(
    frame: Any,
    column: str,
    model: str,
    *,
    output: str = "embedding",
    device: int | str | None = None,
    batch_size: int = 8,
    exif: bool | None = None,
    precision: str = "auto",
    **options: Any,
) -> Any:
    """A dataframe with a column of paths or encoded pictures, and two more: ``output``, lists of float32, and ``error``.

    Each row has one of the two; the other is null.
    """
    arrow, pandas = require("pyarrow", "batch"), require("pandas", "dask")
    meta = frame._meta.assign(
        **{
            output: pandas.Series([], dtype=pandas.ArrowDtype(arrow.list_(arrow.float32()))),
            "error": pandas.Series([], dtype=pandas.ArrowDtype(arrow.string())),
        }
    )
    return frame.map_partitions(
        _frame_rows, column, output, _call(model, device, batch_size, exif, precision, options), meta=meta
    )
