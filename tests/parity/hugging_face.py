"""Models as Hugging Face's transformers publishes them: classes, tensor names, config.json."""

import dataclasses
import re

import numpy as np
import torch

import naming

EMBEDDINGS = {
    "cls_token": "embeddings.cls_token",
    "dist_token": "embeddings.distillation_token",
    "reg_token": "embeddings.register_tokens",
    "pos_embed": "embeddings.position_embeddings",
    "patch_embed.proj": "embeddings.patch_embeddings.projection",
    "norm": "layernorm",
}
ATTENTION = {
    "q": "attention.attention.query",
    "k": "attention.attention.key",
    "v": "attention.attention.value",
    "attn.proj": "attention.output.dense",
}
TOWER = {
    "cls_token": "embeddings.class_embedding",
    "pos_embed": "embeddings.position_embedding.weight",
    "patch_embed.proj": "embeddings.patch_embedding",
}
TOWER_LAYER = {
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "attn.proj": "self_attn.out_proj",
    "norm1": "layer_norm1",
    "norm2": "layer_norm2",
    "mlp.fc1": "mlp.fc1",
    "mlp.fc2": "mlp.fc2",
}


@dataclasses.dataclass(frozen=True)
class Names:
    """timm's names -> a family's: behind the prefix, and inside a layer."""

    top: dict
    layer: dict
    layers: str = "encoder.layer."


VIT = Names(
    EMBEDDINGS,
    {
        **ATTENTION,
        "norm1": "layernorm_before",
        "norm2": "layernorm_after",
        "mlp.fc1": "intermediate.dense",
        "mlp.fc2": "output.dense",
    },
)
DINOV2 = Names(
    EMBEDDINGS,
    {
        **ATTENTION,
        "norm1": "norm1",
        "norm2": "norm2",
        "ls1.gamma": "layer_scale1.lambda1",
        "ls2.gamma": "layer_scale2.lambda1",
        "mlp.fc1": "mlp.fc1",
        "mlp.fc2": "mlp.fc2",
    },
)
DINOV2_GATED = Names(
    EMBEDDINGS, {**DINOV2.layer, "mlp.fc1": "mlp.weights_in", "mlp.fc2": "mlp.weights_out"}
)
CLIP = Names({**TOWER, "norm_pre": "pre_layrnorm", "fc_norm": "post_layernorm"}, TOWER_LAYER, "encoder.layers.")
SIGLIP = Names(
    {
        **TOWER,
        "norm": "post_layernorm",
        "attn_pool.latent": "head.probe",
        "attn_pool.proj": "head.attention.out_proj",
        "attn_pool.norm": "head.layernorm",
        "attn_pool.mlp.fc1": "head.mlp.fc1",
        "attn_pool.mlp.fc2": "head.mlp.fc2",
    },
    TOWER_LAYER,
    "encoder.layers.",
)
HEADS = {"head": "classifier", "visual_projection": "visual_projection"}
TWO_HEADS = {"head": "cls_classifier", "head_dist": "distillation_classifier"}


@dataclasses.dataclass(frozen=True)
class Published:
    """One of transformers' classes and what it saves."""

    kind: str
    model_type: str
    names: Names
    prefix: str
    heads: dict = dataclasses.field(default_factory=lambda: HEADS)
    text: bool = False  # with a text tower, and the config one level deeper
    nested: bool = False  # only the latter


CLASSES = {
    "hf_vit": Published("ViTForImageClassification", "vit", VIT, "vit."),
    "hf_backbone": Published("ViTModel", "vit", VIT, ""),
    "hf_deit": Published("DeiTForImageClassificationWithTeacher", "deit", VIT, "deit.", TWO_HEADS),
    "hf_deit_no_teacher": Published("DeiTForImageClassification", "deit", VIT, "deit."),
    "hf_dinov2": Published("Dinov2Model", "dinov2", DINOV2, ""),
    "hf_dinov2_classifier": Published("Dinov2ForImageClassification", "dinov2", DINOV2, "dinov2."),
    "hf_dinov2_registers": Published("Dinov2WithRegistersModel", "dinov2_with_registers", DINOV2, ""),
    "hf_dinov2_registers_classifier": Published(
        "Dinov2WithRegistersForImageClassification", "dinov2_with_registers", DINOV2, "dinov2_with_registers."
    ),
    "hf_clip_vision": Published("CLIPVisionModel", "clip_vision_model", CLIP, "vision_model."),
    "hf_clip_projection": Published(
        "CLIPVisionModelWithProjection", "clip_vision_model", CLIP, "vision_model."
    ),
    "hf_clip": Published("CLIPModel", "clip", CLIP, "vision_model.", text=True),
    "hf_clip_classifier": Published(
        "CLIPForImageClassification", "clip", CLIP, "vision_model.", nested=True
    ),
    # transformers 5 saves a lone tower without a prefix.
    "hf_siglip_vision": Published("SiglipVisionModel", "siglip_vision_model", SIGLIP, ""),
    "hf_siglip_vision_4": Published("SiglipVisionModel", "siglip_vision_model", SIGLIP, "vision_model."),
    "hf_siglip": Published("SiglipModel", "siglip", SIGLIP, "vision_model.", text=True),
    "hf_siglip_classifier": Published(
        "SiglipForImageClassification", "siglip", SIGLIP, "vision_model.", nested=True
    ),
}

