#!/usr/bin/env python3
"""Times a ViT on ONNX Runtime and prints one JSON line.

  onnx_vit.py --model M.safetensors --input X.npy [--output logits.npy] [--graph fused|standard]
              [--provider cpu|cuda|tensorrt] [--dtype f32|f16]

onnx_graph.py writes the graph from the checkpoint, and says what the two kinds are. All of ONNX Runtime's own
graph optimisations are on for both. TensorRT runs as ONNX Runtime's provider; what it has no kernel for falls to
CUDA. On a GPU `device_ms` is the time with images and logits on the device, and f32 is f32: TF32 is off.
"""

import pathlib
import sys
import tempfile
import time

import common

CUDA = ("CUDAExecutionProvider", {"use_tf32": "0"})
PROVIDERS = {"cpu": ["CPUExecutionProvider"], "cuda": [CUDA],
             "tensorrt": [("TensorrtExecutionProvider", {"trt_fp16_enable": "1"}), CUDA]}  # its f32 would be TF32


def main():
    parser = common.parser(__doc__, dtypes=("f32", "f16"))
    parser.add_argument("--graph", choices=("fused", "standard"), default="fused")
    parser.add_argument("--provider", choices=tuple(PROVIDERS), default="cpu")
    options = parser.parse_args()
    if options.provider == "tensorrt" and options.dtype != "f16":
        common.fail(f"--provider tensorrt: found --dtype {options.dtype}, expected f16")
    try:
        import onnxruntime
    except ImportError as error:
        common.fail(f"{error}; Debian: apt install python3-onnxruntime python3-onnx")
    image = common.read_images(options)
    on_gpu = options.provider != "cpu"

    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    settings.intra_op_num_threads, settings.inter_op_num_threads = options.threads, 1
    settings.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    providers = PROVIDERS[options.provider]
    wanted = providers[0] if isinstance(providers[0], str) else providers[0][0]
    with tempfile.TemporaryDirectory(prefix="vitrine-onnx-") as scratch:
        writer = pathlib.Path(__file__).with_name("onnx_graph.py")
        common.run_quietly([sys.executable, str(writer), str(pathlib.Path(options.model).resolve()), options.arch,
                            str(len(image)), options.graph, options.dtype, "vit.onnx"], scratch)
        session = onnxruntime.InferenceSession(pathlib.Path(scratch) / "vit.onnx", settings, providers=providers)
    # A provider that can't start gives way to the next without a word.
    if session.get_providers()[0] != wanted:
        common.fail(f"ONNX Runtime runs on {session.get_providers()[0]}, expected {wanted}")

    def run():
        return session.run(None, {"images": image})[0]

    def device_ms(iterations):
        binding = session.io_binding()
        binding.bind_ortvalue_input("images", onnxruntime.OrtValue.ortvalue_from_numpy(image, "cuda", 0))
        binding.bind_output("logits", "cuda", 0)
        times = []
        for _ in range(iterations):
            started = time.perf_counter()
            session.run_with_iobinding(binding)
            binding.synchronize_outputs()
            times.append((time.perf_counter() - started) * 1e3)
        return times

    common.report(options, run, f"onnxruntime-{options.provider}", device_ms if on_gpu else None, graph=options.graph,
                  versions={"onnxruntime": onnxruntime.__version__})


if __name__ == "__main__":
    main()
