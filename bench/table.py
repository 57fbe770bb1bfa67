#!/usr/bin/env python3
"""Makes a markdown table of the JSON lines that `vitrine bench --json` printed: bench/table.py FILE..."""
import json
import sys

rows = [json.loads(line) for name in sys.argv[1:] for line in open(name) if line.startswith("{")]
if not rows:
    sys.exit("table.py: no JSON lines to make a table of")
print(f"{rows[0]['device']}, {rows[0]['driver']}\n")
print("| model | dtype | batch | ms a batch (min–max) | images/s | GFLOP/s | device memory | checksum |")
print("|---|---|---|---|---|---|---|---|")
for r in rows:
    print(f"| {r['arch']} | {r['dtype']} | {r['batch']} | {r['median_ms']:.2f} ({r['min_ms']:.2f}–{r['max_ms']:.2f}) | "
          f"{r['images_per_second']:.1f} | {r['gflops']:.0f} | {r['peak_device_bytes'] / 2**20:.0f} MiB | {r['checksum']} |")