# A text tower, as small as it can be: nobody reads it.
TEXT = {"dim": 4, "hidden": 4, "vocabulary": 9, "length": 5}


def text_shapes(model_type, projection):
    """The tensors of a text tower and what ties the two together."""
    dim, hidden = TEXT["dim"], TEXT["hidden"]
    shapes = {
        "text_model.embeddings.token_embedding.weight": (TEXT["vocabulary"], dim),
        "text_model.embeddings.position_embedding.weight": (TEXT["length"], dim),
    }
    layer = "text_model.encoder.layers.0."
    linear = {f"self_attn.{part}_proj": (dim, dim) for part in ("q", "k", "v", "out")}
    linear |= {"mlp.fc1": (hidden, dim), "mlp.fc2": (dim, hidden)}
    for name, shape in linear.items():
        shapes[f"{layer}{name}.weight"] = shape
        shapes[f"{layer}{name}.bias"] = shape[:1]
    for name in (f"{layer}layer_norm1", f"{layer}layer_norm2", "text_model.final_layer_norm"):
        shapes[f"{name}.weight"] = shapes[f"{name}.bias"] = (dim,)
    if model_type == "clip":
        return shapes | {"text_projection.weight": (projection, dim), "logit_scale": ()}
    head = {"text_model.head.weight": (dim, dim), "text_model.head.bias": (dim,)}
    return shapes | head | {"logit_scale": (1,), "logit_bias": (1,)}


def text_config(model_type):
    return {
        "hidden_size": TEXT["dim"],
        "intermediate_size": TEXT["hidden"],
        "max_position_embeddings": TEXT["length"],
        "model_type": f"{model_type}_text_model",
        "num_attention_heads": 1,
        "num_hidden_layers": 1,
        "vocab_size": TEXT["vocabulary"],
    }


def rename(state, case):
    """A timm state_dict under the names of the case's class."""
    published = CLASSES[case.naming]
    names = DINOV2_GATED if case.options.get("swiglu") else published.names
    prefix = published.prefix
    tower = names.layers == "encoder.layers."
    out = {}
    for name, value in state.items():
        stem, suffix = naming.stem_and_leaf(name)
        block = re.fullmatch(r"blocks\.(\d+)\.(.+)", stem)
        if block and block[2] == "attn.qkv":
            for part, piece in zip("qkv", value.chunk(3)):
                out[f"{prefix}{names.layers}{block[1]}.{names.layer[part]}{suffix}"] = piece.contiguous()
        elif block:
            out[f"{prefix}{names.layers}{block[1]}.{names.layer[block[2]]}{suffix}"] = value
        elif stem == "attn_pool.q":
            fused = torch.cat([value, state[f"attn_pool.kv{suffix}"]])
            out[f"{prefix}head.attention.in_proj_{suffix[1:]}"] = fused
        elif stem == "attn_pool.kv":
            continue
        elif stem in published.heads:
            out[published.heads[stem] + suffix] = value
        else:
            if tower and stem in ("cls_token", "pos_embed"):
                value = value.reshape(value.shape[1:] if stem == "pos_embed" else value.shape[2:])
            out[prefix + names.top[stem] + suffix] = value
    return out


