"""Embeddings of a million pictures, or of ten: on this machine, Dask or Ray.

>>> import tempfile, vitrine.batch
>>> with tempfile.TemporaryDirectory() as out:
...     vitrine.batch.embed(SAMPLES + "/*.png", out, model=DIGITS, shard_size=4).shards
3
"""

from __future__ import annotations

from .embedding import Progress, embed
from .manifest import Failure, Manifest

__all__ = ["Failure", "Manifest", "Progress", "embed"]
