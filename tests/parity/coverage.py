#!/usr/bin/env python3
"""Which architectures of timm and transformers Vitrine computes as they do, and what it says of the others.

  coverage.py SCRATCH --vitrine build/release/vitrine [--library timm,transformers] [--only PATTERN] [--table docs/coverage.md]

Each is made with random weights (of timm's with two blocks), saved as its library saves it, computed by the library in
float64 and by `vitrine run` in f32, and compared: right (at most 2e-5 of the largest number), wrong, or refused, with
Vitrine's sentence. timm's are opened a second time by their weights alone, where nothing says the architecture: those
are right, asked about, or refused. Nothing is downloaded; SCRATCH is emptied after each model.
"""

import argparse
import fnmatch
import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import timm
import torch
import transformers
from safetensors.torch import save_file

from make_tower_fixtures import frames_of, patches_of, tubelet_of

LIMIT = 2e-5
MOST_PARAMETERS = 1_000_000_000
TIMM_MODULES = ("beit cait deit eva naflexvit vision_transformer vision_transformer_hybrid vision_transformer_relpos "
                "vision_transformer_sam").split()
# Towers, classifiers and whole models, as they are published.
TRANSFORMERS = """
ASTForAudioClassification ASTModel Aimv2Model Aimv2VisionModel AltCLIPModel AltCLIPVisionModel BeitForImageClassification BeitModel
Blip2VisionModel BlipModel BlipVisionModel CLIPForImageClassification CLIPModel CLIPVisionModel CLIPVisionModelWithProjection
ChineseCLIPModel ChineseCLIPVisionModel DINOv3ViTModel Data2VecVisionForImageClassification
Data2VecVisionModel DeiTForImageClassification DeiTForImageClassificationWithTeacher DeiTModel Dinov2ForImageClassification
Dinov2Model Dinov2WithRegistersForImageClassification Dinov2WithRegistersModel IJepaForImageClassification IJepaModel
InternVLVisionModel JanusVisionModel LlavaForConditionalGeneration MLCDVisionModel MetaClip2VisionModel OwlViTForObjectDetection Owlv2VisionModel OwlViTVisionModel PixtralVisionModel
SamVisionModel Siglip2VisionModel SiglipForImageClassification SiglipModel SiglipVisionModel ViTForImageClassification ViTMAEModel
ViTMSNForImageClassification ViTMSNModel ViTModel VideoMAEModel VitDetModel VivitModel YolosModel
""".split()
# Towers whose pooled vector is the result, too; what others call a pooler is a layer for training.
POOLED = ("AST", "Aimv2", "AltCLIP", "Blip", "CLIP", "ChineseCLIP", "Janus", "Llava", "MLCD", "MetaClip2", "OwlViTVision", "Owlv2",
          "Siglip")
SMALL = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 64,
         "patch_size": 8, "vision_output_dim": 64, "projection_dim": 64}


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


def judge(got, wanted):
    if got[0] is None:
        said = got[2].split(".safetensors: ")[-1].split("config.json: ")[-1].removeprefix("vitrine: ")
        return ("asked" if "--set" in said else "refused"), said
    if got[0].shape != wanted.shape:
        return "wrong", f"shape {got[0].shape}, expected {wanted.shape}"
    error = float(np.abs(got[0] - wanted).max() / np.abs(wanted).max())
    return ("right" if error <= LIMIT else "wrong"), f"{error:.0e}"


def timm_models(only):
    for module in TIMM_MODULES:
        for name in timm.list_models(module=module):
            if fnmatch.fnmatch(name, only):
                yield name


def too_large(model, program, scratch):
    """One that can't be cut: the names of two of its blocks, which is all that a refusal looks at."""
    def is_kept(key):
        parts = key.split(".")
        return parts[0] != "blocks" or int(parts[1]) < 2
    tensors = {key: torch.zeros(tensor.shape) for key, tensor in model.state_dict().items() if is_kept(key)}
    save_file(tensors, scratch / "model.safetensors")
    np.save(scratch / "image.npy", np.zeros((1, 3, 224, 224), np.float32))
    got = run(program, scratch / "model.safetensors", scratch / "image.npy", scratch / "output.npy")
    verdict = ("not made", "too large to compare") if got[0] is not None else judge(got, np.zeros(0))
    return verdict, verdict


