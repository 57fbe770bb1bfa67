"""What vitrine.batch reads: folders, globs, tars, Parquet files, and places that aren't on this machine."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vitrine
from batch_data import failures, image_paths, picture, results, rows, write_tar, write_tars
from conftest import DIGITS

import vitrine.batch
from vitrine.batch import plan, sources, tar
from vitrine.batch.store import Store

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Pictures in folders, and a file that is none."""
    for name in ("b/2.jpg", "b/c/1.PNG", "a/3.jpeg", "a/[x].jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(picture(len(name), "PNG" if name.endswith("PNG") else "JPEG"))
    (tmp_path / "a" / "notes.txt").write_text("")
    return tmp_path


def listed(*named: object, out: str = "/nowhere") -> list[str]:
    return [file.url for file in sources.list_files(list(map(str, named)), out).files]


def test_folders_and_globs(tree: Path) -> None:
    everything = [str(tree / name) for name in ("a/3.jpeg", "a/[x].jpg", "b/2.jpg", "b/c/1.PNG")]
    assert listed(tree) == everything
    assert sources.list_files([str(tree)], "/nowhere").ignored == 1
    assert listed(tree / "b", tree, out=str(tree / "a")) == everything[2:]  # each once, and nothing of the results
    assert listed(tree / "*") == everything
    assert listed(tree / "**" / "*.jp*g") == everything[:3]
    assert listed(tree / "a" / "[x].jpg") == everything[1:2]  # a name that is there is no pattern
    (tree / "picture").write_bytes(picture(1))
    assert listed(tree / "picture") == [str(tree / "picture")]  # named itself, whatever it is called
    for nothing, sentence in [("*.gif", "found no pictures"), ("none", "found neither"), ("{2..1}.tar", "to rise")]:
        with pytest.raises(vitrine.Error, match=sentence):
            listed(tree / nothing)
    with pytest.raises(vitrine.Error, match="00001.tar: found neither"):
        write_tar(tree / "00000.tar", [])
        listed(tree / "{00000..00001}.tar")


def test_plan(tree: Path) -> None:
    write_tar(tree / "b" / "0.tar", [])
    pq.write_table(pa.table({"jpg": [b"x"] * 5}), tree / "b" / "p.parquet", row_group_size=2)
    (tree / "b" / "q.parquet").write_bytes(b"PAR1 broken")
    made = plan.make_plan([str(tree)], "/nowhere", 3, None)
    assert [(shard.kind, len(shard.files), shard.row_group) for shard in made.shards] == [
        ("tar", 1, None),
        ("pictures", 3, None),
        ("parquet", 1, 0),
        ("parquet", 1, 1),
        ("parquet", 1, 2),
        ("parquet", 1, None),
        ("pictures", 1, None),
    ]
    assert [shard.number for shard in made.shards] == list(range(7))
    assert made == plan.make_plan([str(tree)], "/nowhere", 3, None)
    assert plan.difference(made.to_json(), made) is None


def breaks(path: Path) -> tuple[list[str], str]:
    names: list[str] = []
    with pytest.raises(tar.TarBreak) as caught:
        for name, _ in tar.read_tar(str(path)):
            names.append(name)
    return names, str(caught.value)


def test_tars_that_break(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    members = [(f"{i}.jpg", bytes([i + 1]) * 700) for i in range(3)]  # 512 + 1024 bytes each
    write_tar(path, members)
    data = path.read_bytes()
    assert [name for name, _ in tar.read_tar(str(path))] == ["0.jpg", "1.jpg", "2.jpg"]
    for cut, names, sentence in [
        (0, [], "empty file"),
        (100, [], "truncated header"),
        (1536 + 100, ["0.jpg"], "no header at byte 1536"),
        (1536 + 600, ["0.jpg"], "byte 1536, '1.jpg'"),
        (2 * 1536, ["0.jpg", "1.jpg"], "without the mark of an end"),
        (3 * 1536 + 100, ["0.jpg", "1.jpg", "2.jpg"], "no header at byte 4608"),
    ]:
        path.write_bytes(data[:cut])
        found, said = breaks(path)
        assert found == names and sentence in said, (cut, said)
    path.write_bytes(data[:1536] + b"\xaa" * 512 + data[2048:])
    assert breaks(path) == (["0.jpg"], "found no header at byte 1536, expected a member's or the end")
    path.write_bytes(data[:1536] + bytes(1024) + data[1536 + 1024 :])  # a hole in the middle
    found, said = breaks(path)
    assert found == ["0.jpg"] and "more behind the end" in said
    packed = tmp_path / "a.tar.gz"
    packed.write_bytes(gzip.compress(data))
    assert [name for name, _ in tar.read_tar(str(packed))] == ["0.jpg", "1.jpg", "2.jpg"]
    packed.write_bytes(gzip.compress(data)[:-30])
    assert "breaks at" in breaks(packed)[1]
    packed.write_bytes(b"no gzip at all")
    assert "breaks at its beginning" in breaks(packed)[1]
    # A header that promises more than there is takes no memory for it.
    header = bytearray(data[1536:2048])
    header[124:136] = b"77777777777\0"
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    path.write_bytes(data[:1536] + bytes(header) + data[2048:])
    found, said = breaks(path)
    assert found == ["0.jpg"] and "bytes promised" in said


@pytest.fixture(scope="module")
def drawn() -> list[bytes]:
    return [picture(i) for i in range(10)]


def table_of(kind: str, drawn: list[bytes], folder: Path) -> Any:
    if kind == "bytes":
        return pa.table({"label": list(range(10)), "jpg": drawn})
    if kind == "struct":
        return pa.table({"image": [{"bytes": data, "path": f"{i}.jpg"} for i, data in enumerate(drawn)], "text": ["x"] * 10})
    (folder / "pictures").mkdir(exist_ok=True)
    for i, data in enumerate(drawn):
        (folder / "pictures" / f"{i}.jpg").write_bytes(data)
    return pa.table({"path": [f"pictures/{i}.jpg" for i in range(10)], "title": ["x"] * 10})


@pytest.mark.parametrize("kind", ["bytes", "struct", "path"])
def test_parquet(digits: vitrine.Model, drawn: list[bytes], tmp_path: Path, kind: str) -> None:
    pq.write_table(table_of(kind, drawn, tmp_path), tmp_path / "a.parquet", row_group_size=4)
    done = vitrine.batch.embed(tmp_path / "a.parquet", tmp_path / "out", model=DIGITS, dtype="float32")
    assert (done.shards, done.rows) == (3, 10)
    expected = np.concatenate([digits.embed(drawn[i : i + 4]) for i in (0, 4, 8)])
    assert rows(tmp_path / "out").tobytes() == expected.tobytes()
    names = {"bytes": "a.parquet#{}", "struct": "{}.jpg", "path": "pictures/{}.jpg"}[kind]
    assert image_paths(tmp_path / "out") == [names.format(i) for i in range(10)]


def test_parquet_with_nothing_in_places(drawn: list[bytes], tmp_path: Path) -> None:
    (tmp_path / "there.jpg").write_bytes(drawn[0])
    cells = [
        {"bytes": drawn[1], "path": None},
        None,
        {"bytes": None, "path": "there.jpg"},
        {"bytes": None, "path": "missing.jpg"},
        {"bytes": None, "path": None},
        {"bytes": drawn[2], "path": "last.jpg"},
    ]
    pq.write_table(pa.table({"image": cells}), tmp_path / "a.parquet")
    done = vitrine.batch.embed(tmp_path / "a.parquet", tmp_path / "out", model=DIGITS)
    assert image_paths(tmp_path / "out") == ["a.parquet#0", "there.jpg", "last.jpg"]
    assert list(failures(done)) == ["a.parquet#1", "missing.jpg", "a.parquet#4"] and done.pictures == 6


def test_parquet_that_breaks(drawn: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"jpg": drawn}), path, row_group_size=5, use_dictionary=False, compression="zstd")
    group = pq.ParquetFile(path).metadata.row_group(1).column(0)
    data = bytearray(path.read_bytes())
    data[group.data_page_offset : group.data_page_offset + 400] = bytes(400)
    path.write_bytes(data)
    (tmp_path / "b.parquet").write_bytes(bytes(data[:500]))
    done = vitrine.batch.embed([path, tmp_path / "b.parquet"], tmp_path / "out", model=DIGITS)
    assert done.complete and done.rows == 5
    named = failures(done)
    assert "breaks in row group 1" in named["a.parquet"] and "breaks in its footer" in named["b.parquet"]


