"""transformers' half of coverage.py: every class by name, where its tower lies in it, and what it is compared with."""

import operator

import numpy as np
import torch
import transformers

from coverage_run import F16_LIMIT, IN_F16, judge, randomised, run
from make_tower_fixtures import frames_of, patches_of, tubelet_of

# Towers, classifiers and whole models, as they are published. A whole model's tower lies in its `text_model`'s sister.
CLASSES = """
ASTForAudioClassification ASTModel Aimv2Model Aimv2VisionModel AltCLIPModel AltCLIPVisionModel BeitBackbone BeitForImageClassification
BeitModel Blip2VisionModel BlipModel BlipVisionModel CLIPForImageClassification CLIPModel CLIPSegModel CLIPSegVisionModel
CLIPVisionModel CLIPVisionModelWithProjection ChineseCLIPModel ChineseCLIPVisionModel DINOv3ViTBackbone DINOv3ViTModel DPTModel
Data2VecVisionForImageClassification Data2VecVisionModel DeiTForImageClassification DeiTForImageClassificationWithTeacher DeiTModel
Dinov2Backbone Dinov2ForImageClassification Dinov2Model Dinov2WithRegistersBackbone Dinov2WithRegistersForImageClassification
Dinov2WithRegistersModel FlavaImageModel GitVisionModel IJepaForImageClassification IJepaModel Idefics3VisionTransformer
InstructBlipVideoVisionModel InstructBlipVisionModel InternVLVisionModel JanusVisionModel MLCDVisionModel
MetaClip2ForImageClassification MetaClip2Model MetaClip2VisionModel MetaClip2VisionModelWithProjection MgpstrModel OwlViTModel
OwlViTVisionModel Owlv2Model Owlv2VisionModel Phi4MultimodalVisionModel PixioBackbone PixioModel PixtralVisionModel
QianfanOCRVisionModel SamHQVisionModel SamVisionModel Siglip2ForImageClassification Siglip2Model Siglip2VisionModel
SiglipForImageClassification SiglipModel SiglipVisionModel SmolVLMVisionTransformer Tipsv2VisionModel ViTForImageClassification
ViTMAEModel ViTMSNForImageClassification ViTMSNModel ViTModel VideoMAEForVideoClassification VideoMAEModel VitDetBackbone VitDetModel
VivitForVideoClassification VivitModel YolosModel
""".split()
# Models that do more than Vitrine computes: where the tower is that is compared with its own library's.
WITHIN = {
    "AriaForConditionalGeneration": "model.vision_tower",
    "AyaVisionForConditionalGeneration": "model.vision_tower",
    "BeitForMaskedImageModeling": "beit",
    "Blip2ForConditionalGeneration": "vision_model",
    "Blip2ForImageTextRetrieval": "vision_model",
    "BlipForConditionalGeneration": "vision_model",
    "BlipForImageTextRetrieval": "vision_model",
    "BlipForQuestionAnswering": "vision_model",
    "BridgeTowerModel": "vision_model",
    "CLIPSegForImageSegmentation": "clip.vision_model",
    "Cohere2VisionForConditionalGeneration": "model.vision_tower",
    "DPTForDepthEstimation": "dpt",
    "Data2VecVisionForSemanticSegmentation": "data2vec_vision",
    "DeepseekVLForConditionalGeneration": "model.vision_model",
    "DeiTForMaskedImageModeling": "deit",
    "DepthAnythingForDepthEstimation": "backbone",
    "EomtForUniversalSegmentation": "",
    "FlavaModel": "image_model",
    "Gemma3ForConditionalGeneration": "model.vision_tower",
    "GitForCausalLM": "git.image_encoder",
    "GotOcr2ForConditionalGeneration": "model.vision_tower",
    "Idefics2ForConditionalGeneration": "model.vision_model",
    "Idefics3ForConditionalGeneration": "model.vision_model",
    "IdeficsForVisionText2Text": "model.vision_model",
    "InstructBlipForConditionalGeneration": "vision_model",
    "InstructBlipVideoForConditionalGeneration": "vision_model",
    "InternVLForConditionalGeneration": "model.vision_tower",
    "JanusForConditionalGeneration": "model.vision_model",
    "Kosmos2ForConditionalGeneration": "vision_model",
    "Lfm2VlForConditionalGeneration": "model.vision_tower",
    "LightOnOcrForConditionalGeneration": "model.vision_encoder",
    "LlavaForConditionalGeneration": "model.vision_tower",
    "LlavaNextForConditionalGeneration": "model.vision_tower",
    "LlavaNextVideoForConditionalGeneration": "model.vision_tower",
    "LlavaOnevisionForConditionalGeneration": "model.vision_tower",
    "MgpstrForSceneTextRecognition": "mgp_str",
    "Mistral3ForConditionalGeneration": "model.vision_tower",
    "MllamaForConditionalGeneration": "model.vision_model",
    "ModernVBertModel": "vision_model",
    "Ovis2ForConditionalGeneration": "model.vision_tower",
    "OwlViTForObjectDetection": "owlvit.vision_model",
    "Owlv2ForObjectDetection": "owlv2.vision_model",
    "PaliGemmaForConditionalGeneration": "model.vision_tower",
    "PromptDepthAnythingForDepthEstimation": "backbone",
    "SamHQModel": "vision_encoder",
    "SamModel": "vision_encoder",
    "ShieldGemma2ForImageClassification": "model.model.vision_tower",
    "SmolVLMForConditionalGeneration": "model.vision_model",
    "Tipsv2Model": "vision_model",
    "UltraVBertModel": "vision_model",
    "ViTForMaskedImageModeling": "vit",
    "ViTMAEForPreTraining": "vit",
    "VideoMAEForPreTraining": "videomae",
    "VipLlavaForConditionalGeneration": "model.vision_tower",
    "VisionEncoderDecoderModel": "encoder",
    "VisionTextDualEncoderModel": "vision_model",
    "VitPoseForPoseEstimation": "backbone",
    "YolosForObjectDetection": "vit",
    "ZoeDepthForDepthEstimation": "backbone",
}
NAMES = sorted([*CLASSES, *WITHIN])
# Towers whose pooled vector is the result, too; what others call a pooler is a layer for training.
POOLED = ("AST", "Aimv2", "AltCLIP", "Blip", "CLIP", "ChineseCLIP", "Cohere2", "DeepseekVL", "Gemma3", "IdeficsFor", "InstructBlip", "Janus",
          "Kosmos2", "Lfm2", "Llava", "MLCD", "MetaClip2", "ModernVBert", "OwlViT", "Owlv2", "Phi4", "PixioModel", "ShieldGemma2", "Siglip",
          "Tipsv2Vision", "VipLlava")
