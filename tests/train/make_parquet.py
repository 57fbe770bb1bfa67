#!/usr/bin/env python3
"""Writes parquet/: small tables of pictures as Hugging Face's datasets stores them, in the ways in which
pyarrow can write them. Needs pyarrow and Pillow.

Row i has the picture whose byte p is (i * 37 + p * 11 + p // 7) % 256 (tests/train/sample_files.h) and the
label i % 3; in "repeated" every fourth picture comes again.
"""
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

ROWS, HEIGHT, WIDTH = 11, 7, 9
FEATURES = {"info": {"features": {"image": {"_type": "Image"},
                                  "label": {"names": ["ant", "bee", "cat"], "_type": "ClassLabel"}}}}
PICTURE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def encoded(number):
    raw = bytes((number * 37 + p * 11 + p // 7) % 256 for p in range(HEIGHT * WIDTH * 3))
    file = io.BytesIO()
    Image.frombytes("RGB", (WIDTH, HEIGHT), raw).save(file, "PNG")
    return file.getvalue()


def table(numbers=range(ROWS), labels=None, label_type=pa.int64(), features=FEATURES, pictures=None):
    numbers = list(numbers)
    labels = labels or [i % 3 for i in range(len(numbers))]
    pictures = pictures or [{"bytes": encoded(n), "path": f"{n}.png"} for n in numbers]
    made = pa.table({"image": pa.array(pictures, PICTURE), "label": pa.array(labels, label_type)})
    return made.replace_schema_metadata({"huggingface": json.dumps(features)} if features else {})


def write(name, made, **options):
    folder = Path(__file__).parent / "parquet"
    folder.mkdir(exist_ok=True)
    options = {"compression": "none", "use_dictionary": False, "row_group_size": 5, **options}
    pq.write_table(made, folder / f"{name}.parquet", **options)


def main():
    write("plain", table(), data_page_version="1.0")
    write("plain_2", table(), data_page_version="2.0", write_statistics=False)
    write("snappy", table(), compression="snappy", data_page_version="1.0")
    write("snappy_2", table(), compression="snappy", data_page_version="2.0")
    # A page for every two values.
    write("gzip", table(), compression="gzip", data_page_size=16, write_batch_size=2, write_page_index=True)
    write("gzip_2", table(), compression="gzip", data_page_version="2.0", data_page_size=16, write_batch_size=2)
    repeated = table([i % 4 for i in range(ROWS)], features=None)
    write("repeated", repeated, compression="snappy", use_dictionary=True, data_page_version="1.0")
    write("repeated_2", repeated, use_dictionary=True, data_page_version="2.0", row_group_size=ROWS)
    # The dictionary is full after some pictures, and the others are plain.
    write("full", table(), compression="snappy", use_dictionary=True, dictionary_pagesize_limit=600,
          data_page_size=16, write_batch_size=1, row_group_size=ROWS)
    plain = pa.table({"image": pa.array([encoded(i) for i in range(ROWS)], pa.binary()),
                      "label": pa.array([i % 3 for i in range(ROWS)], pa.int32())})
    write("binary", plain)
    write("zstd", table(), compression="zstd", data_page_version="1.0")
    write("zstd_2", table(), compression="zstd", data_page_version="2.0")
    # What is refused.
    write("brotli", table(), compression="brotli")
    write("no_picture", table(range(2), pictures=[{"bytes": encoded(0), "path": ""}, {"bytes": None, "path": "x.png"}]))
    write("no_label", table(range(2), [0, None]))
    write("high_label", table(range(3), [0, 3, 1]))
    write("names", table(range(2), ["ant", "bee"], pa.string()))
    write("lists", table(range(2), [[0], [1]], pa.list_(pa.int64())))
    write("delta", table(range(4)), column_encoding={"image.bytes": "DELTA_LENGTH_BYTE_ARRAY"})
    write("no_columns", pa.table({"pixels": [1, 2], "class": [0, 1]}))


if __name__ == "__main__":
    main()
