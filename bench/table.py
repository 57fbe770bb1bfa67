#!/usr/bin/env python3
"""Makes markdown tables of the JSON lines that `vitrine bench --json` printed: bench/table.py FILE...

Lines of models, of single operators (--op) and of steps of training (--train, and bench/peers' of the same) each make
their table."""
import json
import sys


def table(heads, rows):
    return "\n".join(["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|",
                      *("| " + " | ".join(row) + " |" for row in rows)])


def times(line):
    return f"{line['median_ms']:.3f} ({line['min_ms']:.3f}–{line['max_ms']:.3f})"


def model(line):
    host = line.get("host", {})
    return [line["arch"], line["dtype"], str(line["batch"]), times(line),
            f"{line['device_ms']:.3f}" if "device_ms" in line else "–", f"{line['images_per_second']:.1f}",
            f"{line['gflops']:.0f}", f"{host['median_us']:.1f} ({host['min_us']:.1f})" if host else "–",
            f"{line['peak_device_bytes'] / 2**20:.0f} MiB", line["checksum"]]


def operator(line):
    return [line["op"], line["shape"], line["dtype"], times(line), f"{line['gflops']:.1f}",
            f"{line['gbytes_per_second']:.1f}", f"{line['relative_error']:.0e}", line["kernel"]]


def training(line):
    memory = line.get("peak_device_bytes", line.get("memory_bytes"))
    return [line.get("peer", "vitrine"), line["config"], line.get("dtype", "f32"), str(line["batch"]), times(line),
            f"{line['images_per_second']:.1f}", f"{memory / 2**20:.0f} MiB" if memory else "–"]


def lines_of(name):
    try:
        return [json.loads(line) for line in open(name) if line.startswith("{")]
    except OSError as error:
        print(f"table.py: {error}", file=sys.stderr)
        return []


def main():
    lines = [line for name in sys.argv[1:] for line in lines_of(name)]
    if not lines:
        sys.exit("table.py: no JSON lines to make a table of")
    print("; ".join(dict.fromkeys(", ".join(filter(None, [line["device"], line.get("driver")])) for line in lines)))
    kinds = [("arch", model, ["model", "dtype", "batch", "ms a batch (min–max)", "ms on the device", "images/s", "GFLOP/s",
                              "CPU µs outside the driver (min)", "device memory", "checksum"]),
             ("op", operator, ["operator", "shape", "dtype", "ms (min–max)", "GFLOP/s", "GB/s", "relative error", "kernel"]),
             ("config", training, ["system", "training", "dtype", "batch", "ms a step (min–max)", "images/s", "device memory"])]
    for key, cells, heads in kinds:
        rows = [cells(line) for line in lines if key in line]
        if rows:
            print("\n" + table(heads, rows))


if __name__ == "__main__":
    main()