def test_parquet_columns_are_not_guessed(drawn: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"left": drawn, "right": drawn, "n": list(range(10))}), path)
    with pytest.raises(vitrine.Error, match="left, right that may be the pictures, expected column="):
        vitrine.batch.embed(path, tmp_path / "out", model=DIGITS)
    with pytest.raises(vitrine.Error, match="the column 'n' of int64"):
        vitrine.batch.embed(path, tmp_path / "out", model=DIGITS, column="n")
    with pytest.raises(vitrine.Error, match="the columns left, right, n, expected a column 'm'"):
        vitrine.batch.embed(path, tmp_path / "out", model=DIGITS, column="m")
    assert vitrine.batch.embed(path, tmp_path / "out", model=DIGITS, column="right").rows == 10
    pq.write_table(pa.table({"caption": ["x"]}), path)
    with pytest.raises(vitrine.Error, match="caption, none of which has to be the pictures"):
        vitrine.batch.embed(path, tmp_path / "other", model=DIGITS)


def test_memory(tmp_path: Path, drawn: list[bytes]) -> None:
    fs = fsspec.filesystem("memory")
    write_tars(tmp_path / "tars", 2)
    for name in ("00000.tar", "00001.tar"):
        fs.pipe_file(f"/in/{name}", (tmp_path / "tars" / name).read_bytes())
    for i in range(40):
        fs.pipe_file(f"/in/loose/{i:02}.jpg", drawn[i % 10])
    fs.pipe_file("/in/loose/03.jpg", b"")
    done = vitrine.batch.embed("memory://in", "memory://out", model=DIGITS, shard_size=35)
    assert done.complete and done.shards == 4 and list(failures(done)) == ["memory:///in/loose/03.jpg"]
    for name in ("tars", "loose"):
        (tmp_path / name).mkdir(exist_ok=True)
    for i in range(40):
        (tmp_path / "loose" / f"{i:02}.jpg").write_bytes(drawn[i % 10] if i != 3 else b"")
    here = vitrine.batch.embed([tmp_path / "tars", tmp_path / "loose"], tmp_path / "out", model=DIGITS, shard_size=35)
    assert here.rows == done.rows == 51
    found = {name.rpartition("/")[2]: fs.cat_file(name) for name in fs.find("/out/img_emb")}
    assert found == {file.name: file.read_bytes() for file in (tmp_path / "out" / "img_emb").glob("*")}
    told: list[Any] = []
    assert vitrine.batch.embed("memory://in", "memory://out", model=DIGITS, shard_size=35, progress=told.append) == done
    assert not told
    with pytest.raises(vitrine.Error, match="a folder of this process alone"):
        vitrine.batch.embed("memory://in", "memory://out2", model=DIGITS, engine="ray")
    mixed = vitrine.batch.embed([tmp_path / "loose", "memory://in/loose"], tmp_path / "mixed", model=DIGITS, shard_size=50)
    assert (mixed.shards, mixed.rows, mixed.pictures) == (2, 78, 80)
    fs.rm("/in", recursive=True)
    fs.rm("/out", recursive=True)


