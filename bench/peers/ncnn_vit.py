#!/usr/bin/env python3
"""Times a ViT on ncnn, on the CPU or on Vulkan, and prints one JSON line.

  ncnn_vit.py --model M.safetensors --input X.npy [--output logits.npy] [--backend vulkan|cpu]

pnnx converts torchvision's ViT with the checkpoint's weights (as float32) when it runs; that takes no part
of the time. Both come from PyPI: pip install ncnn pnnx. --options turns ncnn's own options on and off
(`use_fp16_arithmetic=0,use_tensor_storage=1`); --plain turns off all that rounds to 16 bits, and with it the
cooperative matrices.

Images go in one by one. --whole-batch converts and feeds the batch as a whole, for which ncnn 1.0.20261020 and its
pnnx have the means, but of this model they make a net that crashes on the CPU and has wrong logits on Vulkan.
"""

import pathlib
import tempfile

import numpy as np
import torch

import common
from ncnn_options import set_options

NO_BATCH = 233  # ncnn's word for it


def import_ncnn():
    try:
        import ncnn
        import pnnx
    except ImportError as error:
        common.fail(f"ncnn and pnnx are not installed ({error}); pip install ncnn pnnx")
    return ncnn, pnnx


def convert(pnnx, model, image, folder):
    """The model's .param and .bin; pnnx talks a lot, which nobody needs unless it fails."""
    with torch.no_grad():
        torch.jit.trace(model, image, check_trace=False).save(folder / "vit.pt")
    shape = ",".join(map(str, image.shape))
    common.run_quietly([pnnx.EXEC_PATH, "vit.pt", f"inputshape=[{shape}]", "fp16=0"], folder)
    files = [folder / "vit.ncnn.param", folder / "vit.ncnn.bin"]
    for file in files:
        if not file.exists():
            common.fail("pnnx wrote no " + file.name)
    unknown = [line for line in files[0].read_text().splitlines() if line.startswith(("aten::", "pnnx.", "torch."))]
    if unknown:
        common.fail(f"pnnx left an operator that ncnn has not: {unknown[0].split()[0]}")
    return files


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--backend", choices=("vulkan", "cpu"), default="vulkan")
    parser.add_argument("--device", type=int, default=0, help="the Vulkan device's number")
    parser.add_argument("--plain", action="store_true", help="nothing rounded to 16 bits on the way")
    parser.add_argument("--options", default="", help="ncnn's, NAME=0|1, comma-separated")
    parser.add_argument("--whole-batch", action="store_true", help="not one image at a time")
    options = parser.parse_args()
    ncnn, pnnx = import_ncnn()
    torch.set_num_threads(options.threads)
    model, image = common.torchvision_model(options)
    fed = len(image) if options.whole_batch else 1

    with tempfile.TemporaryDirectory(prefix="vitrine-ncnn-") as scratch:
        folder = pathlib.Path(scratch)
        param, weights = convert(pnnx, model, image[:fed], folder)
        net = ncnn.Net()
        chosen = {"use_vulkan_compute": options.backend == "vulkan", "num_threads": options.threads}
        set_options(net, chosen, options.plain, options.options)
        if options.backend == "vulkan":
            if not 0 <= options.device < ncnn.get_gpu_count():
                common.fail(f"--device is {options.device}, and ncnn finds {ncnn.get_gpu_count()} Vulkan devices")
            net.set_vulkan_device(options.device)
        if net.load_param(str(param)) or net.load_model(str(weights)):
            common.fail("ncnn can't load what pnnx wrote")
    pixels = image.numpy()

    def run():
        logits = []
        for first in range(0, len(pixels), fed):
            extractor = net.create_extractor()
            part = pixels[first] if fed == 1 else pixels
            extractor.input("in0", ncnn.Mat(part, NO_BATCH if fed == 1 else 0).clone())
            status, out = extractor.extract("out0")
            if status:
                common.fail(f"ncnn stopped with status {status}")
            images = [out] if fed == 1 else [out.batch(i) for i in range(out.n)]
            logits += [np.array(one, dtype=np.float32).reshape(1, -1) for one in images]
        return np.concatenate(logits)

    device = ncnn.get_gpu_info(options.device).device_name() if options.backend == "vulkan" else "CPU"
    common.report(options, run, f"ncnn-{options.backend}", device=device,
                  configuration="one image at a time" if len(image) > fed else "",
                  versions={"ncnn": ncnn.__version__, "torch": torch.__version__})


if __name__ == "__main__":
    main()
