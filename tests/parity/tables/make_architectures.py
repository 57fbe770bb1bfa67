#!/usr/bin/env python3
"""Writes model/families/known_architectures_table.cpp: what names and shapes don't tell of published models.

Every architecture of timm's that has the tensors of a plain Vision Transformer and no others, and torchvision's, with
what their tensors show (the key) and what they don't: heads, activation, epsilon, and what Vitrine can't compute of
them. The libraries' own registries are asked, on the meta device, so that no weights are made.
"""
import math
import pathlib
import re

import timm
import torch
import torchvision

MODULES = ("beit cait deit eva naflexvit vision_transformer vision_transformer_hybrid vision_transformer_relpos "
           "vision_transformer_sam").split()
# What model/families/family_tables.cpp knows of timm's names.
PLAIN = re.compile(
    r"(patch_embed\.(proj|norm)\.(weight|bias)|patch_embed\.backbone\..*|cls_token|dist_token|reg_token|pos_embed|norm_pre\.\w+|"
    r"blocks\.\d+\.(norm1|norm2|attn\.qkv|attn\.[qkv]_proj|attn\.proj|attn\.norm|attn\.[qk]_norm|mlp\.fc1|mlp\.fc1_[gx]|mlp\.norm|"
    r"mlp\.fc2)\.(weight|bias)|blocks\.\d+\.(ls[12]\.gamma|gamma_[12]|attn\.[qv]_bias)|rope\.freqs|"
    r"(blocks\.\d+\.attn\.|rel_pos_bias\.)relative_position_bias_table|(blocks\.\d+\.attn\.|shared_)rel_pos\.mlp\.fc[12]\.\w+|"
    r"embeds\.(proj\.weight|proj\.bias|norm\.\w+|cls_token|reg_token|pos_embed|pos_embed_[yx])|"
    r"blocks\.\d+\.attn\.rel_pos_[hw]|neck\.[0-3]\.\w+|neck\.\w+|head\.fc\.\w+|"
    r"blocks\.\d+\.attn\.proj_[lw]\.(weight|bias)|blocks_token_only\.\d+\.gamma_[12]|"
    r"blocks_token_only\.\d+\.(norm[12]|attn\.[qkv]|attn\.proj|mlp\.fc[12])\.(weight|bias)|"
    r"blocks\.\d+\.(attn\.)?(lambda_[qk][12]|sub_norm\.weight)|"
    r"blocks\.\d+\.(in_norm|in_proj|[qk]_norm|out_proj|attn_out_proj|mlp_out_proj)\.(weight|bias)|blocks\.\d+\.(mlp_bias|ls\.gamma)|"
    r"blocks\.\d+\.attns\.\d+\.(norm\.\w+|attn\.qkv\.\w+|attn\.proj\.\w+|ls\.gamma)|"
    r"blocks\.\d+\.ffns\.\d+\.(norm\.\w+|mlp\.fc[12]\.\w+|ls\.gamma)|"
    r"norm\.\w+|attn_pool\..*|fc_norm\.\w+|pre_logits\.fc\.\w+|head\.\w+|head_dist\.\w+)")
ACTIVATIONS = {"GELU": "gelu", "QuickGELU": "gelu_quick", "GELUTanh": "gelu_tanh", "SiLU": "silu", "ReLU": "relu"}


# Convolutions in front of the patches by the first one's weight: the kind, how many times that one's channels the stem is
# wide, how its stages are called, and the stride in front of these.
STEMS = [("0.conv.weight", "convolutions", 1, "", 8), ("conv1.0.weight", "resnet", 2, "layer%d", 4),
         ("stem.conv.weight", "bit", 1, "stages.%d.blocks", 4), ("conv.weight", "bit", 1, "", 4)]


def activation_of(block):
    found = {type(module).__name__ for module in block.modules()} & set(ACTIVATIONS)
    assert len(found) == 1, found
    return ACTIVATIONS[found.pop()]


def only(values):
    values = set(values)
    assert len(values) == 1, values
    return values.pop()