PATCHES_AS_ROWS = ("Siglip2", "Lfm2Vl")
SMALL = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 64,
         "patch_size": 8, "vision_output_dim": 64, "projection_dim": 64}
# What texts are made with beside it.
SMALL_TEXT = {"num_key_value_heads": 4, "head_dim": 16, "num_layers": 2, "num_heads": 4, "d_model": 64, "d_ff": 96, "ffn_dim": 96,
              "decoder_layers": 2, "encoder_layers": 2, "decoder_ffn_dim": 96, "encoder_ffn_dim": 96, "decoder_attention_heads": 4,
              "encoder_attention_heads": 4}


def parts_of(config):
    yield config
    for value in list(vars(config).values()):
        if isinstance(value, transformers.PretrainedConfig):
            yield from parts_of(value)


def make_small(config):
    for part in parts_of(config):
        for key, value in {**SMALL, **SMALL_TEXT}.items():
            found = getattr(part, key, None)
            if isinstance(found, int) and not isinstance(found, bool) and not (part is not config and key == "projection_dim"):
                setattr(part, key, value)
            if isinstance(found, (list, tuple)) and key == "image_size":
                setattr(part, key, [value, value])
        if hasattr(part, "_out_indices"):  # a backbone's
            part.stage_names, part._out_features, part._out_indices = ["stem", "stage1", "stage2"], ["stage2"], [2]
        if isinstance(getattr(part, "vocab_size", None), int):
            part.vocab_size = 128
            part.pad_token_id, part.bos_token_id, part.eos_token_id = 1, 0, 2
    if hasattr(config, "mask_ratio"):
        config.mask_ratio = 0.0


