"""What both halves of coverage.py do: weights that hide nothing, a run of `vitrine`, a verdict on what it gave."""

import subprocess

import numpy as np
import torch

LIMIT = 2e-5
F16_LIMIT = 5e-3
IN_F16 = ("--dtype", "f16")


def randomised(model):
    """Not the initialisation, in which gates and positions are zeros that hide mistakes."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float32)
                scale = 0.02 if parameter.dim() > 1 else 0.1
                parameter.add_(noise.mul_(scale).to(parameter.dtype))
    return model.eval()


def run(program, model, image, output, what=None, extra=()):
    """What the program gave, or the last line of what it said."""
    output.unlink(missing_ok=True)
    command = [program, "run", "--model", model, "--input", image, "--output", output, *extra]
    done = subprocess.run([str(word) for word in command + (["--what", what] if what else [])], capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.returncode, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "said nothing"
    return np.load(output), 0, " ".join(line for line in done.stderr.splitlines() if "warning" in line)


def judge(got, wanted, limit=LIMIT):
    if got is None:
        return None
    if got[0] is None:
        said = got[2].split(".safetensors: ")[-1].split("config.json: ")[-1].removeprefix("vitrine: ")
        return ("asked" if "--set" in said else "refused"), said
    if got[0].shape != wanted.shape:
        return "wrong", f"shape {got[0].shape}, expected {wanted.shape}"
    error = float(np.abs(got[0] - wanted).max() / np.abs(wanted).max())
    return ("right" if error <= limit else "wrong"), f"{error:.0e}"
