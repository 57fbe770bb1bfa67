#!/usr/bin/env python3
"""Times an epoch of training in Vitrine and in PyTorch on the same images and configuration, in turns.

    bench/train.py --data MNIST_FOLDER --config configs/mnist-myvit.json --seeds 1,2,3 --json train.json

PyTorch trains on the CPU (peers/pytorch_train.py): a MyViT as its tutorial writes it (looped), the same written for
speed (fast), and that compiled. That the first two compute the same is checked first, in float64. Of PyTorch, --steps
steps are timed and scaled to an epoch (--looped-steps of the slow version), of Vitrine whole epochs.

--seeds: after that, Vitrine and PyTorch's fastest version train to the configuration's end, once a seed. With
--backwards PyTorch does so twice, the second time with the images of each batch the other way round: how far that parts
from the first is what rounding alone does, and what a difference from Vitrine has to be seen against. With --distance
PyTorch does so in float64 first, and all others say how far from its weights theirs are at the end.
"""
import argparse
import itertools
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from systems import ending, openblas

HERE = pathlib.Path(__file__).resolve().parent


def say(text):
    print(f"train: {text}", file=sys.stderr, flush=True)


def lines_of(command, environment, limit):
    """The JSON lines that a command prints; RuntimeError if it fails."""
    try:
        done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"took longer than {limit:.0f} s") from None
    except OSError as error:
        raise RuntimeError(str(error)) from None
    if done.returncode != 0:
        raise RuntimeError(ending(done.returncode, done.stderr))
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def need(line, keys):
    for key in keys:
        if key not in line:
            raise RuntimeError(f"printed {json.dumps(line)[:200]}, expected the keys {', '.join(keys)}")
    return line


class Vitrine:
    name, threads = "vitrine", None

    def __init__(self, options):
        self.options = options

    def train(self, epochs, seed, weights=None):
        """The lines of the epochs and the last one; the weights at the end go into a file."""
        with tempfile.TemporaryDirectory(prefix="vitrine-train-") as out:
            command = [self.options.vitrine, "train", "--data", self.options.data, "--config", self.options.config,
                       "--out", f"{out}/model", "--epochs", str(epochs)]
            command += ["--seed", str(seed)] if seed is not None else []
            command += ["--device", self.options.device] if self.options.device else []
            lines = lines_of(command, {}, self.options.limit)
            if weights:
                shutil.copy(f"{out}/model/model.safetensors", weights)
            return lines

    def time(self):
        lines = [line for line in self.train(1, None) if "epoch" in line]
        if len(lines) != 1:
            raise RuntimeError(f"printed {len(lines)} lines of epochs, expected 1")
        line = need(lines[0], ("seconds", "images_per_second"))
        return {"seconds": line["seconds"], "images": line["seconds"] * line["images_per_second"]}


class PyTorch:
    def __init__(self, options, version, threads, backwards=False, dtype="f32"):
        self.options, self.version, self.threads, self.backwards, self.dtype = options, version, threads, backwards, dtype
        self.name = f"pytorch, {version}" + (", backwards" if backwards else "") + (", f64" if dtype == "f64" else "")
        self.environment = next(iter(openblas().values()))
        if options.passive:
            self.environment = {**self.environment, "OMP_WAIT_POLICY": "passive"}

    def call(self, *words):
        command = [sys.executable, HERE / "peers" / "pytorch_train.py", "--data", self.options.data, "--config",
                   self.options.config, "--version", self.version, "--threads", str(self.threads), *map(str, words)]
        return lines_of(command, self.environment, self.options.limit)

    def train(self, epochs, seed, weights=None):
        return self.call("--epochs", epochs, "--seed", seed, "--dtype", self.dtype,
                         *(["--backwards"] if self.backwards else []), *(["--out", weights] if weights else []))

    def time(self):
        steps = self.options.looped_steps if self.version == "looped" else self.options.steps
        line = need(self.call("--steps", steps)[-1], ("epoch_seconds", "step_ms", "images"))
        return {**line, "seconds": line["epoch_seconds"]}

    def check(self):
        return self.call("--check")[-1]


