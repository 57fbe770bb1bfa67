#!/usr/bin/env python3
"""Compares models.py and the written checkpoints with the libraries that they imitate.

  PYTHONPATH=... check_against_libraries.py

Every fixture is built anew, written to a temporary folder and handed to whichever of torchvision, timm
and transformers can be imported: tensor names must agree exactly in both directions and every output
within 1e-12 in float64. A library that is absent, or too new for an option that it has dropped, is
skipped with a word. Nothing is downloaded.
"""

import dataclasses
import importlib
import inspect
import os
import pathlib
import sys
import tempfile
from functools import partial

import numpy as np
import torch
from torch import nn

import cases
import hugging_face
import models
import naming
import training

TOLERANCE = 1e-12
os.environ.setdefault("HF_HUB_OFFLINE", "1")


class Unsupported(Exception):
    """The installed version of a library has no such option."""


def library(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Unsupported(f"{name} cannot be imported ({error})") from error


def difference(pairs):
    """Largest difference over (ours, theirs), which must have the same shape."""
    worst = 0.0
    for ours, theirs in pairs:
        if ours.shape != tuple(theirs.shape):
            raise AssertionError(f"shapes {ours.shape} and {tuple(theirs.shape)} differ")
        worst = max(worst, float(np.abs(ours - theirs.detach().numpy()).max()))
    return worst


def load_both_ways(theirs, ours_state):
    """Their model takes our checkpoint, and every tensor of theirs is one of ours, in our shape."""
    theirs.load_state_dict(ours_state, strict=True)
    their_shapes = {name: tuple(value.shape) for name, value in theirs.state_dict().items()}
    our_shapes = {name: tuple(value.shape) for name, value in ours_state.items()}
    if their_shapes != our_shapes:
        raise AssertionError(f"tensors differ: {set(their_shapes.items()) ^ set(our_shapes.items())}")


def timm_arguments(case, accepted):
    """Our options in the words of this version of timm."""
    out = {}
    for key, value in case.options.items():
        if key == "eps":
            continue  # goes into norm_layer
        if key == "layer_scale":
            key, value = "init_values", 1e-5
        elif key == "patch_norm":
            key, value = "embed_norm_layer", partial(nn.LayerNorm, eps=1e-6)
        elif key == "swiglu":
            layers = library("timm.layers")
            out["act_layer"] = nn.SiLU
            key, value = "mlp_layer", layers.SwiGLUPacked
        if key == "distilled" and key not in accepted:
            continue  # a class of its own since timm 0.6
        if key not in accepted:
            raise Unsupported(f"this timm has no {key}")
        out[key] = value
    return out


def resized_by_timm(timm, kind, norm, case, built, other, folder):
    # Those of the plain class: the distilled one hands its arguments on.
    accepted = inspect.signature(timm.models.vision_transformer.VisionTransformer).parameters
    arguments = timm_arguments(case, accepted)
    theirs = kind(**{**arguments, "img_size": other.size}, norm_layer=norm).double().eval()
    patch = models.pair(case.options.get("patch_size", 16))
    table = timm.layers.resample_abs_pos_embed(
        built.state["pos_embed"],
        new_size=[s // p for s, p in zip(other.size, patch)],
        old_size=[s // p for s, p in zip(cases.image_shape(case)[2:], patch)],
        num_prefix_tokens=0 if theirs.no_embed_class else theirs.num_prefix_tokens,
    )
    load_both_ways(theirs, {**built.state, "pos_embed": table})
    reference, image = other.reference(), torch.from_numpy(other.image).double()
    judged = "logits" if "logits" in reference else "features"
    pairs = [(reference[judged], theirs(image))]
    if case.config and case.dtype == "F32":  # timm rounds a resampled table to the type of the file's
        loaded = timm.create_model(f"local-dir:{folder}", pretrained=True, img_size=other.size)
        pairs.append((reference[judged], loaded.double().eval()(image)))
    return pairs


def against_timm(case, built, folder):
    timm = library("timm")
    kind = timm.models.vision_transformer.VisionTransformer
    accepted = inspect.signature(kind).parameters
    distilled = case.options.get("distilled", False)
    if distilled and "distilled" not in accepted:
        try:
            kind = library("timm.models.deit").VisionTransformerDistilled
        except AttributeError as error:
            raise Unsupported("this timm has no distilled model") from error
    if "norm_layer" not in accepted:
        raise AssertionError("timm's VisionTransformer takes no norm_layer")
    # timm 0.4.5's own default is torch's eps of 1e-5; its architectures all pass 1e-6.
    norm = partial(nn.LayerNorm, eps=case.options.get("eps", 1e-6))
    theirs = kind(**timm_arguments(case, accepted), norm_layer=norm).double().eval()
    load_both_ways(theirs, built.state)
    image, reference = torch.from_numpy(built.image).double(), built.reference()
    judged = "logits" if "logits" in reference else "features"
    pairs = [(reference[judged], theirs(image))]
    if hasattr(theirs, "forward_head"):
        tokens = theirs.forward_features(image)
        pairs.append((reference["tokens"], tokens))
        pairs.append((reference["features"], theirs.forward_head(tokens, pre_logits=True)))
        if case.config:  # timm builds the model from our config.json and reads our file
            loaded = timm.create_model(f"local-dir:{folder}", pretrained=True).double().eval()
            pairs.append((reference[judged], loaded(image)))
    other = cases.resized(case, built)
    if other is not None and hasattr(getattr(timm, "layers", None), "resample_abs_pos_embed"):
        pairs += resized_by_timm(timm, kind, norm, case, built, other, folder)
    return f"timm {timm.__version__}", difference(pairs)


def backbone_of(theirs):
    """The part that gives tokens."""
    for name in ("vision_model", theirs.base_model_prefix):
        if hasattr(theirs, name):
            return getattr(theirs, name)
    return theirs


def vision_outputs(theirs, case, image):
    """Theirs by what we call it."""
    kind = hugging_face.CLASSES[case.naming].kind
    if kind in ("CLIPModel", "SiglipModel"):
        features = theirs.get_image_features(pixel_values=image)
        if not isinstance(features, torch.Tensor):  # transformers 5
            features = features.pooler_output
        return {"features": features, "tokens": theirs.vision_model(image).last_hidden_state}
    out = theirs(image)
    if kind.endswith("ForImageClassification") or kind.endswith("WithTeacher"):
        return {"logits": out.logits, "tokens": backbone_of(theirs)(image).last_hidden_state}
    hidden = out.last_hidden_state
    if kind == "CLIPVisionModelWithProjection":
        return {"features": out.image_embeds, "tokens": hidden}
    # ViTModel's pooler is a layer of its own, which no classifier reads.
    return {"features": hidden[:, 0] if kind == "ViTModel" else out.pooler_output, "tokens": hidden}


def against_transformers(case, built, folder):
    transformers = library("transformers")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    published = hugging_face.CLASSES[case.naming]
    lone = published.model_type.endswith("vision_model") and not case.naming.endswith("projection")
    if lone and not published.prefix and int(transformers.__version__.split(".")[0]) < 5:
        raise Unsupported("this transformers saves a lone tower with a prefix")
    if built.config is None:  # the weights alone tell us; their class needs one
        cases.write_json(folder / "config.json", hugging_face.config(case))
    kind = getattr(transformers, published.kind)
    # Not "eager", whose softmax is float32 whatever the model is in. The values are what is compared, so
    # the type that they are stored in must not become the model's.
    theirs, info = kind.from_pretrained(
        folder, output_loading_info=True, attn_implementation="sdpa", dtype=torch.float32
    )
    left = {key: value for key, value in info.items() if value}
    if left:
        raise AssertionError(f"tensors differ: {left}")
    with tempfile.TemporaryDirectory() as saved:  # what they would publish
        theirs.save_pretrained(saved)
        names = set(naming.safetensors.torch.load_file(f"{saved}/model.safetensors"))
    ours = {name.removeprefix("vision_model.") if lone else name for name in built.state}
    names = {name.removeprefix("vision_model.") if lone else name for name in names}
    if names != ours:
        raise AssertionError(f"published names differ: {names ^ ours}")
    theirs = theirs.double().eval()
    image, reference = torch.from_numpy(built.image).double(), built.reference()
    with torch.inference_mode():
        pairs = [(reference[what], value) for what, value in vision_outputs(theirs, case, image).items()]
        other = cases.resized(case, built)
        if other is not None:
            backbone = backbone_of(theirs)
            flag = {}
            if "interpolate_pos_encoding" in inspect.signature(backbone.forward).parameters:
                flag["interpolate_pos_encoding"] = True
            hidden = backbone(torch.from_numpy(other.image).double(), **flag).last_hidden_state
            pairs.append((other.reference()["tokens"], hidden))
    return f"transformers {transformers.__version__}", difference(pairs)


def against_torchvision(case, built, folder):
    """torchvision's fixture is torchvision's own model: our definition under its names must match it."""
    torchvision = library("torchvision")
    ours = models.VisionTransformer(**case.options)
    naming.randomise(ours, cases.seed_of(case))
    load_both_ways(built.model.model, naming.to_torchvision(ours.state_dict()))
    reference = built.reference()
    image = torch.from_numpy(built.image).double()
    with torch.inference_mode():
        pairs = [(reference[what], value) for what, value in ours(image).items()]
        pairs.append((reference["logits"], built.model.model(image)))
        other = cases.resized(case, built)
        transformer = torchvision.models.vision_transformer
        state = transformer.interpolate_embeddings(
            other.size[0], case.options["patch_size"], dict(built.model.model.state_dict())
        )
        larger = cases.torchvision_model({**case.options, "img_size": other.size[0]}).model.double().eval()
        larger.load_state_dict(state)
        pairs.append((other.reference()["logits"], larger(torch.from_numpy(other.image).double())))
    return f"torchvision {torchvision.__version__}", difference(pairs)


def check_layers():
    """training.layer_of against timm's groups for layer decay; how many parameters were compared."""
    timm = library("timm")
    compared = 0
    for kind in ({}, {"class_token": False, "global_pool": "avg"}, {"reg_tokens": 2, "pre_norm": True, "fc_norm": True}):
        model = timm.models.VisionTransformer(32, 8, num_classes=5, embed_dim=48, depth=3, num_heads=2, **kind)
        groups = library("timm.optim").param_groups_layer_decay(model, layer_decay=0.75)
        scale_of = {id(value): group["lr_scale"] for group in groups for value in group["params"]}
        for name, value in model.named_parameters():
            ours = 0.75 ** (4 - training.layer_of(name, 3))
            if abs(scale_of[id(value)] - ours) > TOLERANCE:
                raise AssertionError(f"{name} learns at {scale_of[id(value)]} in timm, at {ours} here")
            compared += 1
    return compared


def checks_of(case):
    if case.naming == "torchvision":
        return [against_torchvision]
    return {"timm": [against_timm], "myvit": []}.get(case.naming, [against_transformers])


def compare(case, check):
    """One line about one fixture; the word at its front is 'agrees', 'skipped' or 'DIFFERS'."""
    built = cases.build(case)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # timm reads no shards.
        cases.write(dataclasses.replace(case, shards=1) if check is against_timm else case, built, folder)
        try:
            version, worst = check(case, built, folder)
        except Unsupported as reason:
            return "skipped", str(reason)
        except (AssertionError, RuntimeError) as error:
            return "DIFFERS", str(error).replace("\n", " ")
    return ("agrees" if worst <= TOLERANCE else "DIFFERS"), f"with {version}: max |difference| {worst:.1e}"


def main():
    torch.set_num_threads(1)
    # An option that few fixtures share with the libraries gets a case of its own.
    extra = dataclasses.replace(
        cases.FIXTURES[0],
        name="torchvision_representation",
        options={**cases.FIXTURES[0].options, "representation_size": 20},
    )
    counts = {"agrees": 0, "skipped": 0, "DIFFERS": 0}
    for case in (*cases.FIXTURES, extra):
        for check in checks_of(case):
            verdict, words = compare(case, check)
            counts[verdict] += 1
            print(f"{case.name:30} {verdict}  {words}", flush=True)
    try:
        words = f"{check_layers()} parameters' layers"
        verdict = "agrees"
    except Unsupported as error:
        verdict, words = "skipped", str(error)
    except AssertionError as error:
        verdict, words = "DIFFERS", str(error)
    counts[verdict] += 1
    print(f"{'layer decay':30} {verdict}  {words}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 1 if counts["DIFFERS"] else 0


if __name__ == "__main__":
    sys.exit(main())