def cover_timm(name, program, scratch):
    arguments = {"depth": 2}
    if name.startswith("cait"):
        arguments["depth_token_only"] = 1
    torch.manual_seed(0)
    kept = {}
    if name.endswith("sapiens2"):  # its blocks differ in this, which shapes tell
        with torch.device("meta"):
            kept["num_kv_heads"] = [block.attn.num_kv_heads for block in timm.create_model(name).blocks[:2]]
    with torch.device("meta"):
        try:
            model = timm.create_model(name, **arguments, **kept)
        except (TypeError, AssertionError):
            model, arguments = timm.create_model(name), {}
    if sum(parameter.numel() for parameter in model.parameters()) > MOST_PARAMETERS:
        return too_large(model, program, scratch)
    model = randomised(timm.create_model(name, **arguments, **kept))
    folder = scratch / "model"
    folder.mkdir()
    tensors = {key: tensor.contiguous() for key, tensor in model.state_dict().items()}
    save_file(tensors, folder / "model.safetensors")
    cfg = model.pretrained_cfg
    config = {"architecture": name, "num_classes": model.num_classes, "num_features": model.num_features, "model_args": arguments,
              "global_pool": getattr(model, "global_pool", "token") or "",
              "pretrained_cfg": {"input_size": list(cfg["input_size"]), "num_classes": model.num_classes}}
    (folder / "config.json").write_text(json.dumps(config))
    image = scratch / "image.npy"
    np.save(image, np.random.default_rng(0).standard_normal((1, *cfg["input_size"])).astype(np.float32))
    output = scratch / "output.npy"
    got = run(program, folder, image, output)
    bare = run(program, folder / "model.safetensors", image, output)
    if bare[0] is None and "--image-size" in bare[2]:  # which no tensor of a model without a position table shows
        bare = run(program, folder / "model.safetensors", image, output, extra=("--image-size", "x".join(map(str, cfg["input_size"][1:]))))
    wanted = None
    if got[0] is not None or bare[0] is not None:
        with torch.no_grad():
            wanted = model.double()(torch.from_numpy(np.load(image)).double()).numpy()
    return judge(got, wanted), judge(bare, wanted)