def time_all(systems, options, rows, save):
    """All rounds of all systems, into `rows`."""
    rows += [{"system": system.name, "threads": system.threads, "rounds": []} for system in systems]
    for turn in range(options.rounds):
        for system, row in zip(systems, rows):
            if "refused" in row:
                continue
            try:
                row["rounds"].append(system.time())
                say(f"round {turn + 1} of {options.rounds}: {title(row)}: {row['rounds'][-1]['seconds']:.2f} s an epoch")
            except RuntimeError as error:
                row["refused"], row["rounds"] = str(error), []
                say(f"{title(row)}: {error}")
        summarise(rows, options.step_images)
        save()


def summarise(rows, step_images):
    ours = next((row for row in rows if row["system"] == "vitrine" and row["rounds"]), None)
    for row in rows:
        if not row["rounds"]:
            continue
        seconds = [one["seconds"] for one in row["rounds"]]
        images = row["rounds"][0]["images"]
        row.update(seconds=statistics.median(seconds), least=min(seconds), most=max(seconds),
                   images_per_second=images / statistics.median(seconds),
                   step_seconds=statistics.median(seconds) / math.ceil(images / step_images))
        if ours:  # round by round, so that what both suffered in one round cancels
            row["times_vitrine"] = statistics.median(
                a["seconds"] / b["seconds"] for a, b in zip(row["rounds"], ours["rounds"]))


def distance(weights, reference):
    """How far one file's weights are from another's, relative to these. Without the biases of keys, which change no
    result (softmax takes no notice): their gradients are rounding, which Adam makes steps of its usual length."""
    import numpy as np
    from safetensors.numpy import load_file

    apart = whole = 0.0
    theirs = load_file(weights)
    for name, values in load_file(reference).items():
        difference = theirs[name].astype(np.float64) - values
        if name.endswith("attn.k.bias"):
            continue
        if name.endswith("attn.qkv.bias"):
            difference, values = (np.concatenate([part for i, part in enumerate(np.split(both, 3)) if i != 1])
                                  for both in (difference, values))
        apart, whole = apart + float((difference**2).sum()), whole + float((values.astype(np.float64)**2).sum())
    return (apart / whole) ** 0.5


def train_all(systems, options, epochs, results, save):
    """Each system once a seed, in turns, into `results`. With --distance the first is what the others are held against."""
    for seed in options.seeds:
        with tempfile.TemporaryDirectory(prefix="vitrine-weights-") as folder:
            for system in systems:
                result = {"system": system.name, "threads": system.threads, "seed": seed}
                weights = f"{folder}/{systems.index(system)}.safetensors" if options.distance else None
                try:
                    lines = system.train(epochs, seed, weights)
                    result["epochs"] = [line for line in lines if "epoch" in line]
                    result.update(need(lines[-1], ("test_loss", "test_accuracy")))
                    result["loss"] = need(result["epochs"][-1], ("loss",))["loss"]
                    if options.distance and system is not systems[0]:
                        result["distance"] = distance(weights, f"{folder}/0.safetensors")
                    say(f"seed {seed}: {title(result)}: accuracy {result['test_accuracy']:.4f}")
                except (RuntimeError, IndexError, OSError) as error:
                    result["refused"] = str(error)
                    say(f"seed {seed}: {title(result)}: {error}")
                results.append(result)
                save()


def title(row):
    threads = {None: "", 1: ", 1 thread"}.get(row["threads"], f", {row['threads']} threads")
    return row["system"] + threads


def times_table(rows):
    lines = ["| system | seconds an epoch (least to most) | ms a step | images/s | times Vitrine's time |",
             "|---|---|---|---|---|"]
    for row in rows:
        if not row["rounds"]:
            lines.append(f"| {title(row)} | – | – | – | {row.get('refused', 'not measured').splitlines()[-1]} |")
            continue
        cell = f"{row['times_vitrine']:.2f}" if "times_vitrine" in row else "–"
        lines.append(f"| {title(row)} | {row['seconds']:.2f} ({row['least']:.2f} to {row['most']:.2f}) | "
                     f"{1e3 * row['step_seconds']:.1f} | {row['images_per_second']:.0f} | {cell} |")
    return "\n".join(lines)


