"""The systems that compare.py measures: how each is called, in which configurations, and how it is installed."""
import glob
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Relative errors up to which logits count as right. Vitrine's are its own promises; a peer may round
# more (ggml's Vulkan backend multiplies f32 in f16 where it can, which costs it about 1.5e-3).
OURS = {"f32": 2e-5, "f16": 5e-3}
PEERS = 1e-2


class System:
    """One program that computes the logits of one checkpoint, and how to call it."""

    def __init__(self, name, dtype, command, tolerance, environment=None):
        self.name, self.dtype, self.tolerance = name, dtype, tolerance
        self.command = [str(word) for word in command]
        self.environment = {**os.environ, **(environment or {})}

    @property
    def family(self):
        """The peer, whatever its configuration."""
        return self.name.split(",")[0]

    def call(self, arguments, limit):
        try:
            done = subprocess.run([*self.command, *map(str, arguments)], env=self.environment, capture_output=True,
                                  text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"took longer than {limit:.0f} s") from None
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or ["nothing on stderr"]
            raise RuntimeError(f"exit status {done.returncode}: {lines[-1][-300:]}")
        return done.stdout


class Vitrine(System):
    def logits(self, model, image, out, limit):
        self.call(["run", "--model", model, "--input", image, "--output", out, "--dtype", self.dtype], limit)

    def time(self, model, image, batch, iterations, limit):
        return json.loads(self.call(["bench", "--model", model, "--batch", batch, "--dtype", self.dtype, "--json",
                                     "--runs", iterations], limit).splitlines()[-1])


class Peer(System):
    def logits(self, model, image, out, limit):
        self.call(["--model", model, "--input", image, "--output", out, "--iterations", 0], limit)

    def time(self, model, image, batch, iterations, limit):
        return json.loads(self.call(["--model", model, "--input", image, "--iterations", iterations],
                                    limit).splitlines()[-1])


def vitrine(options):
    return [Vitrine("vitrine", dtype, [options.vitrine, *(["--device", options.device] if options.device else [])],
                    OURS[dtype]) for dtype in options.dtypes]


def ggml(options):
    # On a software driver ggml wants to be told the device, and its cooperative matrices are wrong there.
    vulkan = [options.ggml, "--backend", "vulkan", "--device", options.device or "0"]
    no_matrix = {"GGML_VK_DISABLE_COOPMAT": "1", "GGML_VK_DISABLE_COOPMAT2": "1"}
    systems = []
    for dtype in options.dtypes:
        words = [(f"ggml-vulkan, {attention} attention{words}", [*vulkan, "--attention", attention], environment)
                 for attention in ("flash", "plain")
                 for words, environment in (("", {}), (", no cooperative matrix", no_matrix),
                                            (", no cooperative matrix, no f16", {**no_matrix, "GGML_VK_DISABLE_F16": "1"}))
                 if dtype == "f32" or "no f16" not in words]
        words.append(("ggml-cpu", [options.ggml, "--backend", "cpu", "--threads", options.threads], {}))
        systems += [Peer(name, dtype, [*command, "--dtype", dtype], PEERS, environment)
                    for name, command, environment in words]
    return systems


def python_peer(options, script):
    return [sys.executable, HERE / "peers" / script, "--arch", options.arch, "--threads", options.threads]


def with_packages(options):
    """Where Python finds what pip put into a folder: after what the machine has."""
    if not options.packages:
        return {}
    paths = [os.environ.get("PYTHONPATH", ""), str(options.packages.resolve())]
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def onnxruntime(options):
    return [Peer(f"onnxruntime-cpu, {graph} operators", "f32",
                 [*python_peer(options, "onnx_vit.py"), "--graph", graph], PEERS, with_packages(options))
            for graph in ("fused", "standard")]


