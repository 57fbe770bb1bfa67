#!/usr/bin/env python3
"""Writes the fixtures of transformers' towers that models.py has no copy of, by transformers itself in float64.

  make_tower_fixtures.py [NAME...]        # into fixtures/, of some their attention maps into maps/, and of models within models into within/

Small models with random weights, saved as transformers saves them, with what they make of one input, at their own
image size and, by interpolate_pos_encoding, at another one. Needs transformers 5.
"""

import json
import pathlib
import shutil
import sys

import numpy as np
import torch
import transformers

import make_map_fixtures

HERE = pathlib.Path(__file__).parent
SMALL = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 32,
         "patch_size": 8}
RESIZED = (24, 40)
# Name, class, the configuration besides SMALL, and what is kept of the results.
TOWERS = {
    "hf_aimv2": ("Aimv2VisionModel", {}, ("tokens", "features")),
    "hf_aimv2_native": ("Aimv2VisionModel", {"is_native": True, "qkv_bias": True, "mlp_bias": True, "hidden_act": "gelu"}, ("tokens", "features")),
    "hf_altclip_vision": ("AltCLIPVisionModel", {}, ("tokens", "features")),
    "hf_ast": ("ASTModel", {"num_mel_bins": 24, "max_length": 41, "frequency_stride": 5, "time_stride": 6}, ("tokens", "features")),
    "hf_ast_classifier": ("ASTForAudioClassification", {"num_mel_bins": 24, "max_length": 41, "frequency_stride": 5, "time_stride": 7,
                                                        "num_labels": 5}, ("logits",)),
    "hf_beit": ("BeitModel", {"use_relative_position_bias": True}, ("features",)),
    "hf_beit_classifier": ("BeitForImageClassification", {"use_shared_relative_position_bias": True, "num_labels": 5}, ("logits",)),
    "hf_data2vec": ("Data2VecVisionModel", {"use_relative_position_bias": True, "use_mean_pooling": False,
                                            "use_absolute_position_embeddings": True}, ("tokens",)),
    "hf_blip": ("BlipVisionModel", {}, ("tokens", "features")),
    "hf_blip2": ("Blip2VisionModel", {}, ("tokens", "features")),
    "hf_dinov3": ("DINOv3ViTModel", {"num_register_tokens": 4}, ("tokens", "features")),
    "hf_dinov3_bare": ("DINOv3ViTModel", {"num_register_tokens": 0}, ("tokens",)),
    "hf_dinov3_gated": ("DINOv3ViTModel", {"num_register_tokens": 2, "use_gated_mlp": True, "hidden_act": "silu"}, ("tokens", "features")),
    "hf_dpt": ("DPTModel", {}, ("tokens",)),
    "hf_git": ("GitVisionModel", {}, ("tokens",)),
    "hf_ijepa_classifier": ("IJepaForImageClassification", {"num_labels": 5}, ("logits",)),
    "hf_internvl": ("InternVLVisionModel", {"image_size": [32, 32], "patch_size": [8, 8]}, ("tokens",)),
    "hf_internvl_norm": ("InternVLVisionModel", {"image_size": [32, 32], "patch_size": [8, 8], "attention_bias": True,
                                                 "use_mean_pooling": False}, ("tokens",)),
    "hf_janus": ("JanusVisionModel", {"mlp_ratio": 1.5}, ("tokens", "features")),
    "hf_janus_unbiased": ("JanusVisionModel", {"attention_bias": False, "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-3},
                          ("tokens", "features")),
    "hf_mlcd": ("MLCDVisionModel", {}, ("tokens", "features")),
    "hf_mgpstr": ("MgpstrModel", {"image_size": [16, 32], "mlp_ratio": 2}, ("tokens",)),
    "hf_owlvit": ("OwlViTVisionModel", {}, ("tokens", "features")),
    "hf_owlv2": ("Owlv2VisionModel", {"hidden_act": "gelu"}, ("tokens", "features")),
    "hf_pixio": ("PixioModel", {"n_cls_tokens": 3, "mlp_ratio": 2}, ("tokens", "features")),
    "hf_pixtral": ("PixtralVisionModel", {"hidden_act": "silu"}, ("tokens",)),
    "hf_pixtral_gelu": ("PixtralVisionModel", {"rope_parameters": {"rope_type": "axial", "rope_theta": 100.0}}, ("tokens",)),
    "hf_qianfan": ("QianfanOCRVisionModel", {"image_size": [32, 32], "patch_size": [8, 8]}, ("tokens",)),
    "hf_sam": ("SamVisionModel", {"num_hidden_layers": 3, "mlp_dim": 40, "window_size": 3, "global_attn_indexes": [1], "output_channels": 16},
               ("tokens",)),
    "hf_smolvlm": ("SmolVLMVisionTransformer", {}, ("tokens",)),
    "hf_tipsv2": ("Tipsv2VisionModel", {"num_register_tokens": 2, "mlp_ratio": 2}, ("tokens", "features")),
    "hf_siglip2": ("Siglip2VisionModel", {"num_patches": 16}, ("tokens", "features")),
    "hf_yolos": ("YolosModel", {"num_hidden_layers": 3, "image_size": [32, 40], "num_detection_tokens": 3}, ("tokens",)),
    "hf_yolos_plain": ("YolosModel", {"image_size": [32, 32], "num_detection_tokens": 2, "use_mid_position_embeddings": False}, ("tokens",)),
    "hf_vitdet": ("VitDetModel", {"num_hidden_layers": 3, "mlp_ratio": 2, "pretrain_image_size": 24, "window_size": 3,
                                  "window_block_indices": [0, 2], "use_relative_position_embeddings": True}, ("tokens",)),
    "hf_vitdet_plain": ("VitDetModel", {"mlp_ratio": 2, "pretrain_image_size": 32}, ("tokens",)),
    "hf_videomae": ("VideoMAEModel", {"num_frames": 6, "tubelet_size": 2}, ("tokens",)),
    "hf_videomae_classifier": ("VideoMAEForVideoClassification", {"num_frames": 4, "tubelet_size": 2, "num_labels": 5}, ("logits",)),
    "hf_videomae_first": ("VideoMAEForVideoClassification", {"num_frames": 4, "tubelet_size": 4, "num_labels": 5, "qv_bias": False,
                                                             "use_mean_pooling": False}, ("logits",)),
    "hf_vivit": ("VivitModel", {"num_frames": 4, "tubelet_size": [2, 8, 16]}, ("tokens",)),
    "hf_vivit_classifier": ("VivitForVideoClassification", {"num_frames": 4, "tubelet_size": [2, 8, 8], "num_labels": 5}, ("logits",)),
    "hf_vit_mae": ("ViTMAEModel", {"mask_ratio": 0.0}, ("tokens",)),
    "hf_vit_msn": ("ViTMSNModel", {}, ("tokens",)),
    "hf_vit_msn_classifier": ("ViTMSNForImageClassification", {"num_labels": 5}, ("logits",)),
}
TEXT = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 32}
# Of pictures and words: the class, and what its parts' configurations are besides SMALL and TEXT.
WHOLE = {
    "hf_aimv2_whole": ("Aimv2Model", {}, {"max_position_embeddings": 8}),
    "hf_altclip": ("AltCLIPModel", {}, {"max_position_embeddings": 16, "project_dim": 16}),
}
VIDEOS = ("hf_videomae", "hf_videomae_classifier", "hf_videomae_first", "hf_vivit", "hf_vivit_classifier")
FIXED_SIZE = (*VIDEOS, "hf_ast", "hf_ast_classifier", "hf_aimv2", "hf_aimv2_whole", "hf_beit", "hf_beit_classifier", "hf_data2vec", "hf_mgpstr", "hf_sam")  # positions are for one
MAPS = ("hf_beit", "hf_dinov3")
WITHIN = {
    "llava_clip": transformers.CLIPVisionConfig,
    "llava_siglip": transformers.SiglipVisionConfig,
}