def results_table(results):
    lines = ["| system | seed | last epoch's loss | test loss | test accuracy | from f64's weights | seconds |",
             "|---|---|---|---|---|---|---|"]
    for result in results:
        start = f"| {title(result)} | {result['seed']} |"
        if "refused" in result:
            lines.append(f"{start} – | – | {result['refused'].splitlines()[-1]} | – | – |")
            continue
        apart = f"{result['distance']:.0e}" if "distance" in result else "–"
        seconds = sum(line.get("seconds", 0) for line in result["epochs"])
        lines.append(f"{start} {result['loss']:.4f} | {result['test_loss']:.4f} | {100 * result['test_accuracy']:.2f} % | "
                     f"{apart} | {seconds:.0f} |")
    seeds = {result["seed"] for result in results if "test_accuracy" in result}
    return "\n".join(lines) + ("\n\n" + accuracies_table(results) if len(seeds) > 1 else "")


def spread(values):
    """Mean, standard error of the mean, least and most."""
    error = f" ± {statistics.stdev(values) / len(values) ** 0.5:.2f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.2f}{error} | {min(values):.2f} to {max(values):.2f}"


def accuracies_table(results):
    """The means over all seeds, and of the differences of each two systems from the same seed."""
    found = {}
    for result in results:
        if "test_accuracy" in result:
            found.setdefault(title(result), {})[result["seed"]] = 100 * result["test_accuracy"]
    lines = ["| test accuracy, % | seeds | mean ± its standard error | least to most |", "|---|---|---|---|"]
    for name, accuracies in found.items():
        lines.append(f"| {name} | {len(accuracies)} | {spread(list(accuracies.values()))} |")
    for (name, ours), (other, theirs) in itertools.combinations(found.items(), 2):
        differences = [ours[seed] - theirs[seed] for seed in ours if seed in theirs]
        if differences:
            lines.append(f"| {name} less {other} | {len(differences)} | {spread(differences)} |")
    return "\n".join(lines)


def with_fields(config, assignments):
    """The configuration with other values, each FIELD=JSON or GROUP.FIELD=JSON. Vitrine says which fields there are."""
    for assignment in assignments:
        field, equals, value = assignment.partition("=")
        *groups, name = field.split(".")
        if not name or not equals:
            raise ValueError(f"--set takes FIELD=VALUE, not '{assignment}'")
        place = config
        for group in groups:
            place = place.setdefault(group, {})
        try:
            place[name] = json.loads(value)
        except ValueError:
            place[name] = value  # a word
    return config


def machine():
    cpu = pathlib.Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in cpu.read_text().splitlines() if line.startswith("model name")]
    return f"{names[0] if names else 'unknown CPU'}, {os.cpu_count()} processors"


