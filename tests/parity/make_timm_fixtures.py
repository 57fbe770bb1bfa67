#!/usr/bin/env python3
"""Writes the fixtures of timm's architectures beyond the plain Vision Transformer, by timm itself in float64.

  make_timm_fixtures.py [NAME...]        # into fixtures/, and of some their attention maps into maps/

Each is made small by timm's own arguments, which its config.json repeats, with random weights, as timm saves it; with what
it makes of one input, and at another image size. DINOv3 is written once more under its publisher's names.
"""
import json
import pathlib
import shutil
import sys

import numpy as np
import timm
import torch
from safetensors.torch import save_file

import make_map_fixtures

HERE = pathlib.Path(__file__).parent
SMALL = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 1, "num_heads": 3, "num_classes": 5}
RESIZED = (24, 40)
NAFLEX = {"img_size": None, "pos_embed_grid_size": (3, 5)}
# Fixture, architecture, arguments besides SMALL.
MODELS = {
    "timm_aimv2": ("aimv2_large_patch14_224", {"mlp_ratio": 2.5}),
    "timm_beit": ("beit_base_patch16_224", {}),
    "timm_beit3": ("beit3_base_patch16_224", {}),
    "timm_cait": ("cait_xxs24_224", {"depth": 2, "depth_token_only": 2, "init_values": 0.5}),
    "timm_differential": ("vit_dlittle_patch16_reg1_gap_256", {"depth": 2, "mlp_ratio": 2.5, "init_values": 0.5}),
    "timm_differential_parallel": ("vit_dpwee_patch16_reg1_gap_256", {"depth": 2, "mlp_ratio": 2.5, "init_values": 0.5}),
    "timm_dinov3": ("vit_small_patch16_dinov3", {}),
    "timm_dinov3_plus": ("vit_small_plus_patch16_dinov3_qkvb", {}),
    "timm_eva": ("eva_giant_patch14_224", {}),
    "timm_eva02": ("eva02_base_patch14_224", {}),
    "timm_eva02_clip": ("eva02_base_patch16_clip_224", {}),
    "timm_eva02_enormous": ("eva02_enormous_patch14_clip_224", {}),
    "timm_eva02_tiny": ("eva02_tiny_patch14_224", {}),
    "timm_naflex": ("naflexvit_base_patch16_siglip", NAFLEX),
    "timm_naflex_corners": ("naflexvit_base_patch16_radio_v3", NAFLEX),
    "timm_naflex_sums": ("naflexvit_base_patch16_parfac_gap", NAFLEX),
    "timm_parallel": ("vit_base_patch16_xp_224", {"depth": 2}),
    "timm_parallel_scaled": ("vit_pwee_patch16_reg1_gap_256", {"depth": 2, "mlp_ratio": 2.5, "init_values": 0.5}),
    "timm_branches": ("vit_small_patch16_18x2_224", {"depth": 2, "init_values": 0.5}),
    "timm_pe_core": ("vit_pe_core_base_patch16_224", {}),
    "timm_pe_lang": ("vit_pe_lang_large_patch14_448", {}),
    "timm_pool_prefix": ("test_vit3", {}),
    "timm_relative": ("vit_relpos_base_patch16_cls_224", {"depth": 2}),
    "timm_relative_shared": ("vit_srelpos_small_patch16_224", {"depth": 2, "num_heads": 4}),
    "timm_res_post": ("vit_base_patch16_rpn_224", {}),
    "timm_rms": ("test_vit4", {}),
    "timm_rope": ("vit_base_patch16_rope_ape_224", {}),
    "timm_rope_mixed": ("vit_base_patch16_rope_mixed_224", {"depth": 2}),
    "timm_rope_registers": ("vit_betwixt_patch16_rope_reg4_gap_256", {}),
    "timm_sam": ("samvit_base_patch16", {"depth": 3, "window_size": 3, "global_attn_indexes": [1], "neck_chans": 16}),
    "timm_sam_normed": ("samvit_base_patch16_224", {"window_size": 3, "global_attn_indexes": []}),
    "timm_shared_keys": ("vit_base_patch16_sapiens2", {"num_kv_heads": 1}),
    "meta_dinov3": ("vit_small_plus_patch16_dinov3_qkvb", {"global_pool": "token", "num_classes": 0}),
}
MAPS = ("timm_beit", "timm_branches", "timm_differential", "timm_differential_parallel", "timm_parallel", "timm_pe_core", "timm_relative", "timm_dinov3", "timm_eva02_clip", "timm_rope_mixed")
META = (("gamma_1", "ls1.gamma"), ("gamma_2", "ls2.gamma"), ("reg_token", "storage_tokens"), ("mlp.fc1_g", "mlp.w1"),
        ("mlp.fc1_x", "mlp.w2"), ("mlp.fc2", "mlp.w3"))