def randomised(model):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Scores that differ where maps are looked at: else attention is a mean of all tokens.
            scale = 0.4 if name.endswith(("q_proj.weight", "k_proj.weight", "query.weight", "key.weight")) and isinstance(
                model, (transformers.DINOv3ViTModel, transformers.BeitModel, transformers.MLCDVisionModel,
                        transformers.PixtralVisionModel)) else 0.1
            parameter.add_(torch.randn(parameter.shape) * (scale if parameter.dim() > 1 else 0.3))
    return model.eval()


def patches_of(pixels, side):
    """What SigLIP 2's processor makes of pictures of one size: patches as rows, and what says where they lie."""
    count, channels, height, width = pixels.shape
    rows, columns = height // side, width // side
    cut = pixels.reshape(count, channels, rows, side, columns, side).permute(0, 2, 4, 3, 5, 1)
    return cut.reshape(count, rows * columns, -1), {"pixel_attention_mask": torch.ones(count, rows * columns, dtype=torch.long),
                                                    "spatial_shapes": torch.tensor([[rows, columns]] * count)}


def tubelet_of(config):
    return config.tubelet_size if isinstance(config.tubelet_size, int) else config.tubelet_size[0]


def frames_of(pixels, config):
    """[count, frames, channels, height, width] of a picture of tubelets, which lie one below the other with their frames as channels."""
    frames = tubelet_of(config)
    count, _, height, width = pixels.shape
    tubelets = config.num_frames // frames
    cut = pixels.reshape(count, frames, -1, tubelets, height // tubelets, width).permute(0, 3, 1, 2, 4, 5)
    return cut.reshape(count, config.num_frames, -1, height // tubelets, width)


def results(tower, images, resized, kept):
    arguments = {"interpolate_pos_encoding": True} if resized else {}
    if isinstance(tower, (transformers.InternVLVisionModel, transformers.DINOv3ViTModel, transformers.Aimv2VisionModel,
                          transformers.MLCDVisionModel, transformers.PixtralVisionModel, transformers.VitDetModel, transformers.YolosModel,
                          transformers.DPTModel, transformers.PixioModel, transformers.QianfanOCRVisionModel,
                          transformers.SmolVLMVisionTransformer, transformers.Tipsv2VisionModel, transformers.MgpstrModel)):
        arguments = {}  # they do so unasked
    if isinstance(tower, transformers.ViTMAEModel):
        patches = images.shape[2] * images.shape[3] // 64
        arguments["noise"] = torch.arange(patches, dtype=torch.float64)[None].expand(len(images), -1)
    pixels = torch.from_numpy(images).double()
    if isinstance(tower, (transformers.ASTModel, transformers.ASTForAudioClassification)):
        pixels = pixels[:, 0].transpose(1, 2)  # times are rows there
    if isinstance(tower, transformers.Siglip2VisionModel):
        pixels, arguments = patches_of(pixels, tower.config.patch_size)
    if hasattr(tower.config, "num_frames"):
        pixels, arguments = frames_of(pixels, tower.config), {}
    with torch.no_grad():
        out = tower(pixels, **arguments)
    named = {"tokens": "last_hidden_state", "features": "pooler_output", "logits": "logits"}
    found = {name: getattr(out, named[name]).numpy() for name in kept}
    if isinstance(tower, transformers.PixtralVisionModel):  # one sequence of all pictures
        found["tokens"] = found["tokens"].reshape(len(images), -1, found["tokens"].shape[-1])
    if found.get("tokens", np.zeros(0)).ndim == 4:  # laid out as a picture: the patches are rows
        found["tokens"] = found["tokens"].reshape(*found["tokens"].shape[:2], -1).transpose(0, 2, 1)
    return found


def save_array(path, values, kind):
    np.save(path, values.astype(kind))


def write(folder, name, model, tower, kept, channels=3, projection=None):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    random = np.random.default_rng([ord(c) for c in name])
    size = {"hf_mgpstr": (16, 32), "hf_yolos": (32, 40)}.get(name, (32, 32))
    size = (model.config.num_mel_bins, model.config.max_length) if name.startswith("hf_ast") else size
    channels = 1 if name.startswith("hf_ast") else channels
    if name in VIDEOS:
        channels, size = 3 * tubelet_of(model.config), (32 * (model.config.num_frames // tubelet_of(model.config)), 32)
    images = random.standard_normal((2, channels, *size)).astype(np.float32)
    save_array(folder / "input.npy", images, np.float32)
    tower = tower.double()
    found = results(tower, images, False, kept)
    if projection is not None:
        found["features"] = projection.double()(torch.from_numpy(found["features"])).detach().numpy()
    for key, values in found.items():
        save_array(folder / f"{key}.npy", values, np.float64)
    if name in MAPS:
        tower.set_attn_implementation("eager")
        make_map_fixtures.write(HERE / "maps" / name, tower, images)
    if name in FIXED_SIZE:
        return write_meta(folder, model, found, {})
    other = random.standard_normal((2, channels, *RESIZED)).astype(np.float32)
    save_array(folder / "resized_input.npy", other, np.float32)
    save_array(folder / f"resized_{kept[0]}.npy", results(tower, other, True, kept)[kept[0]], np.float64)
    write_meta(folder, model, found, {"resized": {"image_size": list(RESIZED), "output": kept[0]}})


def write_meta(folder, model, found, others):
    meta = {"covers": f"transformers {transformers.__version__}, {type(model).__name__}", "limits": {"f16": 0.005, "f32": 2e-05},
            "model": ".", "outputs": {key: list(values.shape) for key, values in found.items()}, **others, "set": []}
    (folder / "meta.json").write_text(json.dumps(meta, indent=2) + "\n")


def main():
    chosen = sys.argv[1:] or [*TOWERS, *WHOLE, *WITHIN]
    for name in chosen:
        torch.manual_seed(sum(ord(c) * (i + 1) for i, c in enumerate(name)))
        if name in TOWERS:
            kind, options, kept = TOWERS[name]
            kind = getattr(transformers, kind)
            model = randomised(kind(kind.config_class(**{**SMALL, **options})))
            write(HERE / "fixtures" / name, name, model, model, kept)
        elif name in WHOLE:
            kind, vision, text = WHOLE[name]
            kind = getattr(transformers, kind)
            ends = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
            config = kind.config_class(vision_config={**SMALL, **vision}, text_config={**TEXT, **text, **ends}, projection_dim=12)
            model = randomised(kind(config))
            write(HERE / "fixtures" / name, name, model, model.vision_model, ("tokens", "features"), projection=model.visual_projection)
        else:
            text = transformers.LlamaConfig(hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2,
                                            num_key_value_heads=2, vocab_size=32, pad_token_id=0, bos_token_id=1, eos_token_id=2)
            config = transformers.LlavaConfig(vision_config=WITHIN[name](**SMALL), text_config=text)
            model = randomised(transformers.LlavaForConditionalGeneration(config))
            write(HERE / "within" / name, name, model, model.model.vision_tower, ("tokens", "features"))
        print(name)


if __name__ == "__main__":
    main()