def configured(name, kind):
    if name == "VisionEncoderDecoderModel":
        text = transformers.BertConfig(is_decoder=True, add_cross_attention=True)
        return kind.config_class.from_encoder_decoder_configs(transformers.ViTConfig(), text)
    if name == "VisionTextDualEncoderModel":
        return kind.config_class.from_vision_text_configs(transformers.CLIPVisionConfig(), transformers.BertConfig())
    return kind.config_class()


def tower_of(name, model):
    """The tower, and what holds it."""
    if name in WITHIN:
        outer, _, _ = WITHIN[name].rpartition(".")
        return operator.attrgetter(WITHIN[name])(model), operator.attrgetter(outer)(model) if outer else model
    return model.vision_model if hasattr(model, "vision_model") and hasattr(model, "text_model") else model, model


def rows(values):
    """Laid out as a picture, patches are rows here."""
    return values if values.ndim == 3 else values.reshape(*values.shape[:2], -1).transpose(0, 2, 1)


def cover(name, program, scratch):
    torch.manual_seed(0)
    kind = getattr(transformers, name)
    config = configured(name, kind)
    make_small(config)
    shape = (1, 3, 64, 64)
    if name.startswith("Mgpstr"):
        config.image_size = [32, 128]
        shape = (1, 3, 32, 128)
    if name.startswith("BridgeTower"):
        config.vision_config.hidden_size = 128  # of heads of 64
    if name.startswith("Mllama"):
        config.vision_config.intermediate_layers_indices = [0]
    model = randomised(kind(config))
    folder = scratch / "model"
    model.save_pretrained(folder)
    image = scratch / "image.npy"
    if name.startswith("AST"):
        shape = (1, 1, config.num_mel_bins, config.max_length)
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
    if name.startswith(PATCHES_AS_ROWS):
        pixels, arguments = patches_of(pixels, 8)
        extra = ("--image-size", "64")
    if name == "VideoMAEForPreTraining":
        arguments = {"bool_masked_pos": None}
    what = "logits" if "Classification" in name and name not in WITHIN else "tokens"
    got = run(program, folder, image, scratch / "output.npy", what, extra)
    half = run(program, folder, image, scratch / "output.npy", what, (*extra, *IN_F16))
    out = wanted = None
    if got[0] is not None:
        model = model.double()
        tower, outer = tower_of(name, model)
        with torch.no_grad():
            out = tower(pixels, **arguments)
        if what == "logits":
            wanted = out.logits.numpy()
        elif torch.is_tensor(out):  # of each block
            wanted = out[-1].numpy()
        elif hasattr(out, "feature_maps"):  # a backbone gives its patches alone
            wanted = rows(out.feature_maps[-1].numpy())
            got, half = ((given[0][:, -wanted.shape[1]:], *given[1:]) for given in (got, half))
        else:
            wanted = rows(out.last_hidden_state.numpy())
    verdict, in_f16 = judge(got, wanted), judge(half, wanted, F16_LIMIT)
    pooled = None
    if out is not None and name.startswith(POOLED):
        pooled = getattr(out, "image_embeds", None)
        pooled = getattr(out, "pooler_output", None) if pooled is None else pooled
    if verdict[0] == "right" and what == "tokens" and pooled is not None:
        if tower is not outer and hasattr(outer, "visual_projection"):
            pooled = outer.visual_projection(pooled)
        verdict = judge(run(program, folder, image, scratch / "output.npy", "features", extra), pooled.detach().numpy())
    return verdict, in_f16