def randomised(model):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Scores that differ: else attention is a mean of all tokens, and wrong ones would pass.
            scale = 0.4 if parameter.dim() == 2 and any(part in name for part in ("attn.qkv", "in_proj", "q_proj", "k_proj", "rel_pos_")) else 0.1
            parameter.add_(torch.randn(parameter.shape) * (scale if parameter.dim() > 1 or "rope" in name else 0.3))
    return model.eval()


def under_publishers_names(model):
    """Keys' biases are there, and masked; periods are stored, and used, in bf16."""
    tensors = {}
    for key, value in model.state_dict().items():
        if key.endswith("q_bias"):
            block = key.removesuffix("q_bias")
            values = model.state_dict()[block + "v_bias"]
            tensors[block + "qkv.bias"] = torch.cat([value, torch.full_like(value, 7.0), values])
            tensors[block + "qkv.bias_mask"] = torch.cat([torch.ones_like(value), torch.zeros_like(value), torch.ones_like(value)])
        elif not key.endswith("v_bias"):
            for ours, theirs in META:
                key = key.replace(ours, theirs)
            tensors[key] = value
    model.rope.periods = model.rope.periods.bfloat16().float()
    tensors["rope_embed.periods"] = model.rope.periods.bfloat16()
    tensors["mask_token"] = torch.zeros(1, model.embed_dim)
    return tensors


def computed(model, images):
    with torch.no_grad():
        return model(torch.from_numpy(images).double()).numpy()


def write(name, architecture, arguments):
    folder = HERE / "fixtures" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    arguments = {key: value for key, value in arguments.items() if value is not None}
    naflex = architecture.startswith("naflex")
    model = randomised(timm.create_model(architecture, **arguments))
    for told_by_shapes in ("pos_embed_grid_size", "num_kv_heads"):
        arguments.pop(told_by_shapes, None)
    published = name.startswith("meta")
    tensors = under_publishers_names(model) if published else model.state_dict()
    save_file({key: value.contiguous() for key, value in tensors.items()}, folder / "model.safetensors")
    if not published:
        config = {"architecture": architecture, "num_classes": model.num_classes, "model_args": arguments,
                  "global_pool": model.global_pool}
        if naflex:
            config["pretrained_cfg"] = {"input_size": [3, 32, 32], "num_classes": model.num_classes}
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    random = np.random.default_rng([ord(c) for c in name])
    images = random.standard_normal((2, 3, 32, 32)).astype(np.float32)
    np.save(folder / "input.npy", images)
    model = model.double()
    what = "logits" if model.num_classes else "features"
    found = computed(model, images)
    np.save(folder / f"{what}.npy", found)
    meta = {"covers": f"timm {timm.__version__}, {architecture}", "limits": {"f16": 0.005, "f32": 2e-05},
            "model": "model.safetensors" if published else ".", "outputs": {what: list(found.shape)}, "set": []}
    if published:
        meta["set"] = ["image_size=32", "heads=3"]
    if name in MAPS:
        for module in model.modules():  # they show their softmax
            if hasattr(module, "fused_attn"):
                module.fused_attn = False
        make_map_fixtures.write(HERE / "maps" / name, model, images)
    if architecture.startswith(("beit_", "cait_")):  # for one size
        (folder / "meta.json").write_text(json.dumps(meta, indent=2) + "\n")
        return
    other = random.standard_normal((2, 3, *RESIZED)).astype(np.float32)
    if not naflex and not architecture.startswith("samvit"):
        model.set_input_size(img_size=RESIZED)
    np.save(folder / "resized_input.npy", other)
    np.save(folder / f"resized_{what}.npy", computed(model.double(), other))
    meta["resized"] = {"image_size": list(RESIZED), "output": what}
    (folder / "meta.json").write_text(json.dumps(meta, indent=2) + "\n")


def main():
    for name in sys.argv[1:] or MODELS:
        architecture, others = MODELS[name]
        torch.manual_seed(sum(ord(c) * (i + 1) for i, c in enumerate(name)))
        write(name, architecture, {**SMALL, **others})
        print(name)


if __name__ == "__main__":
    main()