def cover_transformers(name, program, scratch):
    torch.manual_seed(0)
    kind = getattr(transformers, name)
    config = kind.config_class()
    for part in (config, getattr(config, "vision_config", None), getattr(config, "text_config", None)):
        for key, value in SMALL.items():
            if isinstance(getattr(part, key, None), int) and not (part is not config and key == "projection_dim"):
                setattr(part, key, value)
            if part is not None and isinstance(getattr(part, key, None), (list, tuple)) and key == "image_size":
                setattr(part, key, [value, value])
        if hasattr(part, "vocab_size"):
            part.vocab_size = 128
            part.pad_token_id, part.bos_token_id, part.eos_token_id = 1, 0, 2
        if hasattr(part, "num_key_value_heads"):
            part.num_key_value_heads = 4
        if isinstance(getattr(part, "head_dim", None), int):
            part.head_dim = 16
    if hasattr(config, "mask_ratio"):
        config.mask_ratio = 0.0
    model = randomised(kind(config))
    folder = scratch / "model"
    model.save_pretrained(folder)
    image = scratch / "image.npy"
    shape = (1, 1, config.num_mel_bins, config.max_length) if name.startswith("AST") else (1, 3, 64, 64)
    if hasattr(config, "num_frames"):
        shape = (1, 3 * tubelet_of(config), 64 * (config.num_frames // tubelet_of(config)), 64)
    np.save(image, np.random.default_rng(0).standard_normal(shape).astype(np.float32))
    pixels = torch.from_numpy(np.load(image)).double()
    arguments = {"noise": torch.arange(64.0)[None]} if "MAE" in name else {}
    extra = ()
    if name.startswith("AST"):
        pixels = pixels[:, 0].transpose(1, 2)
    if hasattr(config, "num_frames"):
        pixels = frames_of(pixels, config)
    if name == "Siglip2VisionModel":
        pixels, arguments = patches_of(pixels, 8)
        extra = ("--image-size", "64")
    what = "logits" if "Classification" in name else "tokens"
    got = run(program, folder, image, scratch / "output.npy", what, extra)
    wanted = None
    if got[0] is not None:
        tower = model.double()
        if name == "LlavaForConditionalGeneration":
            tower = tower.model.vision_tower
        elif name == "OwlViTForObjectDetection":
            tower = tower.owlvit.vision_model
        elif hasattr(tower, "vision_model") and hasattr(tower, "text_model"):
            tower = tower.vision_model
        with torch.no_grad():
            out = tower(pixels, **arguments)
            wanted = (out.logits if what == "logits" else out.last_hidden_state).numpy()
            if wanted.ndim == 4:  # laid out as a picture: here the patches are rows
                wanted = wanted.reshape(*wanted.shape[:2], -1).transpose(0, 2, 1)
    verdict = judge(got, wanted)
    if verdict[0] == "right" and what == "tokens" and name.startswith(POOLED):
        pooled = out.image_embeds if hasattr(out, "image_embeds") else out.pooler_output
        if tower is not model and hasattr(model, "visual_projection"):
            pooled = model.visual_projection(pooled)
        verdict = judge(run(program, folder, image, scratch / "output.npy", "features", extra), pooled.detach().numpy())
    return (verdict,)


def covered(function, name, arguments, scratch):
    for old in scratch.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    try:
        return function(name, arguments.vitrine, scratch)
    except Exception as error:  # the library's own; said in the table
        return (("not made", f"{type(error).__name__}: {error}".splitlines()[0][:120]),)


def cell(verdict):
    state, words = verdict
    return f"{state} ({words})" if words else state


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("--vitrine", type=pathlib.Path, required=True)
    parser.add_argument("--library", default="timm,transformers")
    parser.add_argument("--only", default="*")
    parser.add_argument("--table", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.vitrine = arguments.vitrine.resolve()
    scratch = arguments.scratch / "coverage"
    scratch.mkdir(parents=True, exist_ok=True)
    parts, wrong = [], 0
    for library in arguments.library.split(","):
        if library == "timm":
            title, function, names = f"timm {timm.__version__}", cover_timm, list(timm_models(arguments.only))
            columns = ["with config.json", "weights alone"]
        else:
            title, function = f"transformers {transformers.__version__}", cover_transformers
            names = [name for name in TRANSFORMERS if fnmatch.fnmatch(name, arguments.only)]
            columns = ["as saved"]
        rows = []
        for name in names:
            verdicts = covered(function, name, arguments, scratch)
            print(name, *(cell(verdict) for verdict in verdicts), sep="\t", flush=True)
            rows.append((name, verdicts))
        counts = []
        for column, heading in enumerate(columns):
            states = [verdicts[min(column, len(verdicts) - 1)][0] for _, verdicts in rows]
            wrong += states.count("wrong")
            found = ", ".join(f"{states.count(state)} {state}" for state in ("right", "asked", "refused", "wrong", "not made")
                              if state in states)
            counts.append(f"{heading}: {found}")
        lines = [f"| {name} | " + " | ".join(cell(verdict) for verdict in verdicts) + " |" for name, verdicts in rows]
        parts.append("\n".join([f"## {title}: {len(rows)} architectures", "", *(f"- {count}" for count in counts), "",
                                "| architecture | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|", *lines]))
        print(*counts, sep="\n", file=sys.stderr)
    shutil.rmtree(scratch)
    if arguments.table:
        head = ("# Which architectures are computed as their libraries do\n\nMade by `tests/parity/coverage.py`, which says how; an error is "
                "the largest difference in f32 over the largest number.\n\n")
        arguments.table.write_text(head + "\n\n".join(parts) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