def test_a_place_that_only_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that is neither the machine's own nor one of objects: written aside, then moved."""
    store = Store(str(tmp_path))
    moved: list[str] = []
    monkeypatch.setattr(type(store._fs), "protocol", ("sftp",))
    original = store._fs.mv

    def mv(old: str, new: str) -> None:
        assert not Path(new).exists() and Path(old).read_bytes() == b"whole"
        moved.append(new)
        original(old, new)

    monkeypatch.setattr(store._fs, "mv", mv)
    store.write("img_emb/a.npy", b"whole")
    (tmp_path / "img_emb" / "a.npy").unlink()
    store.remove_unfinished()
    store.write("img_emb/a.npy", b"whole")  # though a folder that it knew is gone
    assert moved == [str(tmp_path / "img_emb" / "a.npy")] * 2 and (tmp_path / "img_emb" / "a.npy").read_bytes() == b"whole"


def test_names_that_are_no_utf8(tmp_path: Path, drawn: list[bytes]) -> None:
    (tmp_path / "in").mkdir()
    path = bytes(tmp_path / "in") + b"/caf\xe9.jpg"
    with open(path, "wb") as file:
        file.write(drawn[0])
    with open(bytes(tmp_path / "in") + b"/bad\xe9.jpg", "wb") as file:
        file.write(b"none")
    done = vitrine.batch.embed(tmp_path / "in", tmp_path / "out", model=DIGITS)
    assert image_paths(tmp_path / "out") == [f"{tmp_path}/in/caf\\udce9.jpg"]
    assert done.failures[0].sentence.startswith(f"{tmp_path}/in/bad\\udce9.jpg: ")
    assert results(tmp_path / "out")


def test_missing_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys

    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(vitrine.Error, match=r"found no package pyarrow, expected it \(pip install 'vitrine\[batch\]'\)"):
        vitrine.batch.embed(tmp_path, tmp_path / "out", model=DIGITS)
