"""A million pictures with Ray: as shards that survive anything, or as a step of a pipeline of one's own.

    python million_pictures_ray.py "s3://bucket/{00000..00999}.tar" s3://bucket/out --model facebook/dinov2-base
    python million_pictures_ray.py pictures/ out/ --model MODEL --pipeline

Each node of the cluster says once which devices it has:

    ray start --address=HEAD:6379 --resources="$(python -m vitrine.batch.ray)"

Without --address Ray is started on this machine.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import ray
import vitrine.batch
from vitrine.batch.ray import Embedder, node_resources


def shards(options: argparse.Namespace) -> None:
    """One call: shards are planned, done once, and gone on with after whatever crash."""

    def tell(progress: vitrine.batch.Progress) -> None:
        print(f"{progress.done} of {progress.shards} shards", file=sys.stderr)

    done = vitrine.batch.embed(
        options.pictures,
        options.out,
        model=options.model,
        engine="ray",
        workers=options.actors,
        address=options.address,
        batch_size=options.batch_size,
        progress=tell,
    )
    print(f"{done.rows} of {done.pictures} pictures in {done.shards} shards")


def pipeline(options: argparse.Namespace) -> None:
    """Ray Data reads, the model is one step of several, and Ray Data writes."""
    if options.address:
        ray.init(address=options.address)
    else:
        ray.init(address="local", resources=node_resources(), include_dashboard=False)
    pictures = ray.data.read_binary_files(options.pictures, include_paths=True)
    embedded = pictures.map_batches(
        Embedder,
        fn_constructor_kwargs={"model": options.model, "column": "bytes", "batch_size": options.batch_size},
        batch_size=4 * options.batch_size,
        resources={"vulkan": 1},
        compute=ray.data.ActorPoolStrategy(size=options.actors or int(ray.cluster_resources()["vulkan"])),
    )

    def without_pictures(batch: dict[str, Any]) -> dict[str, Any]:
        return {name: column for name, column in batch.items() if name != "bytes"}

    embedded.map_batches(without_pictures).write_parquet(options.out)
    print(f"{ray.data.read_parquet(options.out).count()} pictures")
    ray.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pictures", nargs="+")
    parser.add_argument("out")
    parser.add_argument("--model", required=True)
    parser.add_argument("--actors", type=int, help="how many (default: one for each device)")
    parser.add_argument("--address", help="the cluster, else one is started here")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--pipeline", action="store_true", help="as a step of a pipeline of Ray Data")
    options = parser.parse_args()
    (pipeline if options.pipeline else shards)(options)


if __name__ == "__main__":
    main()
