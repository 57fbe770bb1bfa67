#!/usr/bin/env python3
"""Times a ViT on ONNX Runtime's CPU provider and prints one JSON line.

  onnx_vit.py --model M.safetensors --input X.npy [--output logits.npy] [--graph fused|standard]

onnx_graph.py writes the graph from the checkpoint, and says what the two kinds are. All of ONNX Runtime's own
graph optimisations are on for both.
"""

import pathlib
import sys
import tempfile

import common


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--graph", choices=("fused", "standard"), default="fused")
    options = parser.parse_args()
    try:
        import onnxruntime
    except ImportError as error:
        common.fail(f"{error}; Debian: apt install python3-onnxruntime python3-onnx")
    image = common.read_images(options)

    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    settings.intra_op_num_threads, settings.inter_op_num_threads = options.threads, 1
    settings.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    with tempfile.TemporaryDirectory(prefix="vitrine-onnx-") as scratch:
        writer = pathlib.Path(__file__).with_name("onnx_graph.py")
        common.run_quietly([sys.executable, str(writer), str(pathlib.Path(options.model).resolve()), options.arch,
                            str(len(image)), options.graph, "vit.onnx"], scratch)
        session = onnxruntime.InferenceSession(pathlib.Path(scratch) / "vit.onnx", settings,
                                               providers=["CPUExecutionProvider"])

    def run():
        return session.run(None, {"images": image})[0]

    common.report(options, run, "onnxruntime-cpu", graph=options.graph,
                  versions={"onnxruntime": onnxruntime.__version__})


if __name__ == "__main__":
    main()
