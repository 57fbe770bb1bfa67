"""The table of fixtures, and how a row becomes a model, a checkpoint, a config.json and an input."""

import copy
import dataclasses
import json
import re
import zlib

import numpy as np
import torch

import hugging_face
import models
import naming
import positions

DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
NAMINGS = ("timm", "torchvision", "myvit", *hugging_face.CLASSES)


@dataclasses.dataclass(frozen=True)
class Case:
    """One model. `options` are models.VisionTransformer's (MyViT's for its own naming)."""

    name: str
    covers: str
    options: dict = dataclasses.field(default_factory=dict)
    naming: str = "timm"
    dtype: str = "F32"  # of the stored weights
    shards: int = 1  # files that the weights are spread over
    batch: int = 2
    config: bool = False  # a config.json lies beside the weights, so that nothing has to be guessed
    architecture: str = "vit_tiny_patch16_224"  # that timm's config.json names
    quiet: bool = False  # embeddings so small that the first norm's eps shows in every output
    large: float = 0  # the first block's hidden layer gets this much larger, and what reads it smaller again
    overrides: tuple = ()  # `--set` arguments: what names and shapes cannot tell, against the family's rule
    outputs: tuple = ("logits", "probabilities", "features", "tokens")


@dataclasses.dataclass
class Built:
    model: torch.nn.Module  # float64, its values exact in the stored type
    state: dict  # under the published names
    config: dict | None
    image: np.ndarray  # float32 [B, C, H, W]

    def reference(self):
        """Every output in float64."""
        return outputs_of(self.model, self.image)


