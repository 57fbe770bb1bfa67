"""vitrine.batch in one process: what it writes, what it names, how it goes on, and what it refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vitrine
from batch_data import (
    PICTURES,
    SHARDS,
    failures,
    image_paths,
    picture,
    results,
    rows,
    write_tar,
    write_tars,
)
from conftest import DIGITS

import vitrine.batch


@pytest.fixture(scope="module")
def tars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tars")
    write_tars(folder)
    return folder


@pytest.fixture(scope="module")
def whole(tars: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an undisturbed run writes of ``tars``."""
    out = tmp_path_factory.mktemp("whole") / "out"
    done = vitrine.batch.embed(tars, out, model=DIGITS)
    assert done.complete and done.rows == done.pictures == SHARDS * PICTURES and not done.failures
    return out


def test_rows_are_those_of_embed(digits: vitrine.Model, whole: Path) -> None:
    stored = rows(whole)
    expected = np.concatenate(
        [digits.embed([picture(shard * PICTURES + i) for i in range(PICTURES)]) for shard in range(SHARDS)]
    )
    assert stored.dtype == np.float16 and np.ptp(expected) > 0
    assert stored.tobytes() == expected.astype(np.float16).tobytes()
    assert image_paths(whole) == [f"{number:06}.jpg" for number in range(SHARDS * PICTURES)]
    assert len(results(whole)) == 2 * SHARDS


def test_manifest(whole: Path) -> None:
    manifest = json.loads((whole / "manifest.json").read_text())
    assert manifest["complete"] and manifest["counts"]["rows"] == SHARDS * PICTURES and manifest["dim"] == 64
    assert {name: file["sha256"] for name, file in manifest["files"].items()} == results(whole)
    names = {file["name"] for file in manifest["model"]["files"]}
    assert names == {"config.json", "model.safetensors", "preprocessor_config.json"}