def unread_shapes(case):
    """What the class saves and no inference looks at."""
    published, dim = CLASSES[case.naming], case.options.get("embed_dim", 768)
    hidden = int(dim * case.options.get("mlp_ratio", 4))
    shapes = {}
    if published.kind == "ViTModel":
        shapes |= {"pooler.dense.weight": (dim, dim), "pooler.dense.bias": (dim,)}
    if published.names is DINOV2:
        shapes[f"{published.prefix}embeddings.mask_token"] = (1, dim)
    if published.text:
        shapes |= text_shapes(published.model_type, case.options.get("embedding_size", 0))
    if published.kind == "CLIPForImageClassification":
        shapes |= {f"{published.prefix}post_layernorm.{leaf}": (dim,) for leaf in ("weight", "bias")}
    if published.kind == "SiglipForImageClassification":
        head = f"{published.prefix}head."
        shapes |= {
            f"{head}probe": (1, 1, dim),
            f"{head}attention.in_proj_weight": (3 * dim, dim),
            f"{head}attention.in_proj_bias": (3 * dim,),
            f"{head}attention.out_proj.weight": (dim, dim),
            f"{head}attention.out_proj.bias": (dim,),
            f"{head}layernorm.weight": (dim,),
            f"{head}layernorm.bias": (dim,),
            f"{head}mlp.fc1.weight": (hidden, dim),
            f"{head}mlp.fc1.bias": (hidden,),
            f"{head}mlp.fc2.weight": (dim, hidden),
            f"{head}mlp.fc2.bias": (dim,),
        }
    return shapes


def checkpoint(state, case, seed, dtype):
    """All tensors that the class saves."""
    out = rename(state, case)
    for name, shape in unread_shapes(case).items():
        values = np.asarray(naming.random_values(name, shape, seed))
        out[name] = torch.from_numpy(values).to(dtype).double()
    return out


def model_eps(case):
    """The norms' eps of the class's configuration."""
    model_type = CLASSES[case.naming].model_type
    return {"vit": 1e-12, "deit": 1e-12, "clip": 1e-5, "clip_vision_model": 1e-5}.get(model_type, 1e-6)


def config(case):
    published, o = CLASSES[case.naming], case.options
    model_type, dim = published.model_type, o.get("embed_dim", 768)
    vision = {
        "hidden_size": dim,
        "image_size": o.get("img_size", 224),
        "layer_norm_eps": model_eps(case),
        "num_attention_heads": o.get("num_heads", 12),
        "num_channels": o.get("in_chans", 3),
        "num_hidden_layers": o.get("depth", 12),
        "patch_size": o.get("patch_size", 16),
    }
    act = {"gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh", "quick_gelu": "quick_gelu"}
    vision["hidden_act"] = act[o.get("act_layer", "gelu")]
    hidden = int(dim * o.get("mlp_ratio", 4))
    if published.names is DINOV2:
        vision |= {
            "apply_layernorm": True,
            "attention_probs_dropout_prob": 0.0,
            "drop_path_rate": 0.0,
            "hidden_dropout_prob": 0.0,
            "layerscale_value": 1.0,
            "mlp_ratio": o.get("mlp_ratio", 4),
            "qkv_bias": o.get("qkv_bias", True),
            "use_swiglu_ffn": bool(o.get("swiglu")),
        }
        if o.get("swiglu"):  # two thirds of four times the width, in whole eights
            vision["mlp_ratio"] = 4
            if hidden != 2 * ((4 * dim * 2 // 3 + 7) // 8 * 8):
                raise ValueError(f"{case.name}: {hidden} packed rows are not what mlp_ratio 4 makes")
        if model_type == "dinov2_with_registers":
            vision["num_register_tokens"] = o.get("reg_tokens", 0)
    elif published.names is VIT:
        vision |= {
            "attention_probs_dropout_prob": 0.0,
            "hidden_dropout_prob": 0.0,
            "intermediate_size": hidden,
            "qkv_bias": o.get("qkv_bias", True),
        }
    else:
        vision |= {"attention_dropout": 0.0, "intermediate_size": hidden}
    top = {"architectures": [published.kind], "model_type": model_type}
    if o.get("embedding_size"):
        top["projection_dim"] = o["embedding_size"]
    if o.get("num_classes", 1000):
        labels = [f"class {i}" for i in range(o.get("num_classes", 1000))]
        top["id2label"] = {str(i): label for i, label in enumerate(labels)}
        top["label2id"] = {label: i for i, label in enumerate(labels)}
    if not published.text and not published.nested:
        return vision | top
    vision["model_type"] = f"{model_type}_vision_model"
    return top | {"text_config": text_config(model_type), "vision_config": vision}
