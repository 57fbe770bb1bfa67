"""The command line: vitrine-batch."""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Sequence

from .._errors import DeviceError, Error, ModelError
from .embedding import Progress, embed
from .engines import NAMES
from .text import counted

_SHOWN = 10  # failures on the terminal; the manifest has all


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vitrine-batch",
        description="Embeds pictures into a folder, shard by shard. The same command again goes on where it ended.",
        epilog="Ends with status 0 when every shard is done, 1 when some aren't, 2 for a wrong use, 3 without a device, "
        "4 for a bad model. Pictures that can't be read are named in OUT/manifest.json, and are no failure.",
    )
    add = parser.add_argument
    add("sources", nargs="+", metavar="SOURCE", help="folders, globs, {000..127}, pictures, tars, Parquet files; s3:// and others, too")
    add("--out", required=True, metavar="OUT", help="the folder of the results")
    add("--model", required=True, metavar="MODEL", help="a folder, a .safetensors file, or a name in Hugging Face's cache")
    add("--engine", choices=NAMES, default="local", help="what runs it (default: local)")
    add("--workers", type=int, metavar="N", help="processes that dask or ray start here")
    add("--address", metavar="ADDRESS", help="the cluster of dask or ray, instead of starting one")
    add("--resource", action="append", default=[], metavar="NAME=AMOUNT", help="what a worker must have for a shard")
    add("--device", action="append", default=[], metavar="DEVICE", help="a device's number, name or UUID; several times for several")
    add("--shard-size", type=int, default=1000, metavar="N", help="loose pictures in a shard (default: 1000)")
    add("--batch-size", type=int, default=8, metavar="N", help="pictures at once on the device (default: 8)")
    add("--format", choices=("npy", "parquet"), default="npy", help="clip-retrieval's npy and metadata, or parquet alone")
    add("--dtype", choices=("float16", "float32"), default="float16", help="of the numbers that are written")
    add("--normalize", action="store_true", help="rows of length 1")
    add("--column", metavar="NAME", help="the pictures' column in Parquet files that have several")
    add("--exif", action=argparse.BooleanOptionalAction, help="turn pictures as their EXIF says, or not; else as the model's library")
    add("--precision", choices=("auto", "f32", "f16"), default="auto", help="of the computation")
    add("--image-size", type=int, metavar="PIXELS", help="of other images than the model's own")
    add("--profile", metavar="NAME", help="another preprocessing")
    add("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides", help="a field of the configuration")
    add("--json", action="store_true", help="print what it came to as a JSON object")
    return parser


def _resources(named: Sequence[str]) -> dict[str, float]:
    resources: dict[str, float] = {}
    for one in named:
        name, _, amount = one.partition("=")
        try:
            resources[name] = float(amount)
        except ValueError:
            raise SystemExit(f"vitrine-batch: --resource: found {one!r}, expected NAME=AMOUNT") from None
    return resources


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class _Teller:
    """Tells of progress: over and over on a terminal, else a line each half minute."""

    def __init__(self) -> None:
        self._begun = self._told = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        rate = progress.pictures / max(now - self._begun, 1e-9)
        failed = f", {counted(progress.failed, 'shard')} failed" if progress.failed else ""
        line = f"{progress.done:,} of {counted(progress.shards, 'shard')}, {rate:,.1f} pictures a second{failed}"
        if sys.stderr.isatty():
            end = "\n" if progress.done + progress.failed == progress.shards else ""
            print(f"\r\x1b[K{line}", end=end, file=sys.stderr, flush=True)
        elif now - self._told > 30:
            self._told = now
            _say(line)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; its exit status."""
    options = _parser().parse_args(arguments)
    warnings.showwarning = lambda message, *_, **__: _say(f"warning: {message}")
    try:
        done = embed(
            options.sources,
            options.out,
            model=options.model,
            engine=options.engine,
            workers=options.workers,
            devices=options.device,
            address=options.address,
            resources=_resources(options.resource),
            shard_size=options.shard_size,
            batch_size=options.batch_size,
            format=options.format,
            dtype=options.dtype,
            normalize=options.normalize,
            column=options.column,
            exif=options.exif,
            precision=options.precision,
            image_size=options.image_size,
            profile=options.profile,
            overrides=options.overrides,
            progress=_Teller(),
        )
    except (Error, OSError) as error:
        _say(f"vitrine-batch: {error}")
        return 3 if isinstance(error, DeviceError) else 4 if isinstance(error, ModelError) else 1
    except KeyboardInterrupt:
        _say("vitrine-batch: stopped; the same command goes on from here")
        return 130
    for failure in done.failures[:_SHOWN]:
        _say(failure.sentence)
    if len(done.failures) > _SHOWN:
        _say(f"and {len(done.failures) - _SHOWN:,} more, in {done.out}/manifest.json")
    if options.json:
        print(
            json.dumps(
                {
                    "out": done.out,
                    "shards": done.shards,
                    "pictures": done.pictures,
                    "rows": done.rows,
                    "dim": done.dim,
                    "failures": len(done.failures),
                    "ignored": done.ignored,
                }
            )
        )
    else:
        passed = f"; passed over {counted(done.ignored, 'file')} with other names" if done.ignored else ""
        print(f"{done.out}: {counted(done.rows, 'row')} of {counted(done.pictures, 'picture')} in {counted(done.shards, 'shard')}{passed}")
    return 0
