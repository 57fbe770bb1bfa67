"""Dask and Ray give the bytes of one process, and lose nothing to workers that die."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vitrine
from batch_data import failures, picture, results, rows, write_tar, write_tars
from conftest import DIGITS

import vitrine.batch

SHARDS, PICTURES = 12, 6


@pytest.fixture(scope="module")
def tars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shards that take a while, two of which are broken."""
    folder = tmp_path_factory.mktemp("tars")
    write_tars(folder, SHARDS, PICTURES, size=400)
    broken = (folder / "00004.tar").read_bytes()
    (folder / "00004.tar").write_bytes(broken[: len(broken) // 2])
    write_tar(folder / "00007.tar", [("a.jpg", picture(1)), ("cut.jpg", picture(2)[:300]), ("empty.jpg", b"")])
    return folder


@pytest.fixture(scope="module")
def whole(tars: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, vitrine.batch.Manifest]:
    out = tmp_path_factory.mktemp("whole") / "out"
    done = vitrine.batch.embed(tars, out, model=DIGITS)
    assert list(failures(done)) == ["00004.tar", "cut.jpg", "empty.jpg"]
    return out, done


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="found no distributed, which engine='dask' needs")
    config = pytest.importorskip("dask.config")
    with (
        config.set({"distributed.deploy.lost-worker-timeout": 300}),  # a killed worker comes back late on a busy machine
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    for package in ("ray", "psutil"):
        pytest.importorskip(package, reason=f"found no {package}, which engine='ray' and its tests need")
    ray = pytest.importorskip("ray")
    from vitrine.batch.ray import node_resources

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(address="local", num_cpus=2, resources=node_resources(), include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


def workers_of_dask(client: Any) -> list[int]:
    return list(client.run(os.getpid).values())


def actors_of_ray() -> list[int]:
    import psutil  # type: ignore[import-untyped]

    children = psutil.Process().children(recursive=True)
    return [child.pid for child in children if any("ray::ShardActor" in word for word in child.cmdline())]


def test_dask(cluster: Any, tars: Path, whole: tuple[Path, vitrine.batch.Manifest], tmp_path: Path) -> None:
    done = vitrine.batch.embed(tars, tmp_path, model=DIGITS, engine="dask", client=cluster)
    assert results(tmp_path) == results(whole[0])
    assert done.failures == whole[1].failures and done.rows == whole[1].rows


def test_ray(ray: Any, tars: Path, whole: tuple[Path, vitrine.batch.Manifest], tmp_path: Path) -> None:
    pids: set[int] = set()

    def look(_: vitrine.batch.Progress) -> None:
        pids.update(actors_of_ray())

    done = vitrine.batch.embed(tars, tmp_path, model=DIGITS, engine="ray", workers=2, progress=look)
    assert results(tmp_path) == results(whole[0])
    assert done.failures == whole[1].failures and done.rows == whole[1].rows
    assert len(pids) == 2


def kill_three(pids: Callable[[], list[int]]) -> tuple[list[int], Callable[[vitrine.batch.Progress], None]]:
    """Kills a worker behind the first, the fourth and the seventh shard."""
    killed: list[int] = []

    def kill(progress: vitrine.batch.Progress) -> None:
        if progress.done in (1, 4, 7):
            until = time.monotonic() + 60
            while not (found := [pid for pid in pids() if pid not in killed]) and time.monotonic() < until:
                time.sleep(0.05)
            os.kill(found[0], signal.SIGKILL)
            killed.append(found[0])

    return killed, kill


def same_in_spite(out: Path, whole: tuple[Path, vitrine.batch.Manifest], done: vitrine.batch.Manifest) -> None:
    assert done.complete and results(out) == results(whole[0])
    assert done.rows == whole[1].rows and done.failures == whole[1].failures


def test_dask_loses_nothing(cluster: Any, tars: Path, whole: tuple[Path, vitrine.batch.Manifest], tmp_path: Path) -> None:
    killed, kill = kill_three(lambda: workers_of_dask(cluster))
    done = vitrine.batch.embed(tars, tmp_path, model=DIGITS, engine="dask", client=cluster, progress=kill)
    assert len(killed) == 3
    same_in_spite(tmp_path, whole, done)


def test_ray_loses_nothing(ray: Any, tars: Path, whole: tuple[Path, vitrine.batch.Manifest], tmp_path: Path) -> None:
    killed, kill = kill_three(actors_of_ray)
    done = vitrine.batch.embed(tars, tmp_path, model=DIGITS, engine="ray", workers=2, progress=kill)
    assert len(killed) == 3
    same_in_spite(tmp_path, whole, done)


def test_what_no_worker_can_open(cluster: Any, ray: Any, tars: Path, tmp_path: Path) -> None:
    del ray
    for engine, client in (("dask", cluster), ("ray", None)):
        with pytest.raises(vitrine.Error, match="patch_height is 7, expected 1 to 1"):
            vitrine.batch.embed(
                tars, tmp_path / engine, model=DIGITS, engine=engine, client=client, image_size=1  # type: ignore[arg-type]
            )
        assert not results(tmp_path / engine)


def test_dask_by_its_address(cluster: Any, tars: Path, whole: tuple[Path, vitrine.batch.Manifest], tmp_path: Path) -> None:
    address = cluster.scheduler_info()["address"]
    done = vitrine.batch.embed(tars, tmp_path, model=DIGITS, engine="dask", address=address)
    same_in_spite(tmp_path, whole, done)


def test_dask_resources(tars: Path, whole: tuple[Path, vitrine.batch.Manifest], tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="found no distributed, which engine='dask' needs")
    done = vitrine.batch.embed(tars, tmp_path, model=DIGITS, engine="dask", workers=1, resources={"GPU": 1})
    same_in_spite(tmp_path, whole, done)


# The same models in collections and pipelines of one's own.


@pytest.fixture(scope="module")
def drawn() -> list[bytes]:
    return [picture(i) for i in range(7)] + [b"none"]


def test_bag(cluster: Any, digits: vitrine.Model, drawn: list[bytes]) -> None:
    bag = pytest.importorskip("dask.bag")
    from vitrine.batch.dask import embed_bag

    found = embed_bag(bag.from_sequence(drawn, npartitions=2), DIGITS).compute(scheduler=cluster)
    assert len(found) == 8 and isinstance(found[7], vitrine.ImageError)
    assert np.stack(found[:4]).tobytes() == digits.embed(drawn[:4]).tobytes()


def test_array(cluster: Any, digits: vitrine.Model) -> None:
    array = pytest.importorskip("dask.array")
    from vitrine.batch.dask import embed_array

    pixels = np.random.default_rng(1).integers(0, 255, (9, 28, 28, 3), np.uint8)
    embedded = embed_array(array.from_array(pixels, chunks=(4, 14, 28, 3)), DIGITS, dim=64)
    assert embedded.shape == (9, 64)
    found = embedded.compute(scheduler=cluster)
    assert found.tobytes() == np.concatenate([digits.embed(pixels[i : i + 4]) for i in (0, 4, 8)]).tobytes()
    assert embed_array(array.from_array(pixels), DIGITS).shape == (9, 64)
    with pytest.raises(vitrine.Error, match="expected \\[N, H, W, C\\]"):
        embed_array(array.zeros((3, 4)), DIGITS)


def test_dataframe(cluster: Any, digits: vitrine.Model, drawn: list[bytes], tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frames = pytest.importorskip("dask.dataframe")
    from vitrine.batch.dask import embed_dataframe

    paths = []
    for i, data in enumerate(drawn):
        paths.append(str(tmp_path / f"{i}.jpg"))
        Path(paths[-1]).write_bytes(data)
    frame = frames.from_pandas(pandas.DataFrame({"path": [*paths, None], "n": range(9)}), npartitions=3)
    embedded = embed_dataframe(frame, "path", DIGITS)
    found = embedded.compute(scheduler=cluster)
    assert list(found.columns) == list(embedded.columns) == ["path", "n", "embedding", "error"]
    assert (found.dtypes == embedded.dtypes).all()
    assert np.array(found["embedding"].iloc[0], np.float32).tobytes() == digits.embed(paths[0]).tobytes()
    assert found["embedding"].isna().tolist() == [False] * 7 + [True] * 2
    assert found["error"].isna().tolist() == [True] * 7 + [False] * 2 and paths[7] in found["error"].iloc[7]


def test_ray_data(ray: Any, digits: vitrine.Model, drawn: list[bytes]) -> None:
    pytest.importorskip("pandas", reason="found no pandas, which ray.data needs")
    from vitrine.batch.ray import Embedder

    data = ray.data.from_items([{"bytes": one, "n": i} for i, one in enumerate(drawn)])
    embedded = data.map_batches(
        Embedder,
        fn_constructor_kwargs={"model": str(DIGITS)},
        batch_size=4,
        resources={"vulkan": 1},
        compute=ray.data.ActorPoolStrategy(size=1),
    )
    found = sorted(embedded.take_all(), key=lambda row: int(row["n"]))
    assert len(found) == 8 and [row["error"] == "" for row in found] == [True] * 7 + [False]
    good = np.stack([row["embedding"] for row in found[:7]])
    np.testing.assert_allclose(good, digits.embed(drawn[:7]), rtol=1e-5, atol=1e-5)  # other batches
    assert np.isnan(found[7]["embedding"]).all()


def test_the_device_of_an_actor(ray: Any) -> None:
    from vitrine.batch.ray import PREFIX, assigned_device, node_resources

    (name,) = [name for name in node_resources() if name.startswith(PREFIX)]
    ask = ray.remote(assigned_device)
    assert ray.get(ask.options(resources={name: 0.5}).remote()) == name.removeprefix(PREFIX)
    assert ray.get(ask.remote()) is None


def test_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess
    import sys

    code = "import sys; from vitrine.batch.devices import claim; print(claim(['a', 'b']), flush=True); sys.stdin.read()"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    processes: list[subprocess.Popen[str]] = []

    def start() -> str:
        process = subprocess.Popen(
            [sys.executable, "-c", code], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        processes.append(process)
        assert process.stdout
        return process.stdout.readline().strip()

    try:
        assert [start() for _ in range(4)] == ["a", "b", "a", "b"]
        processes[1].kill()
        processes[1].wait()
        assert start() == "b"
    finally:
        for process in processes:
            process.kill()
            process.communicate()
