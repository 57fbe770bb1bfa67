#!/usr/bin/env python3
"""Says in one sentence how Vitrine stands beside torch.compile: bench/verdict.py FILE... of bench/compare.py --json."""
import json
import sys

PEER = "pytorch-compiled"


def joined(parts):
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]


def of_dtype(dtype, rows):
    """The peer's times of one dtype, each over Vitrine's, by batch size; or why there are none."""
    ours = {row["batch"] for row in rows if row["system"] == "vitrine" and row["dtype"] == dtype and row["rounds"]}
    theirs = [row for row in rows if row["family"] == PEER and row["dtype"] == dtype]
    best = {}
    for row in theirs:
        if row["rounds"] and row["batch"] in ours:
            best[row["batch"]] = min(row["times_vitrine"], best.get(row["batch"], float("inf")))
    if best:
        return f"in {dtype} " + joined([f"{best[batch]:.2f} at batch {batch}" for batch in sorted(best)])
    if not ours:
        return f"in {dtype} nothing can be said, because Vitrine was not measured"
    why = next((row["refused"].splitlines()[-1] for row in theirs if "refused" in row), "it was not measured")
    return f"in {dtype} nothing can be said ({why})"


def sentence(rows):
    model = joined(list(dict.fromkeys(row["arch"] for row in rows)))
    dtypes = [of_dtype(dtype, rows) for dtype in dict.fromkeys(row["dtype"] for row in rows)]
    return f"torch.compile takes, in times of Vitrine's for {model}: {'; '.join(dtypes)}."


def main():
    rows = [row for name in sys.argv[1:] for row in json.load(open(name))["systems"]]
    if not rows:
        sys.exit("verdict.py: no systems were measured")
    print(sentence(rows))


if __name__ == "__main__":
    main()
