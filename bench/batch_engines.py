#!/usr/bin/env python3
"""Times vitrine.batch in one process, on Dask and on Ray, undisturbed and with workers killed; and what a shard costs.

    PYTHONPATH=build/release/python bench/batch_engines.py --model assets/digits

Draws shards of pictures, of which one has a truncated JPEG and an empty file and another breaks off, and prints a JSON
line for each run: its seconds, those until its first shard, whether its bytes are those of one process, and what the
engine takes for a shard that is done already. A kill is
a SIGKILL for a worker, at a quarter, half and three quarters of the shards; in one process it is one for that
process, which is started again. Then a line for what doesn't depend on the model: planning, committing a shard, and
finding out what is done already.
"""
import argparse
import hashlib
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

import numpy as np
import vitrine.batch
from PIL import Image, ImageDraw
from vitrine.batch.engines import Setting
from vitrine.batch.engines import engine as engine_named
from vitrine.batch.job import RECORDS, Job, Options, record_name
from vitrine.batch.model_files import model_files
from vitrine.batch.plan import make_plan
from vitrine.batch.store import Store

KILLED_AT = (1 / 4, 1 / 2, 3 / 4)
WORKERS_ARE_CALLED = {"dask": "spawn_main", "ray": "ray::ShardActor"}


def picture(seed, size):
    rng = np.random.default_rng(seed)
    image = Image.fromarray(rng.integers(0, 60, (size, size, 3), np.uint8))
    draw = ImageDraw.Draw(image)
    for _ in range(3):
        ends = [tuple(point) for point in rng.integers(4, size - 4, (3, 2)).tolist()]
        draw.line(ends, fill="white", width=size // 12)
    file = io.BytesIO()
    image.save(file, "JPEG")
    return file.getvalue()


def draw_shards(folder, shards, pictures, size):
    for shard in range(shards):
        with tarfile.open(folder / f"{shard:05}.tar", "w") as archive:
            for i in range(pictures):
                data = picture(shard * pictures + i, size)
                if shard == shards // 3 and i == 3:
                    data = data[: len(data) // 2]
                if shard == shards // 3 and i == 4:
                    data = b""
                member = tarfile.TarInfo(f"{shard:05}{i:05}.jpg")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    broken = folder / f"{shards // 2:05}.tar"
    os.truncate(broken, broken.stat().st_size // 2)


def results(out):
    files = sorted(file for folder in ("img_emb", "metadata") for file in (out / folder).glob("*"))
    return [(file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in files]


def descendants():
    """Process numbers and command lines of all that this process started."""
    parents, words = {}, {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            words[int(folder.name)] = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue  # it ended meanwhile
    for pid in parents:
        above = pid
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid() and pid != above:
            yield pid, words[pid]


def kill_one(called, killed):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        found = [pid for pid, words in descendants() if called in words and pid not in killed]
        if found:
            os.kill(found[0], signal.SIGKILL)
            killed.append(found[0])
            return
        time.sleep(0.05)
    sys.exit(f"batch_engines.py: found no process called {called} to kill")


def run_engine(engine, options, folder, out, kills):
    """An engine that has workers: seconds in all, until the first shard, and what came of it."""
    at = [max(1, round(part * options.shards)) for part in KILLED_AT[:kills]]
    killed, first = [], []
    started = time.perf_counter()

    def tell(progress):
        if not first:
            first.append(time.perf_counter() - started)
        if at and progress.done >= at[0]:
            at.pop(0)
            kill_one(WORKERS_ARE_CALLED[engine], killed)

    done = vitrine.batch.embed(
        folder, out, model=options.model, engine=engine, workers=options.workers, batch_size=options.batch, progress=tell
    )
    return time.perf_counter() - started, first[0], done, len(killed)


def dispatch(engine, options, folder, out):
    """Microseconds from one shard to the next where workers find each done already: what the engine itself takes."""
    plan = make_plan([str(folder)], str(out), 1000, None)
    chosen = json.loads((out / "_vitrine" / "plan.json").read_text())["options"]
    chosen["overrides"] = tuple(chosen["overrides"])
    model = os.path.abspath(options.model)
    job = Job(str(out), model, model_files(model).sha256, Options(**chosen), len(plan.shards))
    times = []
    for outcome in engine_named(engine)(job, plan.shards, Setting(workers=options.workers)):
        if outcome.fresh:
            sys.exit("batch_engines.py: found a shard that wasn't done")
        times.append(time.perf_counter())
    return (times[-1] - times[0]) / (len(times) - 1) * 1e6


def run_local(options, folder, out, kills):
    """A process of its own, which is killed and started again."""
    command = [sys.executable, "-m", "vitrine.batch", str(folder), "--out", str(out), "--model", options.model]
    command += ["--batch-size", str(options.batch)]
    at = [max(1, round(part * options.shards)) for part in KILLED_AT[:kills]]
    records = out / RECORDS
    first, killed = None, 0
    started = time.perf_counter()
    while True:
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            while process.poll() is None:
                count = len(list(records.glob("*"))) if records.is_dir() else 0
                if count and first is None:
                    first = time.perf_counter() - started
                if at and count >= at[0]:
                    at.pop(0)
                    process.kill()
                    killed += 1
                    break
                time.sleep(0.01)
            said = process.communicate()[1]
        if process.returncode == 0:
            break
        if process.returncode != -signal.SIGKILL:
            sys.exit(f"batch_engines.py: vitrine-batch ended with status {process.returncode}: {said.strip()[-500:]}")
    seconds = time.perf_counter() - started
    done = vitrine.batch.embed(folder, out, model=options.model, batch_size=options.batch)  # nothing is left to do
    return seconds, first, done, killed


def costs(options, folder):
    """What a run pays for each shard besides the pictures, on this file system."""
    started = time.perf_counter()
    plan = make_plan([str(folder)], str(folder / "out"), 1000, None)
    planned = (time.perf_counter() - started) / len(plan.shards)
    store = Store(str(folder / "costs"))
    rows, table = bytes(options.pictures * 128), bytes(options.pictures * 24)
    count = 1000
    started = time.perf_counter()
    for shard in range(count):
        store.write(f"img_emb/img_emb_{shard:04}.npy", rows)
        store.write(f"metadata/metadata_{shard:04}.parquet", table)
        store.write_json(record_name(shard), {"shard": shard, "files": {}})
    committed = (time.perf_counter() - started) / count
    started = time.perf_counter()
    store.read_all_json(RECORDS)
    store.sizes("img_emb"), store.sizes("metadata")
    found = (time.perf_counter() - started) / count
    return {"plan_us_a_shard": planned * 1e6, "commit_us_a_shard": committed * 1e6, "find_done_us_a_shard": found * 1e6}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--engines", default="local,dask,ray")
    parser.add_argument("--shards", type=int, default=40)
    parser.add_argument("--pictures", type=int, default=250, help="in a shard")
    parser.add_argument("--size", type=int, default=96, help="pixels of a picture's side")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2, help="of Dask and Ray")
    parser.add_argument("--kills", default="0,3", help="how many in each run, at most 3")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vitrine-batch-") as scratch:
        folder = pathlib.Path(scratch) / "in"
        folder.mkdir()
        draw_shards(folder, options.shards, options.pictures, options.size)
        # What the driver compiles the first time is no engine's cost.
        vitrine.batch.embed(folder / "00000.tar", pathlib.Path(scratch) / "warm", model=options.model, batch_size=options.batch)
        expected = None
        for engine in options.engines.split(","):
            for kills in map(int, options.kills.split(",")):
                out = pathlib.Path(scratch) / f"{engine}-{kills}"
                run = (lambda *rest: run_engine(engine, *rest)) if engine != "local" else run_local
                seconds, first, done, killed = run(options, folder, out, kills)
                found = results(out)
                expected = expected or found
                line = {
                    "engine": engine,
                    "workers": options.workers if engine != "local" else 1,
                    "kills": killed,
                    "shards": done.shards,
                    "pictures": done.pictures,
                    "rows": done.rows,
                    "failures": [failure.sentence for failure in done.failures],
                    "seconds": round(seconds, 2),
                    "seconds_until_first_shard": round(first, 2),
                    "same_bytes": found == expected,
                }
                if not kills and engine != "local":
                    line["dispatch_us_a_shard"] = round(dispatch(engine, options, folder, out))
                print(json.dumps(line), flush=True)
                if killed != kills or found != expected or not done.complete:
                    sys.exit(f"batch_engines.py: {engine} with {kills} kills: found other results than the first run's")
        line = {name: round(value, 1) for name, value in costs(options, folder).items()}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