def in_plain_names(tensors):
    """A first block of another kind under the names of a plain one, with the shapes of one branch; and the words for its kind."""
    block = {key.removeprefix("blocks.0."): shape for key, shape in tensors.items() if key.startswith("blocks.0.")}
    words = []
    if "in_norm.weight" in block:
        dim = block["in_proj.weight"][1]
        hidden = block["in_proj.weight"][0] - 3 * dim
        renamed = {"in_norm.": "norm1.", "q_norm.": "attn.q_norm.", "k_norm.": "attn.k_norm.", "attn_out_proj.": "attn.proj.",
                   "mlp_out_proj.": "mlp.fc2.", "ls.gamma": "ls1.gamma"}
        plain = {new + key.removeprefix(old): shape for key, shape in block.items() for old, new in renamed.items() if key.startswith(old)}
        plain |= {"attn.qkv.weight": [3 * dim, dim], "mlp.fc1.weight": [hidden, dim]}
        if "in_proj.bias" in block:
            plain |= {"attn.qkv.bias": [3 * dim]}
        if "out_proj.weight" in block:
            plain |= {"attn.proj.weight": [dim, dim], "mlp.fc2.weight": [dim, hidden]}
            plain |= {"mlp.fc2.bias": [dim]} if "out_proj.bias" in block else {}
        if "ls1.gamma" in plain:
            plain["ls2.gamma"] = plain["ls1.gamma"]  # one for both
        plain |= {f"attn.{key}": shape for key, shape in block.items() if key.startswith("lambda_")}
        words.append("parallel")
    elif "attns.0.norm.weight" in block:
        renamed = {"attns.0.norm.": "norm1.", "attns.0.attn.": "attn.", "attns.0.ls.gamma": "ls1.gamma", "ffns.0.norm.": "norm2.",
                   "ffns.0.mlp.": "mlp.", "ffns.0.ls.gamma": "ls2.gamma"}
        plain = {new + key.removeprefix(old): shape for key, shape in block.items() for old, new in renamed.items() if key.startswith(old)}
        words.append(f"branches{len({key.split('.')[1] for key in block if key.startswith('attns.')})}")
    else:
        return tensors, words
    others = {key: shape for key, shape in tensors.items() if not key.startswith("blocks.0.")}
    return others | {f"blocks.0.{key}": shape for key, shape in plain.items()}, words


