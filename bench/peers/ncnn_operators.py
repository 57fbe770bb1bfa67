#!/usr/bin/env python3
"""ViT-B/16's products and attention on ncnn's Vulkan backend, one image, for bench/zoo_peers.py: what matters is which
pipelines ncnn makes for them and launches. On a make-believe device nothing is computed, so nothing is checked.

    ncnn_operators.py                                      ncnn's defaults
    ncnn_operators.py --options use_fp16_arithmetic=0      stored in f16, summed in f32
    ncnn_operators.py --plain                              nothing in 16 bits

The layers are those that pnnx makes of torchvision's ViT: the MLP's products by Gemm, qkv and proj inside MultiHeadAttention.
It prints one JSON line. ncnn comes from PyPI: pip install ncnn.
"""
import argparse
import json
import pathlib
import sys
import tempfile

from ncnn_options import set_options

TOKENS, WIDTH, HEADS, HIDDEN = 197, 768, 12, 3072
LOADER = "libvulkan.so.1"  # by itself ncnn opens a driver, and no layers


def gemm(k, n):
    """An input's width, the layer and its weights: whether a matrix, which has a tag in front, and how many numbers."""
    return k, f"Gemm gemm 1 1 in0 out0 10=4 2=0 3=1 4=0 5=1 6=1 7={TOKENS} 8={n} 9={k}", [(True, n * k), (True, n)]


LAYERS = [gemm(WIDTH, HIDDEN), gemm(HIDDEN, WIDTH),
          (WIDTH, f"MultiHeadAttention attention 1 1 in0 out0 0={WIDTH} 1={HEADS} 2={WIDTH * WIDTH} 3={WIDTH} 4={WIDTH}",
           [(True, WIDTH * WIDTH), (False, WIDTH)] * 4)]


def run(ncnn, options, width, layer, weights, folder):
    net = ncnn.Net()
    set_options(net, {"use_vulkan_compute": True, "num_threads": 1}, options.plain, options.options)
    net.set_vulkan_device(options.device)
    param, model = folder / "layer.param", folder / "layer.bin"
    param.write_text(f"7767517\n2 2\nInput in0 0 1 in0\n{layer}\n")
    model.write_bytes(b"".join(bytes(4 * (tagged + count)) for tagged, count in weights))
    if net.load_param(str(param)) or net.load_model(str(model)):
        sys.exit(f"ncnn_operators.py: ncnn can't load its {layer.split()[0]}")
    extractor = net.create_extractor()
    extractor.input("in0", ncnn.Mat(width, TOKENS))
    status, _ = extractor.extract("out0")
    if status:
        sys.exit(f"ncnn_operators.py: ncnn's {layer.split()[0]} stopped with status {status}")
    return net  # kept until the end, so that no pipeline has the handle of one before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", type=int, default=0, help="the Vulkan device's number")
    parser.add_argument("--plain", action="store_true", help="nothing rounded to 16 bits")
    parser.add_argument("--options", default="", help="ncnn's, NAME=0|1, comma-separated")
    options = parser.parse_args()
    try:
        import ncnn
    except ImportError as error:
        sys.exit(f"ncnn_operators.py: ncnn is not installed ({error}); pip install ncnn")
    if ncnn.create_gpu_instance(LOADER) or not 0 <= options.device < ncnn.get_gpu_count():
        sys.exit(f"ncnn_operators.py: --device is {options.device}, and ncnn finds {ncnn.get_gpu_count()} Vulkan devices")
    with tempfile.TemporaryDirectory() as folder:
        kept = [run(ncnn, options, *layer, pathlib.Path(folder)) for layer in LAYERS]
    print(json.dumps({"peer": "ncnn-vulkan", "version": f"ncnn {ncnn.__version__}",
                      "device": ncnn.get_gpu_info(options.device).device_name()}), flush=True)
    del kept
    ncnn.destroy_gpu_instance()


if __name__ == "__main__":
    main()
