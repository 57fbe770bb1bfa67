"""The systems that compare.py measures: how each is called, in which configurations, and how it is installed."""
import glob
import importlib.util
import json
import os
import pathlib
import queue
import subprocess
import sys
import tempfile
import threading
import typing

HERE = pathlib.Path(__file__).resolve().parent
# Relative errors up to which logits count as right. Vitrine's are its own promises; a peer may round
# more (ggml's Vulkan backend multiplies f32 in f16 where it can, which costs it about 1.5e-3).
OURS = {"f32": 2e-5, "f16": 5e-3}
PEERS = 1e-2


def ending(status, stderr):
    lines = stderr.strip().splitlines() or ["nothing on stderr"]
    return f"exit status {status}: {lines[-1][-300:]}"


class Server:
    """A peer's program with --serve: started once, asked by JSON lines (see serve in peers/common.py)."""

    def __init__(self, command, environment, limit):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.answer(limit)

    def read(self):
        for line in self.process.stdout:
            if line.startswith("{"):  # some libraries print as well
                self.lines.put(line)
        self.lines.put("")

    def ask(self, request, limit):
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass  # the answer says how it ended
        return self.answer(limit)

    def answer(self, limit):
        try:
            line = self.lines.get(timeout=limit)
        except queue.Empty:
            self.stop()
            raise RuntimeError(f"took longer than {limit:.0f} s") from None
        if not line:
            status = self.process.wait()
            self.errors.seek(0)
            raise RuntimeError(ending(status, self.errors.read()))
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


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

    def stop(self):
        """Ends what the system may have left running."""

    def call(self, arguments, limit):
        try:
            done = subprocess.run([*self.command, *map(str, arguments)], env=self.environment, capture_output=True,
                                  text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"took longer than {limit:.0f} s") from None
        if done.returncode != 0:
            raise RuntimeError(ending(done.returncode, done.stderr))
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


class LastingPeer(System):
    """A peer that takes long to get ready: it stays from its logits to its last round."""
    server = None

    def logits(self, model, image, out, limit):
        self.stop()
        self.server = Server([*self.command, "--model", str(model), "--input", str(image), "--serve"], self.environment,
                             limit)
        self.server.ask({"logits": str(out)}, limit)

    def time(self, model, image, batch, iterations, limit):
        return self.server.ask({"time": iterations}, limit)

    def stop(self):
        if self.server:
            self.server.stop()
        self.server = None


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


def pytorch_gpu(options):
    """On a CUDA device, or in its place on the CPU: all definitions eagerly, and the plain one compiled."""
    systems = []
    for dtype in options.dtypes:
        command = [*python_peer(options, "pytorch_cuda.py"), "--device", options.gpu, "--dtype", dtype]
        words = [(definition, ["--definition", definition]) for definition in ("plain", "torchvision", "timm")
                 if importlib.util.find_spec("torch" if definition == "plain" else definition)]
        systems += [LastingPeer(f"pytorch-eager, {name} definition", dtype, [*command, *more], PEERS)
                    for name, more in words]
        systems.append(LastingPeer("pytorch-compiled, plain definition", dtype, [*command, "--compile"], PEERS))
    return systems


def onnxruntime_gpu(provider, dtypes):
    def make(options):
        return [LastingPeer(f"onnxruntime-{provider}, {graph} operators", dtype,
                            [*python_peer(options, "onnx_vit.py"), "--graph", graph, "--provider", provider, "--dtype",
                             dtype], PEERS, with_packages(options))
                for dtype in options.dtypes if dtype in dtypes
                # TensorRT knows ONNX's own operators only.
                for graph in (("standard",) if provider == "tensorrt" else ("fused", "standard"))]
    return make


def no_ggml(options):
    return "" if options.ggml and os.access(options.ggml, os.X_OK) else f"no program {options.ggml or 'ggml_vit'}"


def unless(question, why):
    """`why`, unless Python says yes; asked in another process, as looking for a GPU takes memory of it."""
    done = subprocess.run([sys.executable, "-c", f"import sys; sys.exit(0 if {question} else 3)"], capture_output=True,
                          text=True)
    if done.returncode in (0, 3):
        return why if done.returncode else ""
    return ending(done.returncode, done.stderr)


def no_cuda(options):
    if options.gpu == "cpu":
        return ""
    return unless("__import__('torch').cuda.is_available()", "PyTorch finds no CUDA device")


def no_provider(name):
    return lambda options: unless(f"'{name}' in __import__('onnxruntime').get_available_providers()",
                                  f"the onnxruntime that is installed has no {name}")


class Known(typing.NamedTuple):
    """A peer: its systems, the Python modules that they need, what else they lack, how all that is installed."""
    systems: typing.Callable
    modules: tuple
    lacks: typing.Callable
    install: str
    on_gpu: bool = False  # one that needs a GPU; the others need none


ONNX = ("onnxruntime", "onnx", "safetensors")
PEERS_BY_NAME = {
    "ggml": Known(ggml, (), no_ggml, "apt install libggml-dev libggml0-backend-vulkan, then build with "
                                     "-DVITRINE_BUILD_BENCH=ON; --ggml names the program"),
    "onnxruntime-cpu": Known(onnxruntime, ONNX, None, "apt install python3-onnxruntime python3-onnx python3-safetensors"),
    "ncnn": Known(ncnn, ("ncnn", "pnnx", "tqdm", "requests", "portalocker", "torch", "torchvision"), None,
                  "apt install python3-tqdm python3-requests python3-portalocker python3-torchvision; "
                  "pip install --no-deps --target FOLDER ncnn pnnx; --packages FOLDER"),
    "pytorch-cpu": Known(pytorch, ("torch", "torchvision", "safetensors"), None,
                         "apt install python3-torch python3-torchvision python3-safetensors libopenblas0-openmp"),
    "pytorch-cuda": Known(pytorch_gpu, ("torch", "safetensors"), no_cuda, "pip install torch safetensors", True),
    "onnxruntime-cuda": Known(onnxruntime_gpu("cuda", ("f32", "f16")), ONNX,
                              no_provider("CUDAExecutionProvider"), "pip install onnxruntime-gpu onnx", True),
    "onnxruntime-tensorrt": Known(onnxruntime_gpu("tensorrt", ("f16",)), (*ONNX, "tensorrt"),
                                  no_provider("TensorrtExecutionProvider"),
                                  "pip install onnxruntime-gpu onnx tensorrt", True),
}


def missing_part(known, options):
    """What a peer lacks on this machine, in words; nothing when all is there."""
    path = list(sys.path)
    if options.packages:
        sys.path.append(str(options.packages.resolve()))
    try:
        absent = [module for module in known.modules if importlib.util.find_spec(module) is None]
    finally:
        sys.path[:] = path
    if absent:
        return f"no Python module {', '.join(absent)}"
    return known.lacks(options) if known.lacks else ""


def systems_of(options):
    """All systems that are wanted and here, and a list of the peers that are not: (systems, absent)."""
    systems, absent = vitrine(options), []
    for name, known in PEERS_BY_NAME.items():
        if known.on_gpu and not options.gpu:
            continue
        lacks = missing_part(known, options)
        if lacks:
            absent.append({"peer": name, "why": lacks, "install": known.install})
        else:
            systems += known.systems(options)

    def any_of(words, system):
        return any(word in system.name for word in words.split(",") if word)

    return ([s for s in systems if (not options.only or any_of(options.only, s)) and not any_of(options.skip, s)],
            [a for a in absent if not options.only or any(a["peer"] in word or word in a["peer"]
                                                          for word in options.only.split(","))])