def test_float32_normalized_and_parquet(digits: vitrine.Model, tars: Path, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    plain = vitrine.batch.embed(tars, tmp_path / "a", model=DIGITS, dtype="float32")
    assert rows(tmp_path / "a").dtype == np.float32 and plain.rows == SHARDS * PICTURES
    vitrine.batch.embed(tars, tmp_path / "b", model=DIGITS, dtype="float32", normalize=True)
    lengths = np.linalg.norm(rows(tmp_path / "b").astype(np.float64), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-6)  # 64 numbers, each rounded to 2^-24 of itself
    for dtype in ("float32", "float16"):
        out = tmp_path / dtype
        vitrine.batch.embed(tars, out, model=DIGITS, dtype=dtype, format="parquet")  # type: ignore[arg-type]
        table = pq.read_table(sorted((out / "embeddings").glob("*"))[3])
        assert "fixed_size_list" in str(table.schema.field("embedding").type) and table.schema.field("embedding").type.list_size == 64
        found = np.stack(table["embedding"].combine_chunks().to_numpy(zero_copy_only=False))
        expected = np.load(tmp_path / "a" / "img_emb" / "img_emb_3.npy").astype(dtype)
        assert found.astype(dtype).tobytes() == expected.tobytes()
        assert table["image_path"].to_pylist()[0] == f"{3 * PICTURES:06}.jpg"


def test_what_cannot_be_read_is_named_and_the_rest_done(tars: Path, whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    good = [(f"{i}.jpg", picture(i)) for i in range(4)]
    write_tar(folder / "0.tar", [good[0], ("cut.jpg", picture(9)[:300]), ("empty.jpg", b""), good[1]])
    write_tar(folder / "1.tar", good)
    data = (folder / "1.tar").read_bytes()
    (folder / "1.tar").write_bytes(data[: 512 + 512 * -(-len(good[0][1]) // 512) + 700])  # inside the second picture
    write_tar(folder / "2.tar", good[2:])
    (folder / "3.tar").write_bytes(b"")
    (folder / "4.jpg").write_bytes(good[0][1])
    (folder / "5.jpg").write_bytes(b"")
    (folder / "6.png").write_bytes(good[0][1][:400])
    (folder / "notes.txt").write_text("no picture")
    done = vitrine.batch.embed(folder, tmp_path / "out", model=DIGITS)
    assert done.complete and done.ignored == 1
    assert image_paths(tmp_path / "out") == ["0.jpg", "1.jpg", "0.jpg", "2.jpg", "3.jpg", str(folder / "4.jpg")]
    named = failures(done)
    assert list(named) == ["cut.jpg", "empty.jpg", "1.tar", "3.tar", str(folder / "5.jpg"), str(folder / "6.png")]
    assert named["cut.jpg"].startswith("cut.jpg: ") and named["empty.jpg"].startswith("empty.jpg: ")
    assert "1.tar: breaks at byte" in named["1.tar"] and "'1.jpg'" in named["1.tar"]
    assert "empty file" in named["3.tar"]
    assert done.pictures == done.rows + 4  # two of the six are breaks of archives


def test_a_sentence_names_its_picture_in_any_part_of_a_shard(tmp_path: Path) -> None:
    members = [(f"{i:03}.jpg", picture(i)) for i in range(50)]
    members[45] = ("045.jpg", b"none")
    write_tar(tmp_path / "a.tar", members)
    done = vitrine.batch.embed(tmp_path / "a.tar", tmp_path / "out", model=DIGITS, batch_size=3)
    assert [failure.picture for failure in done.failures] == ["045.jpg"]
    assert done.failures[0].sentence.startswith("045.jpg: ") and done.rows == 49


CRASHING = """
import os, signal, sys
import vitrine.batch
replace, left = os.replace, int(sys.argv[4])
def dying(*names):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(*names)
os.replace = dying
vitrine.batch.embed(sys.argv[1], sys.argv[2], model=sys.argv[3])
"""


@pytest.mark.parametrize("write", [1, 2, 3, 4, 9])
def test_resumes_after_a_crash(tars: Path, whole: Path, tmp_path: Path, write: int) -> None:
    # The plan is the first file, then three for each shard: numbers, table, record.
    command = [sys.executable, "-c", CRASHING, str(tars), str(tmp_path), str(DIGITS), str(write)]
    assert subprocess.run(command, capture_output=True).returncode == -signal.SIGKILL
    finished = max(0, (write - 2) // 3)
    records = {file: file.stat().st_mtime_ns for file in (tmp_path / "_vitrine" / "shards").glob("*")}
    assert len(records) == finished and not (tmp_path / "manifest.json").exists()
    told: list[vitrine.batch.Progress] = []
    done = vitrine.batch.embed(tars, tmp_path, model=DIGITS, progress=told.append)
    assert done.complete and results(tmp_path) == results(whole)
    assert len(told) == SHARDS - finished and told[-1].pictures == (SHARDS - finished) * PICTURES
    assert all(file.stat().st_mtime_ns == time for file, time in records.items())
    assert not list((tmp_path / "_vitrine").glob("unfinished/*"))
    told.clear()
    assert vitrine.batch.embed(tars, tmp_path, model=DIGITS, progress=told.append) == done and not told


def test_lost_results_are_done_again(tars: Path, whole: Path, tmp_path: Path) -> None:
    vitrine.batch.embed(tars, tmp_path, model=DIGITS)
    (tmp_path / "img_emb" / "img_emb_2.npy").unlink()
    (tmp_path / "metadata" / "metadata_5.parquet").write_bytes(b"PAR1")
    told: list[vitrine.batch.Progress] = []
    vitrine.batch.embed(tars, tmp_path, model=DIGITS, progress=told.append)
    assert len(told) == 2 and results(tmp_path) == results(whole)


def test_refuses_what_would_give_other_results(tars: Path, tmp_path: Path) -> None:
    shutil = pytest.importorskip("shutil")
    mine, model, out = tmp_path / "in", tmp_path / "model", tmp_path / "out"
    shutil.copytree(tars, mine)
    shutil.copytree(DIGITS, model)
    vitrine.batch.embed(mine, out, model=model)
    before = results(out)

    def refused(sentence: str, sources: Any = mine, **options: Any) -> None:
        with pytest.raises(vitrine.Error, match=sentence):
            vitrine.batch.embed(sources, out, model=model, **options)
        assert results(out) == before

    refused("dtype='float32' where it was 'float16'", dtype="float32")
    refused("batch_size=16 where it was 8", batch_size=16)
    refused("shard_size=5 where it was 1000", shard_size=5)
    refused("image_size=\\[56, 56\\] where it was None", image_size=56)
    refused("there are 7 shards, and there were 8", sources=sorted(map(str, mine.glob("*.tar")))[:7])
    refused("shard 0 is .*00001.tar .*, and was .*00000.tar", sources=sorted(map(str, mine.glob("*.tar")))[1:])
    write_tar(mine / "00004.tar", [("0.jpg", picture(1))])
    refused("shard 4 is .*00004.tar")
    shutil.copy(tars / "00004.tar", mine)
    (model / "config.json").write_text((model / "config.json").read_text() + " ")
    refused("another model than .*model was: config.json is there with other bytes")
    shutil.copy(DIGITS / "config.json", model)
    assert vitrine.batch.embed(mine, out, model=model).complete

    other = tmp_path / "other" / "img_emb"
    other.mkdir(parents=True)
    (other / "img_emb_0.npy").write_bytes(b"somebody's")
    with pytest.raises(vitrine.Error, match="found files in img_emb and no _vitrine/plan.json"):
        vitrine.batch.embed(mine, other.parent, model=model)


def test_two_runs_at_once(tars: Path, tmp_path: Path) -> None:
    said: list[str] = []

    def second(_: vitrine.batch.Progress) -> None:
        with pytest.raises(vitrine.Error, match="another run at work") as caught:
            vitrine.batch.embed(tars, tmp_path, model=DIGITS)
        said.append(str(caught.value))

    assert vitrine.batch.embed(tars, tmp_path, model=DIGITS, progress=second).complete
    assert len(said) == SHARDS


def test_beyond_float16_is_refused(tmp_path: Path) -> None:
    from vitrine.batch.results import as_stored

    large = np.array([[1, 2], [3, 7e4]], np.float32)
    with pytest.raises(vitrine.Error, match="b.jpg: found the value 70000 .* or dtype='float32'"):
        as_stored(large, ["a.jpg", "b.jpg"], "float16", False)
    assert as_stored(large, ["a.jpg", "b.jpg"], "float32", False).tobytes() == large.tobytes()
    assert as_stored(np.array([[np.inf]], np.float32), ["a.jpg"], "float16", False)[0, 0] == np.inf


def test_a_shard_that_fails_leaves_the_others(tars: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from vitrine.batch import shard

    read = shard.read_tar

    def no_connection(url: str) -> Any:
        if url.endswith("00003.tar"):
            raise ConnectionResetError(104, "Connection reset by peer")
        return read(url)

    monkeypatch.setattr(shard, "read_tar", no_connection)
    with pytest.raises(vitrine.Error, match="1 shard of 8 could not be done.*shard 3, .*00003.tar.*Connection reset"):
        vitrine.batch.embed(tars, tmp_path, model=DIGITS)
    assert not json.loads((tmp_path / "manifest.json").read_text())["complete"]
    assert len(results(tmp_path)) == 2 * (SHARDS - 1)
    monkeypatch.undo()
    assert vitrine.batch.embed(tars, tmp_path, model=DIGITS).complete and results(tmp_path) == results(whole)


def test_interrupted(tars: Path, whole: Path, tmp_path: Path) -> None:
    def interrupt(progress: vitrine.batch.Progress) -> None:
        if progress.done == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        vitrine.batch.embed(tars, tmp_path, model=DIGITS, progress=interrupt)
    assert vitrine.batch.embed(tars, tmp_path, model=DIGITS).complete and results(tmp_path) == results(whole)


def test_two_devices(tars: Path, whole: Path, tmp_path: Path) -> None:
    # The same one twice: two models in two threads.
    chosen = next(device for device in vitrine.devices() if device.chosen)
    done = vitrine.batch.embed(tars, tmp_path, model=DIGITS, devices=[chosen.index, chosen.uuid.hex()])
    assert done.complete and results(tmp_path) == results(whole)


def run_command(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vitrine.batch", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


def test_command(tars: Path, whole: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "bad.jpg").write_bytes(b"")
    out = tmp_path / "out"
    done = run_command(f"{tars}/{{00000..00007}}.tar", tmp_path / "in", "--out", out, "--model", DIGITS, "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["rows"], said["pictures"], said["failures"], said["shards"]) == (48, 49, 1, 9)
    assert "bad.jpg" in done.stderr
    assert {name: hash for name, hash in results(out).items() if "8" not in name} == results(whole)
    again = run_command(f"{tars}/{{00000..00007}}.tar", tmp_path / "in", "--out", out, "--model", DIGITS)
    assert again.returncode == 0 and "48 rows of 49 pictures in 9 shards" in again.stdout

    def fails(status: int, sentence: str, *arguments: object) -> None:
        done = run_command(*arguments)
        assert done.returncode == status and sentence in done.stderr and "Traceback" not in done.stderr, done.stderr

    fails(1, "nothing-here: found neither a file nor a folder", tmp_path / "nothing-here", "--out", tmp_path / "x", "--model", DIGITS)
    fails(4, "nothing-here", tars, "--out", tmp_path / "x", "--model", tmp_path / "nothing-here")
    fails(3, "no such card", tars, "--out", tmp_path / "x", "--model", DIGITS, "--device", "no such card")
    fails(2, "--out", tars, "--model", DIGITS)