def text_of(made):
    changed = f" with {', '.join(made['set'])}" if made["set"] else ""
    text = f"{made['config']}{changed} on {made['data']}, {made['machine']}, {made['date']}."
    if made["agreement"]:
        text += (f" PyTorch's two versions of the model agree to {made['agreement']['loss']:.0e} in the loss and "
                 f"{made['agreement']['gradients']:.0e} in the gradients (float64).")
    if any("step_ms" in one for row in made["times"] for one in row["rounds"]):
        text += f" PyTorch's epochs are scaled from {made['steps']} steps ({made['looped_steps']} of the looped version)."
    tables = ([times_table(made["times"])] if made["times"] else []) + (
        [results_table(made["results"])] if made["results"] else [])
    return "\n\n".join([text, *tables])


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder with MNIST's IDX files or CIFAR-10's binary ones")
    parser.add_argument("--config", default=str(HERE.parent / "configs" / "mnist-myvit.json"))
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", dest="fields",
                        help="another value for a field of the configuration, for all systems")
    parser.add_argument("--vitrine", default=str(HERE.parent / "build" / "release" / "vitrine"))
    parser.add_argument("--device", default="", help="Vitrine's")
    parser.add_argument("--versions", default="looped,fast,compiled", help="of PyTorch's side; empty: Vitrine alone")
    parser.add_argument("--threads", default="1,2", help="of PyTorch: each version with each of these")
    parser.add_argument("--passive", action="store_true", help="PyTorch's threads sleep while they wait")
    parser.add_argument("--rounds", type=int, default=3, help="0: no times")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--looped-steps", type=int, default=10)
    parser.add_argument("--seeds", default="", help="comma-separated: trains to the end with each")
    parser.add_argument("--backwards", action="store_true", help="PyTorch a second time with each seed, backwards")
    parser.add_argument("--distance", action="store_true", help="of the weights from those of a float64 training")
    parser.add_argument("--epochs", type=int, help="of that, instead of the configuration's")
    parser.add_argument("--limit", type=float, default=7200, help="seconds that one call may take")
    parser.add_argument("--json", type=pathlib.Path, help="file for all that was measured")
    parser.add_argument("--table", type=pathlib.Path, help="file for the tables, which go to stdout as well")
    options = parser.parse_args()
    try:
        options.threads = [int(word) for word in options.threads.split(",")]
        options.seeds = [int(word) for word in options.seeds.split(",") if word]
    except ValueError:
        parser.error("--threads and --seeds take whole numbers with commas between")
    options.versions = [word for word in options.versions.split(",") if word]
    for version in options.versions:
        if version not in ("looped", "fast", "compiled"):
            parser.error(f"--versions names '{version}', expected looped, fast or compiled")
    return options


def main():
    options = options_of()
    with tempfile.TemporaryDirectory(prefix="vitrine-config-") as folder:
        return measure(options, pathlib.Path(folder))


def measure(options, folder):
    try:
        config = with_fields(json.loads(pathlib.Path(options.config).read_text()), options.fields)
    except (OSError, ValueError) as error:
        sys.exit(f"train: {error}")
    options.step_images = config.get("batch_size", 128) * config.get("accumulation", 1)
    named = options.config
    if options.fields:
        options.config = str(folder / "config.json")
        (folder / "config.json").write_text(json.dumps(config))
    if "looped" in options.versions and not config["model"].get("per_head_maps"):
        say("the looped version is of MyViT alone and left out")
        options.versions.remove("looped")
    made = {"date": time.strftime("%Y-%m-%d"), "machine": machine(), "data": options.data, "config": named,
            "set": options.fields, "steps": options.steps, "looped_steps": options.looped_steps, "agreement": None, "times": [], "results": []}

    def save():
        """After each round and each training, so that whoever is cut off has what was done."""
        if options.json:
            options.json.write_text(json.dumps(made, indent=1) + "\n")
        if options.table:
            options.table.write_text(text_of(made) + "\n")

    peers = [PyTorch(options, version, threads) for version in options.versions for threads in options.threads]
    if "looped" in options.versions:
        made["agreement"] = peers[0].check()  # of no use without: an exception ends it
    systems = [Vitrine(options), *peers]
    if options.rounds:
        time_all(systems, options, made["times"], save)
    if options.seeds:
        seconds = [row.get("seconds", float("inf")) for row in made["times"]] or [0] * len(systems)
        rivals = [i for i, system in enumerate(systems) if i and system.version != "looped"]
        chosen = [systems[0], *(systems[i] for i in sorted(rivals, key=seconds.__getitem__)[:1])]
        if options.distance and len(chosen) > 1:
            chosen.insert(0, PyTorch(options, chosen[1].version, chosen[1].threads, dtype="f64"))
        if options.backwards:
            chosen += [PyTorch(options, rival.version, rival.threads, True) for rival in chosen[-1:] if rival in peers]
        train_all(chosen, options, options.epochs or config.get("epochs", 1), made["results"], save)
    save()
    print(text_of(made))
    ours = [row for row in made["times"] + made["results"] if row["system"] == "vitrine"]
    return 1 if any("refused" in row for row in ours) else 0


if __name__ == "__main__":
    sys.exit(main())