@dataclasses.dataclass
class Resized:
    """The same weights on images of another size, for which the positions are resampled."""

    case: Case
    built: Built
    size: tuple
    image: np.ndarray

    def reference(self, rule=None):
        """Every output in float64, by the library's own rule or by another one."""
        model = copy.deepcopy(self.built.model)
        patch = models.pair(self.case.options.get("patch_size", 16))
        old, new = (tuple(s // p for s, p in zip(size, patch)) for size in (image_shape(self.case)[2:], self.size))
        name, table = position_table(model)
        rows = table.reshape(1, -1, table.shape[-1])
        rows = positions.resample(
            rows,
            old,
            new,
            rule or positions.rule_of(self.case.naming),
            single=positions.is_single(self.case.naming),
        )
        owner = model.get_submodule(name.rpartition(".")[0])
        table = torch.nn.Parameter(rows.reshape(*table.shape[:-2], -1, table.shape[-1]), requires_grad=False)
        setattr(owner, name.rpartition(".")[2], table)
        if isinstance(model, models.TorchvisionOracle):
            model.model.image_size = self.size[0]
        return outputs_of(model, self.image)


def outputs_of(model, image):
    with torch.inference_mode():
        return {k: v.numpy() for k, v in model(torch.from_numpy(image).double()).items()}


def position_table(model):
    """(name, table) of the learned positions; ("", None) where there are none."""
    for name, value in model.named_parameters():
        if re.search(r"(^|\.)(pos_embed|pos_embedding|position_embedding\.weight|position_embeddings)$", name):
            return name, value.detach()
    return "", None


def resized(case, built):
    """Two more patches down and one less across (torchvision: a larger square); None without a table."""
    if position_table(built.model)[1] is None:
        return None
    patch = models.pair(case.options.get("patch_size", 16))
    height, width = (size // p for size, p in zip(image_shape(case)[2:], patch))
    width += 2 if case.naming == "torchvision" else -1
    size = ((height + 2) * patch[0], width * patch[1])
    shape = (*image_shape(case)[:2], *size)
    image = np.random.default_rng([seed_of(case), 2]).standard_normal(shape).astype(np.float32)
    return Resized(case, built, size, image)


def image_shape(case):
    if case.naming == "myvit":
        return (case.batch, *case.options.get("chw", (1, 28, 28)))
    size = models.pair(case.options.get("img_size", 224))
    return (case.batch, case.options.get("in_chans", 3), *size)


def seed_of(case):
    """A seed from the name: reordering the table or adding to it changes no other fixture."""
    return zlib.crc32(case.name.encode())


def torchvision_model(options):
    from torchvision.models.vision_transformer import VisionTransformer

    dim = options.get("embed_dim", 768)
    model = VisionTransformer(
        image_size=options.get("img_size", 224),
        patch_size=options.get("patch_size", 16),
        num_layers=options.get("depth", 12),
        num_heads=options.get("num_heads", 12),
        hidden_dim=dim,
        mlp_dim=int(dim * options.get("mlp_ratio", 4)),
        num_classes=options.get("num_classes", 1000),
        representation_size=options.get("representation_size"),
    )
    return models.TorchvisionOracle(model)


def timm_config(case):
    """timm's hub file: a published architecture, and in model_args what differs from it."""
    o = dict(case.options)
    classes = o.pop("num_classes", 1000)
    pool = o.get("global_pool", "token")  # timm writes it twice and reads it from model_args
    if o.pop("layer_scale", False):
        o["init_values"] = 1e-5
    for in_architecture in ("eps", "swiglu"):
        o.pop(in_architecture, None)
    height, width = models.pair(o.get("img_size", 224))
    return {
        "architecture": case.architecture,
        "num_classes": classes,
        "num_features": o.get("embed_dim", 192),
        "global_pool": pool,
        "model_args": o,
        "pretrained_cfg": {
            "classifier": "head",
            "crop_pct": 0.9,
            "first_conv": "patch_embed.proj",
            "fixed_input_size": True,
            "input_size": [o.get("in_chans", 3), height, width],
            "interpolation": "bicubic",
            "mean": [0.5, 0.5, 0.5],
            "num_classes": classes,
            "pool_size": None,
            "std": [0.5, 0.5, 0.5],
        },
    }


def make_quiet(model, dtype):
    """Shrinks what enters the first norm to a variance of about 1e-6, amid the families' eps."""
    state = model.state_dict()
    for name, value in state.items():
        if re.match(
            r"patch_embed|conv_proj|cls_token|class_token|dist_token|pos_embed|encoder\.pos_emb", name
        ):
            state[name] = (1e-3 * value).to(dtype).double()
    if isinstance(
        model, models.MyViT
    ):  # its positions are fixed: let the class token take the first one away
        state["class_token"] = (state["class_token"] - model.positional_embeddings[0]).to(dtype).double()
    model.load_state_dict(state)


def make_large(model, factor, dtype):
    """Enlarges the first MLP's hidden layer past what f16 holds; its weights fit, its result stays the same."""
    norm, mlp = model.blocks[0].norm2, model.blocks[0].mlp
    share = factor**0.5
    for parameter, by in (
        (norm.weight, share),
        (norm.bias, share),
        (mlp.fc1.weight, factor / share),
        (mlp.fc1.bias, factor),
        (mlp.fc2.weight, 1 / factor),
    ):
        parameter.data = (parameter.data * by).to(dtype).double()


def build(case):
    """The model with random weights, its checkpoint, its config.json and an input; seeded by its name."""
    if case.naming not in NAMINGS:
        raise ValueError(f"{case.name}: naming is '{case.naming}', expected one of {', '.join(NAMINGS)}")
    dtype = DTYPES[case.dtype]
    seed = seed_of(case)
    if case.naming == "myvit":
        model = models.MyViT(**case.options)
    elif case.naming == "torchvision":
        model = torchvision_model(case.options)
    else:
        eps = {} if case.naming == "timm" else {"eps": hugging_face.model_eps(case)}
        model = models.VisionTransformer(**case.options, **eps)
    naming.randomise(model, seed, dtype)
    if case.quiet:
        make_quiet(model, dtype)
    if case.large:
        make_large(model, case.large, dtype)
    state = dict(model.state_dict())
    config = None
    if case.naming in hugging_face.CLASSES:
        state = hugging_face.checkpoint(state, case, seed, dtype)
        config = hugging_face.config(case) if case.config else None
    elif case.config:
        config = timm_config(case)
    image = np.random.default_rng([seed, 1]).standard_normal(image_shape(case)).astype(np.float32)
    return Built(model, state, config, image)


def write(case, built, folder):
    """The weights, config.json where there is one, and input.npy."""
    folder.mkdir(parents=True, exist_ok=True)
    naming.save(folder, built.state, DTYPES[case.dtype], case.shards)
    if built.config is not None:
        write_json(folder / "config.json", built.config)
    np.save(folder / "input.npy", built.image)


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")


def tiny(**options):
    """Two narrow blocks: wide enough to go wrong, small enough to be committed."""
    return {
        "img_size": 16,
        "patch_size": 4,
        "embed_dim": 24,
        "depth": 2,
        "num_heads": 2,
        "num_classes": 11,
        **options,
    }


def hf_clip(**options):
    """CLIP's tower as Hugging Face has it: the last norm is for the pooled token."""
    return tiny(
        **{
            "num_classes": 0,
            "pre_norm": True,
            "fc_norm": True,
            "act_layer": "quick_gelu",
            **options,
        }
    )


def hf_siglip(**options):
    return tiny(
        **{
            "num_classes": 0,
            "class_token": False,
            "global_pool": "map",
            "act_layer": "gelu_tanh",
            **options,
        }
    )


HEADS_2 = ("heads=2",)
FEATURES = ("features", "tokens")
FIXTURES = (
    Case(
        "torchvision",
        "torchvision's names and fused in_proj; heads of width 48; written by torchvision itself",
        tiny(img_size=24, patch_size=8, embed_dim=96, mlp_ratio=0.5),
        "torchvision",
        quiet=True,
        overrides=HEADS_2,
    ),
    Case(
        "timm_vit",
        "timm's names with timm's config.json; three heads of width 12",
        tiny(img_size=32, patch_size=8, embed_dim=36, depth=3, num_heads=3, mlp_ratio=2.0),
        config=True,
        quiet=True,
    ),
    Case(
        "deit_distilled",
        "distillation token and the mean of two heads, timm's names",
        tiny(distilled=True),
        overrides=HEADS_2,
    ),
    Case(
        "timm_representation",
        "representation layer with tanh, narrower than the tokens",
        tiny(representation_size=20),
        overrides=HEADS_2,
    ),
    Case(
        "timm_mean_pooled",
        "mean of the patch tokens, norm after the pooling, class token present but not pooled",
        tiny(global_pool="avg"),
        overrides=HEADS_2,
    ),
    Case(
        "timm_mean_pooled_no_class",
        "mean pooling without a class token",
        tiny(global_pool="avg", class_token=False),
        overrides=HEADS_2,
    ),
    Case(
        "timm_mean_pooled_norm_first",
        "mean pooling after the final norm, which only config.json tells",
        tiny(global_pool="avg", fc_norm=False),
        config=True,
    ),
    Case(
        "timm_small_images",
        "32x32 images, patches of 4, eight heads (width 24 for the size of the file), F16 weights",
        tiny(img_size=32, embed_dim=192, depth=1, num_heads=8, num_classes=10, mlp_ratio=1.5),
        dtype="F16",
        overrides=("heads=8",),
        outputs=("logits", "probabilities", "features"),
    ),
    Case(
        "timm_registers",
        "register tokens without positions; positions for the patches only",
        tiny(reg_tokens=3, no_embed_class=True),
        overrides=HEADS_2,
    ),
    Case(
        "timm_registers_with_positions",
        "a position for each of class token, registers and patches",
        tiny(reg_tokens=3),
        config=True,
    ),
    Case(
        "timm_layer_scale",
        "layer scale; patches of 5; four heads of width 7",
        tiny(img_size=15, patch_size=5, embed_dim=28, num_heads=4, layer_scale=True),
        overrides=("heads=4",),
    ),
    Case(
        "timm_qk_scale",
        "a score scale other than width^-0.5",
        tiny(qk_scale=0.25),
        overrides=(*HEADS_2, "qk_scale=0.25"),
    ),
    Case("timm_no_qkv_bias", "no q/k/v bias", tiny(qkv_bias=False), overrides=HEADS_2),
    Case(
        "timm_headless",
        "no classifier: features only",
        tiny(num_classes=0),
        overrides=HEADS_2,
        outputs=("features", "tokens"),
    ),
    Case("timm_patch_norm", "a norm inside the patch embedding", tiny(patch_norm=True), overrides=HEADS_2),
    Case(
        "timm_pre_norm",
        "a norm after the positions, a patch convolution without bias, and norm eps 1e-5: timm's CLIP towers",
        tiny(pre_norm=True, eps=1e-5),
        quiet=True,
        overrides=HEADS_2,
    ),
    Case(
        "timm_non_square",
        "an image of 16x24 pixels and one channel, which only config.json tells",
        tiny(img_size=(16, 24), in_chans=1),
        config=True,
        batch=3,
    ),
    Case("timm_f16", "weights stored as F16", tiny(), dtype="F16", overrides=HEADS_2),
    Case(
        "timm_large_hidden",
        "a hidden layer that reaches 1e6, which f16 can't hold: that layer must run in f32",
        tiny(),
        large=3e5,
        overrides=HEADS_2,
    ),
    Case("timm_bf16", "weights stored as BF16", tiny(), dtype="BF16", overrides=HEADS_2),
    Case(
        "hf_vit",
        "Hugging Face ViT's names, split q/k/v, norm eps 1e-12; one head of width 24",
        tiny(num_heads=1),
        "hf_vit",
        config=True,
        quiet=True,
    ),
    Case(
        "hf_deit", "Hugging Face DeiT with its two classifiers", tiny(distilled=True), "hf_deit", config=True
    ),
    Case(
        "hf_vit_backbone",
        "Hugging Face ViTModel: names without a prefix, no classifier, a pooler that is not used",
        tiny(num_classes=0),
        "hf_backbone",
        config=True,
        outputs=("features", "tokens"),
    ),
    Case(
        "hf_deit_no_teacher",
        "Hugging Face DeiT with both tokens and one classifier",
        tiny(distilled=True, one_head=True),
        "hf_deit_no_teacher",
        config=True,
    ),
    Case(
        "timm_dinov2_giant",
        "timm's DINOv2 with SwiGLU and layer scale, no classifier; BF16 in three shards",
        tiny(num_classes=0, layer_scale=True, swiglu=True, mlp_ratio=4.0),
        dtype="BF16",
        shards=3,
        overrides=HEADS_2,
        outputs=FEATURES,
    ),
    Case(
        "timm_dinov2_giant_registers",
        "the same with registers, positions for the patches only, and timm's config.json",
        tiny(
            num_classes=0, layer_scale=True, swiglu=True, mlp_ratio=4.0, reg_tokens=4, no_embed_class=True
        ),
        config=True,
        architecture="vit_giant_patch14_reg4_dinov2",
        outputs=FEATURES,
    ),
    Case(
        "timm_clip_quickgelu",
        "timm's CLIP with the quick GELU and the projection as head; F16 in two shards",
        tiny(pre_norm=True, eps=1e-5, act_layer="quick_gelu"),
        dtype="F16",
        shards=2,
        config=True,
        architecture="vit_base_patch16_clip_quickgelu_224",
    ),
    Case(
        "timm_siglip",
        "timm's SigLIP: attention pooling, no class token",
        tiny(num_classes=0, class_token=False, global_pool="map"),
        quiet=True,
        overrides=HEADS_2,
        outputs=FEATURES,
    ),
    Case(
        "timm_siglip_tanh",
        "attention pooling and the tanh GELU, with a classifier and timm's config.json",
        tiny(class_token=False, global_pool="map", act_layer="gelu_tanh"),
        config=True,
        architecture="vit_base_patch32_siglip_256",
    ),
    Case(
        "timm_map_registers",
        "attention pooling of the patches only, behind registers with positions",
        tiny(class_token=False, global_pool="map", reg_tokens=4),
        overrides=HEADS_2,
    ),
    Case(
        "hf_dinov2",
        "Hugging Face DINOv2's backbone, norm eps 1e-6",
        tiny(num_classes=0, layer_scale=True),
        "hf_dinov2",
        config=True,
        quiet=True,
        outputs=FEATURES,
    ),
    Case(
        "hf_dinov2_classifier",
        "DINOv2 with SwiGLU and a classifier of class token and mean; four F32 shards",
        tiny(embed_dim=32, global_pool="token_and_mean", layer_scale=True, swiglu=True, mlp_ratio=5.5),
        "hf_dinov2_classifier",
        shards=4,
        config=True,
    ),
    Case(
        "hf_dinov2_registers",
        "registers that come after the positions, told by names and shapes alone",
        tiny(num_classes=0, layer_scale=True, reg_tokens=4, position_registers=False),
        "hf_dinov2_registers",
        overrides=HEADS_2,
        outputs=FEATURES,
    ),
    Case(
        "hf_dinov2_registers_classifier",
        "the same with a classifier, whose mean leaves the registers out; BF16 weights",
        tiny(global_pool="token_and_mean", layer_scale=True, reg_tokens=3, position_registers=False),
        "hf_dinov2_registers_classifier",
        dtype="BF16",
        config=True,
    ),
    Case(
        "hf_clip_vision",
        "Hugging Face CLIP's vision tower: norm eps 1e-5, the last norm for the class token only",
        hf_clip(),
        "hf_clip_vision",
        config=True,
        quiet=True,
        outputs=FEATURES,
    ),
    Case(
        "hf_clip_projection",
        "CLIP's vision tower with its projection, told by names and shapes alone; F16 weights",
        hf_clip(embedding_size=10),
        "hf_clip_projection",
        dtype="F16",
        overrides=(*HEADS_2, "activation=gelu_quick"),
        outputs=FEATURES,
    ),
    Case(
        "hf_clip",
        "the vision tower inside the whole CLIP's file, beside a text tower; F16 in two shards",
        hf_clip(embedding_size=10),
        "hf_clip",
        dtype="F16",
        shards=2,
        config=True,
        outputs=FEATURES,
    ),
    Case(
        "hf_clip_classifier",
        "CLIP's classifier: the mean of patches that no norm has touched",
        hf_clip(num_classes=11, global_pool="avg", final_norm=False),
        "hf_clip_classifier",
        config=True,
    ),
    Case(
        "hf_siglip_vision",
        "Hugging Face SigLIP's vision tower without a prefix: attention pooling with a fused in_proj",
        hf_siglip(),
        "hf_siglip_vision",
        config=True,
        quiet=True,
        outputs=FEATURES,
    ),
    Case(
        "hf_siglip_prefixed",
        "the same with the prefix of older files, told by names and shapes alone; F16 weights",
        hf_siglip(),
        "hf_siglip_vision_4",
        dtype="F16",
        overrides=HEADS_2,
        outputs=FEATURES,
    ),
    Case(
        "hf_siglip",
        "the vision tower inside the whole SigLIP's file; BF16 in two shards",
        hf_siglip(),
        "hf_siglip",
        dtype="BF16",
        shards=2,
        config=True,
        outputs=FEATURES,
    ),
    Case(
        "hf_siglip_classifier",
        "SigLIP's classifier: the mean of the tokens, the pooling of the file unread",
        hf_siglip(num_classes=11, global_pool="avg", fc_norm=False),
        "hf_siglip_classifier",
        config=True,
    ),
    Case(
        "myvit",
        "MyViT as published: 1x28x28, width 8, two blocks, two heads; softmax at the end is `probabilities`",
        {},
        "myvit",
        batch=5,
        quiet=True,
    ),
)
