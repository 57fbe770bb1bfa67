"""What the peers in Python share: options, the same weights in torchvision's ViT, timing, the JSON line."""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "parity"))

WIDTHS = {"tiny": (192, 12, 3), "small": (384, 12, 6), "base": (768, 12, 12), "large": (1024, 24, 16)}


def fail(sentence):
    sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {sentence}")


def parser(description, dtypes=("f32",)):
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--arch", default="vit_base_patch16_224")
    made.add_argument("--model", required=True, help="a float32 checkpoint under timm's names")
    made.add_argument("--input", required=True, help="float32 images [B, 3, H, W] as .npy")
    made.add_argument("--output", help="where the logits go, as .npy")
    made.add_argument("--dtype", choices=dtypes, default="f32")
    made.add_argument("--threads", type=int, default=2)
    made.add_argument("--warmup", type=int, default=1)
    made.add_argument("--iterations", type=int, default=5, help="0: logits only")
    made.add_argument("--serve", action="store_true", help="stay, and answer requests on stdin")
    return made


def sizes_of(arch):
    """(width, depth, heads, patch, image size)"""
    found = re.fullmatch(r"vit_(tiny|small|base|large)_patch(\d+)_(\d+)", arch)
    if not found:
        fail(f"--arch is '{arch}', expected vit_(tiny|small|base|large)_patchP_SIZE")
    return (*WIDTHS[found[1]], int(found[2]), int(found[3]))


def plain_model(options):
    """The ViT as a PyTorch module in PyTorch's own functions, with attention fused; and the images. Layers have
    timm's names, and are called in timm's order."""
    import safetensors.torch
    import torch

    state = safetensors.torch.load_file(options.model)
    _, depth, heads, _, _ = sizes_of(options.arch)
    functions = torch.nn.functional

    class Vit(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, values in state.items():
                self.register_buffer(name.replace(".", "_"), values)

        def weight(self, name):
            return getattr(self, name.replace(".", "_"))

        def linear(self, x, name):
            return functions.linear(x, self.weight(f"{name}.weight"), self.weight(f"{name}.bias"))

        def norm(self, x, name):
            return functions.layer_norm(x, x.shape[-1:], self.weight(f"{name}.weight"), self.weight(f"{name}.bias"),
                                        1e-6)

        def attention(self, x, name):
            batch, tokens, width = x.shape
            qkv = self.linear(x, f"{name}.qkv").reshape(batch, tokens, 3, heads, width // heads)
            mixed = functions.scaled_dot_product_attention(*qkv.permute(2, 0, 3, 1, 4).unbind(0))
            return self.linear(mixed.transpose(1, 2).reshape(batch, tokens, width), f"{name}.proj")

        def forward(self, images):
            kernel = self.weight("patch_embed.proj.weight")
            patches = functions.conv2d(images, kernel, self.weight("patch_embed.proj.bias"), stride=kernel.shape[-1])
            tokens = patches.flatten(2).transpose(1, 2)
            x = torch.cat([self.weight("cls_token").expand(len(images), -1, -1), tokens], 1) + self.weight("pos_embed")
            for block in (f"blocks.{i}" for i in range(depth)):
                x = x + self.attention(self.norm(x, f"{block}.norm1"), f"{block}.attn")
                hidden = functions.gelu(self.linear(self.norm(x, f"{block}.norm2"), f"{block}.mlp.fc1"))
                x = x + self.linear(hidden, f"{block}.mlp.fc2")
            return self.linear(self.norm(x[:, 0], "norm"), "head")

    return Vit().eval(), torch.from_numpy(read_images(options))


def timm_model(options):
    """timm's own ViT with the checkpoint's weights, and the images."""
    import safetensors.torch
    import timm
    import torch

    model = timm.create_model(options.arch, num_classes=1000)
    model.load_state_dict(safetensors.torch.load_file(options.model))
    return model.eval(), torch.from_numpy(read_images(options))


def read_images(options):
    size = sizes_of(options.arch)[-1]
    image = np.load(options.input)
    if image.dtype != np.float32 or image.ndim != 4 or image.shape[1:] != (3, size, size):
        fail(f"{options.input} holds {image.dtype} {image.shape}, expected float32 (B, 3, {size}, {size})")
    return image


def torchvision_model(options):
    """torchvision's ViT with the checkpoint's weights, and the images."""
    import safetensors.torch
    import torch
    from torchvision.models.vision_transformer import VisionTransformer

    import naming  # the same weights under torchvision's names

    width, depth, heads, patch, size = sizes_of(options.arch)
    state = safetensors.torch.load_file(options.model)
    model = VisionTransformer(image_size=size, patch_size=patch, num_layers=depth, num_heads=heads, hidden_dim=width,
                              mlp_dim=4 * width, num_classes=len(state["head.bias"]))
    try:
        model.load_state_dict(naming.to_torchvision(state))
    except RuntimeError as error:
        fail(f"{options.model} does not fit the architecture: {error}")
    return model.eval(), torch.from_numpy(read_images(options))


def run_quietly(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"{command[0]}: exit status {done.returncode}: {(done.stdout + done.stderr).strip()[-500:]}")


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


class Measured:
    """A peer that is ready to run: its first logits, and its times on demand. `run` takes the images in the host's
    memory and gives the logits there, as an array. `device_ms`, where a peer has it, gives what one run takes on
    the device alone, with the images there already, so many times."""

    def __init__(self, options, run, peer, device_ms=None, **more):
        self.run, self.device_ms, self.more = run, device_ms, more
        self.last = self.first = run()
        for _ in range(options.warmup - 1):
            run()
        if self.first.ndim != 2 or not np.isfinite(self.first).all():
            fail(f"the logits, of shape {self.first.shape}, are not all finite")
        self.line = {"peer": peer, "arch": options.arch, "batch": len(self.first), "dtype": options.dtype,
                     "threads": options.threads}

    def save(self, path):
        np.save(path, np.ascontiguousarray(self.first, dtype="<f4"))

    def time(self, iterations):
        times = []
        for _ in range(iterations):
            started = time.perf_counter_ns()
            self.last = self.run()
            times.append((time.perf_counter_ns() - started) / 1e6)
        line = dict(self.line)
        if times:
            line.update(median_ms=statistics.median(times), min_ms=min(times), max_ms=max(times))
        if times and self.device_ms:
            line["device_ms"] = statistics.median(self.device_ms(iterations))
        line["checksum"] = fnv1a(np.ascontiguousarray(self.last, dtype="<f4").tobytes())
        return {**line, **self.more}


def report(options, run, peer, device_ms=None, **more):
    """Does what the options ask for and prints a JSON line; with --serve, a line for each line that asks."""
    measured = Measured(options, run, peer, device_ms, **more)
    if options.output:
        measured.save(options.output)
    if options.serve:
        serve({"logits": lambda path: measured.save(path) or {}, "time": measured.time})
    else:
        print(json.dumps(measured.time(options.iterations)))


def serve(answers):
    """Answers lines like {"time": 5} on stdin with a JSON line each, until there are no more. What takes long to
    get ready (a compiled model) stays ready from one round to the next."""
    print(json.dumps({"ready": True}), flush=True)
    for request in sys.stdin:
        (name, argument), = json.loads(request).items()
        try:
            answer = answers[name](argument)
        except Exception as error:  # to whoever asked; the next question may be answered
            answer = {"error": f"{type(error).__name__}: {error}".strip().splitlines()[0][:300]}
        print(json.dumps(answer), flush=True)