def timm_key(tensors, grid):
    """The same text as key_of() in known_architectures.cpp makes of a ViTConfig."""
    tensors, kind_words = in_plain_names(tensors)
    tensors = {key.replace("embeds.proj", "patch_embed.proj").removeprefix("embeds."): shape for key, shape in tensors.items()}
    stem = [stem for stem in STEMS if "patch_embed.backbone." + stem[0] in tensors]
    if stem and stem[0][1] == "convolutions":
        tensors |= {f"patch_embed.proj.{leaf}": tensors[f"patch_embed.backbone.2.conv.{leaf}"] for leaf in ("weight", "bias")}
    naflex = len(tensors["patch_embed.proj.weight"]) == 2
    dim = tensors["patch_embed.proj.weight"][0]
    height, width = [math.isqrt(tensors["patch_embed.proj.weight"][1] // 3)] * 2 if naflex else tensors["patch_embed.proj.weight"][2:]
    depth = len({name.split(".")[1] for name in tensors if name.startswith("blocks.")})
    hidden = tensors["blocks.0.mlp.fc2.weight"][1]
    words = []
    if stem:
        first, kind, widths, stages, stride = stem[0]
        blocks = [len({name.split(".")[stages.count(".") + 3] for name in tensors if name.startswith(f"patch_embed.backbone.{stages % stage}.")})
                  for stage in ((0, 1, 2, 3) if kind == "bit" else (1, 2, 3, 4))] if stages else []
        blocks = [count for count in blocks if count]
        stride *= 2 ** max(len(blocks) - 1, 0)
        height, width = height * stride, width * stride
        words.append(f"stem={kind}:{widths * tensors['patch_embed.backbone.' + first][0]}:{','.join(map(str, blocks))}")
    words = [f"{dim}x{depth}x{hidden}", f"{height}x{width}", *words]
    prefix = ("cls_token" in tensors) + ("dist_token" in tensors)
    registers = tensors["reg_token"][-2] if "reg_token" in tensors else 0
    words += ["class"] * ("cls_token" in tensors) + ["distillation"] * ("dist_token" in tensors)
    words += [f"registers{registers}"] * (registers > 0)
    if naflex:
        words += ["positions_of_patches"] * (prefix + registers > 0)
    elif "pos_embed" not in tensors:
        words.append("no_positions")
    elif len(tensors["pos_embed"]) == 4:
        assert tensors["pos_embed"][1:3] == list(grid) and prefix + registers == 0
    elif tensors["pos_embed"][-2] != prefix + registers + math.prod(grid):
        assert tensors["pos_embed"][-2] == math.prod(grid)
        words.append("positions_of_patches")
    words += ["patch_norm"] * ("patch_embed.norm.weight" in tensors)
    words += ["no_patch_bias"] * ("patch_embed.proj.bias" not in tensors)
    words += ["pre_norm"] * ("norm_pre.weight" in tensors)
    words += ["layer_scale"] * ("blocks.0.ls1.gamma" in tensors or "blocks.0.gamma_1" in tensors)
    biases = [leaf for leaf in ("qkv.bias", "q_bias", "q_proj.bias") if f"blocks.0.attn.{leaf}" in tensors]
    scaled = [name for name in ("ls2.gamma", "gamma_2") if f"blocks.0.{name}" in tensors]
    words += ["no_mlp_scale"] * ("layer_scale" in words and not scaled)
    words += ["no_qkv_bias"] * (not biases)
    words += ["no_key_bias"] * (biases == ["q_bias"] or biases == ["q_proj.bias"] and "blocks.0.attn.k_proj.bias" not in tensors)
    words += ["head_norm"] * ("blocks.0.attn.q_norm.weight" in tensors)
    words += ["attention_norm"] * ("blocks.0.attn.norm.weight" in tensors)
    words += ["mlp_norm"] * ("blocks.0.mlp.norm.weight" in tensors)
    words += ["no_projection_bias"] * ("blocks.0.attn.proj.bias" not in tensors)
    words += ["no_mlp_bias"] * ("blocks.0.mlp.fc2.bias" not in tensors)
    words += ["rotary_frequencies"] * ("rope.freqs" in tensors)
    for kind, table, mlp in (("own", "blocks.0.attn.relative_position_bias_table", "blocks.0.attn.rel_pos.mlp"),
                             ("shared", "rel_pos_bias.relative_position_bias_table", "shared_rel_pos.mlp")):
        if table in tensors:
            words.append(f"{kind}_bias")
        elif f"{mlp}.fc1.weight" in tensors:
            words.append(f"{kind}_bias_mlp{tensors[f'{mlp}.fc1.weight'][0]}")
            words += ["relative_swin"] * (f"{mlp}.fc2.bias" not in tensors)
    words += ["decomposed_bias"] * ("blocks.0.attn.rel_pos_h" in tensors)
    words += [f"neck{tensors[name][0]}" for name in ("neck.0.weight",) if name in tensors]
    words += kind_words + ["differential"] * ("blocks.0.attn.lambda_q1" in tensors)
    words += ["talking_heads"] * ("blocks.0.attn.proj_l.weight" in tensors)
    class_blocks = len({name.split(".")[1] for name in tensors if name.startswith("blocks_token_only.")})
    words += [f"class_blocks{class_blocks}"] * (class_blocks > 0)
    words += ["rms"] * ("blocks.0.norm1.bias" not in tensors)
    gated = "blocks.0.mlp.fc1_g.weight" in tensors or tensors["blocks.0.mlp.fc1.weight"][0] == 2 * hidden
    words += ["swiglu"] * gated
    words += ["norm"] * ("norm.weight" in tensors or "neck.weight" in tensors) + ["fc_norm"] * ("fc_norm.weight" in tensors)
    words += ["attention_pool"] * ("attn_pool.latent" in tensors)
    words += ["pre_logits"] * ("pre_logits.fc.weight" in tensors) + ["gammas"] * ("blocks.0.gamma_1" in tensors)
    return " ".join(words)


def parts_of(block):
    """Its first norm, its attention and its MLP."""
    if hasattr(block, "in_norm"):
        return block.in_norm, block, block
    if hasattr(block, "attns"):
        return block.attns[0].norm, block.attns[0].attn, block.ffns[0].mlp
    return block.norm1, block.attn, block.mlp


def attention_of(block):
    return parts_of(block)[1]


def timm_lacks(model):
    block = model.blocks[0]
    norm, attention, mlp = (type(part).__name__ for part in parts_of(block))
    if norm not in ("LayerNorm", "RmsNorm"):
        return f"norms of that kind ({norm}) are"
    if getattr(attention_of(block), "gate", None) is not None:
        return "gated attention is"
    if type(block).__name__ not in ("Block", "ResPostBlock", "EvaBlock", "EvaBlockPostNorm", "RelPosBlock", "ResPostRelPosBlock",
                                    "LayerScaleBlock", "ParallelScalingBlock", "ParallelThingsBlock", "DiffParallelScalingBlock"):
        return "blocks of another kind than the plain one are"
    if attention in ("ParallelScalingBlock", "DiffParallelScalingBlock"):
        attention, mlp = "Attention", "Mlp"  # both are the block itself
    if attention not in ("Attention", "DiffAttention", "TalkingHeadAttn", "EvaAttention", "AttentionRope", "RelPosAttention"):
        return "attention of another kind than the plain one is"
    if mlp not in ("Mlp", "SwiGLU", "SwiGLUPacked", "GluMlp"):
        return "another MLP than the plain one and SwiGLU is"
    rope = getattr(model, "rope", None)
    if type(rope).__name__ not in ("NoneType", "RotaryEmbeddingCat", "RotaryEmbeddingDinoV3", "RotaryEmbeddingMixed"):
        return "rotary positions of that kind are"
    patches = model.embeds if hasattr(model, "embeds") else model.patch_embed
    if getattr(patches, "dynamic_img_pad", False):
        return "images that are padded to whole patches are"
    if model.global_pool not in ("token", "avg", "map"):
        return f"its pooling ({model.global_pool}) is"
    return ""


def timm_set(model):
    """What of it no name and no shape shows, as fields of ViTConfig."""
    fields = {}
    rope = getattr(model, "rope", None)
    block = model.blocks[0]
    if hasattr(model, "embeds"):
        embeds = model.embeds
        assert embeds.norm_input is None and embeds.channels_last
        # The sum of two axes is resampled as each of them is, without antialias.
        antialias = embeds.pos_embed_antialias and embeds.pos_embed_type == "learned"
        mode = "bilinear" if embeds.pos_embed_type == "factorized" else embeds.pos_embed_interp_mode
        assert not (antialias and embeds.pos_embed_align_corners)
        resize = mode + ("_antialias" if antialias else "_corners" if embeds.pos_embed_align_corners else "")
        assert resize != "bicubic"  # which stands for the library's own rule where a configuration is read
        if resize != "bicubic_antialias":
            fields["position_resize"] = resize
        if embeds.pos_embed_ar_preserving:
            fields["position_square"] = "true"
    if type(block).__name__ in ("ResPostBlock", "EvaBlockPostNorm", "ResPostRelPosBlock"):
        fields["post_norm"] = "true"
    if rope is not None:
        halves = getattr(rope, "rotate_half", False)
        assert halves == block.attn.rotate_half
        fields["rotary"] = "halves" if halves else "neighbours"
        fields["rotary_base"] = f"{rope.temperature:g}"
        offset = getattr(rope, "grid_offset", 0)
        if offset:
            fields["rotary_offset"] = f"{offset:g}"
        reference = getattr(rope, "ref_feat_shape", None)
        if reference:
            assert reference[0] == reference[1]
            fields["rotary_reference"] = str(reference[0])
        if type(rope).__name__ == "RotaryEmbeddingDinoV3":
            assert rope.normalize_coords == "separate" and rope.min_period is None
            fields["rotary_centered"] = "true"
        else:
            assert not getattr(rope, "in_pixels", False)
        if rope.grid_indexing == "xy":
            fields["rotary_columns_first"] = "true"
    if type(model).__name__ == "VisionTransformerSAM":
        windows = [block.window_size for block in model.blocks]
        fields["window"] = str(only(size for size in windows if size))
        fields["global_blocks"] = ",".join(str(index) for index, size in enumerate(windows) if not size)
        fields["final_eps"] = f"{only(module.eps for module in model.neck.modules() if hasattr(module, 'eps')):g}"
        assert model.global_pool == "avg" and model.rope_global is None
        return " ".join(f"{key}={value}" for key, value in fields.items())
    # The pool that Vitrine infers where names and shapes don't tell.
    attn_pool = getattr(model, "attn_pool", None)
    inferred = "map" if attn_pool is not None else (
        "avg" if not isinstance(getattr(model, "fc_norm", torch.nn.Identity()), torch.nn.Identity) or getattr(model, "embeds", model).cls_token is None else "token")
    if model.global_pool != inferred:
        fields["pool"] = {"token": "token", "avg": "mean", "map": "attention"}[model.global_pool]
    # Eva's attention pooling sees all tokens.
    if model.num_prefix_tokens and (getattr(model, "pool_include_prefix", False) and model.global_pool != "token"
                                    or type(model).__name__ == "Eva" and model.global_pool == "map"):
        fields["pool_prefix"] = "true"
    if attn_pool is not None:
        if model.attn_pool.num_heads != attention_of(block).num_heads:
            fields["pool_heads"] = str(model.attn_pool.num_heads)
        hidden = model.attn_pool.mlp.fc1.out_features
        if hidden != block.mlp.fc2.in_features:
            fields["pool_hidden"] = str(hidden)
    return " ".join(f"{key}={value}" for key, value in fields.items())


def timm_rows():
    names = sorted(name for module in MODULES for name in timm.list_models(module=module))
    for name in names:
        with torch.device("meta"):
            model = timm.create_model(name)
        tensors = {key: list(tensor.shape) for key, tensor in model.state_dict().items()}
        if not all(PLAIN.fullmatch(key) for key in tensors):
            continue
        block = model.blocks[0]
        eps = only(module.eps for name, module in block.named_modules() if hasattr(module, "eps") and not name.endswith("sub_norm"))
        family = next((name for name, there in (("timm_parallel", hasattr(block, "in_norm")), ("timm_branches", hasattr(block, "attns")),
                                                ("timm_naflex", hasattr(model, "embeds")), ("timm_sam", hasattr(model, "neck")),
                                                ("timm_convolutions", "patch_embed.backbone.2.conv.weight" in tensors)) if there), "timm")
        yield (family, name, timm_key(tensors, getattr(model, "patch_embed", model).grid_size if family != "timm_naflex" else ()), attention_of(block).num_heads,
               activation_of(parts_of(block)[2]), eps,
               *((timm_set(model), "") if not timm_lacks(model) else ("", timm_lacks(model))))


def torchvision_rows():
    for name in torchvision.models.list_models(torchvision.models):
        if not name.startswith("vit_"):
            continue
        with torch.device("meta"):
            model = torchvision.models.get_model(name)
        layers = model.encoder.layers
        block = layers[0]
        dim, _, height, width = model.conv_proj.weight.shape
        key = f"{dim}x{len(layers)}x{block.mlp[0].out_features} {height}x{width} class norm"
        yield ("torchvision", name, key, block.self_attention.num_heads, activation_of(block), block.ln_1.eps, "", "")


def main():
    rows = [*timm_rows(), *torchvision_rows()]
    lines = []
    for family, name, key, heads, activation, eps, fields, lacks in sorted(rows):
        lines.append(f'    {{"{family}", "{name}", "{key}", {heads}, Activation::{activation}, {eps:g}, "{fields}", "{lacks}"}},')
    text = f"""// Made by tests/parity/tables/make_architectures.py from timm {timm.__version__} and torchvision {torchvision.__version__.split("+")[0]}.
#include "model/families/known_architectures.h"

namespace vitrine {{
namespace {{

// clang-format off
const KnownArchitecture table[] = {{
{chr(10).join(lines)}
}};
// clang-format on

}}  // namespace

std::span<const KnownArchitecture> known_architectures() {{ return table; }}

}}  // namespace vitrine
"""
    path = pathlib.Path(__file__).parents[3] / "model/families/known_architectures_table.cpp"
    path.write_text(text)
    print(f"{len(rows)} architectures, {sum(1 for row in rows if row[-1])} of which Vitrine can't compute")


if __name__ == "__main__":
    main()