def ncnn(options):
    command = [*python_peer(options, "ncnn_vit.py"), "--device", options.device or "0", "--backend"]
    environment = with_packages(options)
    # Its defaults store and multiply in 16 bits, with cooperative matrices where there are any.
    systems = [Peer(f"ncnn-{backend}, defaults", "f16", [*command, backend], PEERS, environment)
               for backend in ("vulkan", "cpu")]
    # Nothing in 16 bits, and so no cooperative matrices either: the better choice on a software driver.
    systems += [Peer(f"ncnn-{backend}, nothing in 16 bits", "f32", [*command, backend, "--plain"], PEERS, environment)
                for backend in ("vulkan", "cpu")]
    return systems


def openblas():
    """The environments in which Debian's PyTorch multiplies matrices fast, by name. Its own OpenMP threads keep
    spinning between two operators; OpenBLAS's build for OpenMP has no others, the one for pthreads fights with
    them for the cores. PyTorch builds that bring a BLAS of their own see no difference."""
    environment = {}
    cpu = pathlib.Path("/proc/cpuinfo")
    if "OPENBLAS_CORETYPE" not in os.environ and cpu.exists() and " avx512f" in cpu.read_text():
        environment["OPENBLAS_CORETYPE"] = "SkylakeX"  # OpenBLAS knows no newer CPU than itself
    found = {}
    for kind in ("openmp", "pthread"):
        for folder in glob.glob(f"/usr/lib/*/openblas-{kind}")[:1]:
            paths = os.pathsep.join(filter(None, [folder, os.environ.get("LD_LIBRARY_PATH", "")]))
            found[f"OpenBLAS for {kind}"] = {**environment, "LD_LIBRARY_PATH": paths}
    if not found:
        return {"BLAS as installed": environment}
    first = next(iter(found))
    # Where other programs want the cores as well, threads that sleep while they wait are faster.
    found[f"{first}, threads that wait asleep"] = {**found[first], "OMP_WAIT_POLICY": "passive"}
    return found


def pytorch(options):
    return [Peer(f"pytorch-cpu, {name}", "f32", python_peer(options, "pytorch_vit.py"), PEERS,
                 {**environment, **with_packages(options)}) for name, environment in openblas().items()]


# name: (systems, Python modules that they need, how these are installed)
PEERS_BY_NAME = {
    "ggml": (ggml, (), "apt install libggml-dev libggml0-backend-vulkan, then build with -DVITRINE_BUILD_BENCH=ON; "
                       "--ggml names the program"),
    "onnxruntime": (onnxruntime, ("onnxruntime", "onnx", "safetensors"),
                    "apt install python3-onnxruntime python3-onnx python3-safetensors"),
    "ncnn": (ncnn, ("ncnn", "pnnx", "tqdm", "requests", "portalocker", "torch", "torchvision"),
             "apt install python3-tqdm python3-requests python3-portalocker python3-torchvision; "
             "pip install --no-deps --target FOLDER ncnn pnnx; --packages FOLDER"),
    "pytorch": (pytorch, ("torch", "torchvision", "safetensors"),
                "apt install python3-torch python3-torchvision python3-safetensors libopenblas0-openmp"),
}


def missing_part(name, options):
    """What a peer lacks on this machine, in words; nothing when all is there."""
    if name == "ggml":
        return "" if options.ggml and os.access(options.ggml, os.X_OK) else f"no program {options.ggml or 'ggml_vit'}"
    path = list(sys.path)
    if options.packages:
        sys.path.append(str(options.packages.resolve()))
    try:
        absent = [module for module in PEERS_BY_NAME[name][1] if importlib.util.find_spec(module) is None]
    finally:
        sys.path[:] = path
    return f"no Python module {', '.join(absent)}" if absent else ""


def systems_of(options):
    """All systems that are wanted and here, and a list of the peers that are not: (systems, absent)."""
    systems, absent = vitrine(options), []
    for name, (make, _, install) in PEERS_BY_NAME.items():
        lacks = missing_part(name, options)
        if lacks:
            absent.append({"peer": name, "why": lacks, "install": install})
        else:
            systems += make(options)

    def any_of(words, system):
        return any(word in system.name for word in words.split(",") if word)

    return ([s for s in systems if (not options.only or any_of(options.only, s)) and not any_of(options.skip, s)],
            [a for a in absent if not options.only or any(a["peer"] in word or word in a["peer"]
                                                          for word in options.only.split(","))])
