#!/usr/bin/env python3
"""Times one operator of PyTorch's, for bench/operators.py, and answers requests on stdin (see common.serve).

  pytorch_operator.py --op matmul --shape 50432x3072x768 --dtype f16 --device cuda

The shapes are those of `vitrine bench --op`. A few rows of the result are first compared with float64. On a GPU, times
are by CUDA's events; the data lies on the device. f32 is f32: TF32 is off.
"""

import argparse
import statistics
import time

import torch

import common

DTYPES = {"f32": torch.float32, "f16": torch.float16}
ROWS = 8


def matmul(sizes, random):
    m, n, k = sizes
    x, w = random(m, k), random(n, k)
    rows = torch.linspace(0, m - 1, min(ROWS, m)).long()
    return (lambda: x @ w.t()), (lambda y: (y[rows].double(), x[rows].double() @ w.double().t())), 2 * m * n * k


def attention(sizes, random):
    images, tokens, heads, width = sizes
    # As in a ViT: three parts of one projection's output.
    q, k, v = (2 * random(images, tokens, 3, heads, width)).permute(2, 0, 3, 1, 4).unbind(0)
    rows = torch.linspace(0, tokens - 1, min(ROWS, tokens)).long()

    def run():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    def check(y):
        scores = q[0][:, rows].double() @ k[0].double().transpose(-2, -1) * width**-0.5
        return y[0][:, rows].double(), torch.softmax(scores, -1) @ v[0].double()

    return run, check, 4 * images * heads * tokens * tokens * width


def add(sizes, random):
    a, b = random(*sizes), random(*sizes)
    return (lambda: a + b), (lambda y: (y[:ROWS].double(), a[:ROWS].double() + b[:ROWS].double())), sizes[0] * sizes[1]


def times_of(run, iterations, on_gpu):
    """Seconds of each run."""
    times = []
    for _ in range(iterations):
        if on_gpu:
            before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            before.record()
            run()
            after.record()
            after.synchronize()
            times.append(before.elapsed_time(after) / 1e3)
        else:
            started = time.perf_counter()
            run()
            times.append(time.perf_counter() - started)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", choices=("matmul", "attention", "add"), required=True)
    parser.add_argument("--shape", required=True)
    parser.add_argument("--dtype", choices=tuple(DTYPES), default="f32")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    if on_gpu and not torch.cuda.is_available():
        common.fail("PyTorch finds no CUDA device")
    torch.set_num_threads(options.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    generator = torch.Generator(device=options.device).manual_seed(0)

    def random(*shape):
        values = torch.rand(shape, generator=generator, device=options.device) * 2 - 1
        return values.to(DTYPES[options.dtype])

    with torch.inference_mode():
        make = {"matmul": matmul, "attention": attention, "add": add}[options.op]
        run, check, flops = make([int(size) for size in options.shape.split("x")], random)
        out, expected = check(run())
        error = float((out - expected).norm() / expected.norm())
        end = time.perf_counter() + (1 if on_gpu else 0)  # for the clocks
        while time.perf_counter() < end:
            times_of(run, 1, on_gpu)

        def measure(seconds):
            once = statistics.median(times_of(run, 3, on_gpu))
            times = times_of(run, max(3, min(10000, int(seconds / once))), on_gpu)
            median = statistics.median(times)
            return {"op": options.op, "shape": options.shape, "dtype": options.dtype, "runs": len(times),
                    "median_ms": median * 1e3, "min_ms": min(times) * 1e3, "max_ms": max(times) * 1e3,
                    "gflops": flops / median / 1e9, "relative_error": error, "versions": {"torch": torch.__version__},
                    "device": torch.cuda.get_device_name() if on_gpu else "cpu"}

        common.serve({"time": measure})


if __name__ == "__main__":
    main()
