"""Is a fixture a good judge? Its outputs vary, every weight shows in them, and rounding does not."""

import re

import numpy as np
import torch
from torch import nn

import positions

# A key bias adds the same number to a whole row of scores, which softmax takes away again.
INERT = re.compile(r"k_mappings\.\d+\.bias$")
EPS = {1e-12, 1e-6, 1e-5}  # of the families' norms


def relative_error(value, reference):
    return float(np.linalg.norm(value - reference) / np.linalg.norm(reference))


def run(model, image, dtype=torch.float64):
    with torch.inference_mode():
        return {k: v.double().numpy() for k, v in model(torch.from_numpy(image).to(dtype)).items()}


def variation(values):
    """The smaller of the spread within a row and the spread between images, against the values' size."""
    size = np.sqrt((values**2).mean())
    return min(values.std(axis=-1).mean(), values.std(axis=0).mean()) / size


def sensitivity(model, image, reference, judged):
    """(least relative change, tensor) of the judged output over all tensors, each rotated by one element."""
    least = (np.inf, "")
    state = {name: value.clone() for name, value in model.state_dict().items()}
    for name, value in state.items():
        if INERT.search(name):
            continue
        model.load_state_dict({**state, name: value.flatten().roll(1).view(value.shape)})
        least = min(least, (relative_error(run(model, image)[judged], reference[judged]), name))
    model.load_state_dict(state)
    return least


def eps_sensitivity(model, image, reference, judged):
    """The least relative change when every norm takes another family's eps."""
    norms = [module for module in model.modules() if isinstance(module, nn.LayerNorm)]
    own = norms[0].eps
    least = np.inf
    for eps in EPS - {own}:
        for norm in norms:
            norm.eps = eps
        least = min(least, relative_error(run(model, image)[judged], reference[judged]))
    for norm in norms:
        norm.eps = own
    return least


def f16_emulated(model, image, wide=()):
    """The outputs when weights and every matrix product's inputs and outputs are stored in f16.

    Sums, softmax, norms, the residual stream, biases, logits and the layers `wide` stay exact: what f16
    storage costs at least.
    """
    hooks, saved = [], {}
    for name, module in model.named_modules():
        if any(name.startswith(layer) for layer in wide):
            continue
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            saved[module] = module.weight.detach().clone()
            module.weight.data = module.weight.data.half().double()
            hooks.append(
                module.register_forward_pre_hook(lambda _, args: tuple(a.half().double() for a in args))
            )
            if name.endswith(("qkv", "fc1", "attn_pool.q", "attn_pool.kv", "_mappings.0", "_mappings.1")):
                hooks.append(module.register_forward_hook(lambda _, __, out: out.half().double()))
    out = run(model, image)
    for hook in hooks:
        hook.remove()
    for module, weight in saved.items():
        module.weight.data = weight
    return out


def worst(outputs, reference, listed):
    return max(relative_error(outputs[what], reference[what]) for what in listed)


def judged_output(case):
    return "logits" if "logits" in case.outputs else "features"


def check_resized(case, resized, limits):
    """ValueError when another rule of resampling positions would pass for the library's own."""
    judged = judged_output(case)
    own = resized.reference()[judged]
    others = positions.RULES.keys() - {positions.rule_of(case.naming)}
    least = min(relative_error(resized.reference(rule)[judged], own) for rule in others)
    if variation(own) < 0.05 or least < 20 * limits["f32"]:
        raise ValueError(f"{case.name}: another rule for the positions changes {judged} by {least:.2g} only")
    return f", another rule for positions {least:.2g}"


def check(case, built, reference, limits):
    """A line of figures; ValueError when the fixture would hide a mistake or fail an honest run."""
    judged = judged_output(case)
    for what in case.outputs:
        if not np.isfinite(reference[what]).all():
            raise ValueError(f"{case.name}: {what} is not finite")
        if variation(reference[what]) < 0.05:
            raise ValueError(
                f"{case.name}: {what} hardly varies ({variation(reference[what]):.2g} of its size)"
            )
    least, tensor = sensitivity(built.model, built.image, reference, judged)
    if least < 2 * limits["f16"]:
        raise ValueError(
            f"{case.name}: rotating {tensor} changes {judged} by {least:.2g} only, f16's limit would hide it"
        )
    of_eps = ""
    if case.quiet:
        least_eps = eps_sensitivity(built.model, built.image, reference, judged)
        if least_eps < 2 * limits["f16"]:
            raise ValueError(f"{case.name}: another eps changes {judged} by {least_eps:.2g} only")
        of_eps = f", another eps {least_eps:.2f}"
    wide = ("blocks.0.mlp",) if case.large else ()
    half = worst(f16_emulated(built.model, built.image, wide), reference, case.outputs)
    single = worst(run(built.model.float(), built.image, torch.float32), reference, case.outputs)
    built.model.double()
    if single > limits["f32"] / 2 or half > limits["f16"] / 2:
        raise ValueError(
            f"{case.name}: rounding alone costs {single:.1e} in f32 and {half:.1e} in f16, "
            "more than half of the limits: the weights are badly chosen"
        )
    return f"least change {least:.2f} ({tensor}){of_eps}, rounding f32 {single:.1e} f16 {half:.1e}"
