#!/usr/bin/env python3
"""Writes the fixtures of timm's hybrids, Vision Transformers behind convolutions, by timm itself in float64.

  make_stem_fixtures.py [NAME...]        # into fixtures/

Each is one of timm's kinds with fewer and narrower layers than any published one, with random weights in f16, as timm would
save it; with what it makes of one input, and at another image size.
"""
import json
import pathlib
import shutil
import sys
from functools import partial

import numpy as np
import timm
import torch
from safetensors.torch import save_file
from timm.layers import HybridEmbed, StdConv2dSame, resample_abs_pos_embed
from timm.models.resnet import Bottleneck, ResNet
from timm.models.resnetv2 import ResNetV2, create_resnetv2_stem
from timm.models.vision_transformer import VisionTransformer
from timm.models.vision_transformer_hybrid import ConvStem

HERE = pathlib.Path(__file__).parent
SIZE, RESIZED = (32, 32), (24, 40)
STANDARDISED = partial(StdConv2dSame, eps=1e-8)


class LastMap(ResNet):
    """What timm's features_only makes of a ResNet: its layers' names, without what is behind them."""
    def __init__(self, **arguments):
        super().__init__(Bottleneck, **arguments)
        del self.global_pool, self.fc
        self.stages = len(arguments["layers"])

    def forward(self, x):
        x = self.maxpool(self.act1(self.bn1(self.conv1(x))))
        for stage in range(self.stages):
            x = getattr(self, f"layer{stage + 1}")(x)
        return x


# Fixture: what makes its convolutions, the patches' side behind them, and whether a projection is there.
STEMS = {
    "timm_hybrid_bit": (lambda: ResNetV2(layers=(2, 1), channels=(128, 256), stem_chs=32, num_classes=0, global_pool="",
                                         preact=False, stem_type="same", conv_layer=STANDARDISED), 1, True),
    "timm_hybrid_bit_stem": (lambda: create_resnetv2_stem(3, 32, stem_type="same", preact=False, conv_layer=STANDARDISED), 2, True),
    "timm_hybrid_convolutions": (lambda: ConvStem(channels=(20, 20, 24), stride=(4, 2, 1), kernel_size=(4, 2, 1), padding=0,
                                                  act_layer=torch.nn.GELU), 1, False),
    "timm_hybrid_resnet": (lambda: LastMap(layers=(2, 1), channels=(12, 24), stem_width=6, stem_type="deep", avg_down=True), 1, True),
}


def made(stem, patch, projected, size):
    embed = partial(HybridEmbed, backbone=stem(), **({} if projected else {"proj": False}))
    return VisionTransformer(img_size=size, patch_size=patch, embed_layer=embed, embed_dim=24, depth=1, num_heads=3, num_classes=5,
                             no_embed_class=not projected).eval()


def randomise(model):
    """Statistics of batch norms as well, and all as f16 holds it."""
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            if not tensor.is_floating_point():
                continue
            tensor.add_(torch.randn(tensor.shape) * (0.4 if "attn.qkv" in name and tensor.dim() > 1 else 0.1))
            if name.endswith("running_var"):
                tensor.abs_().add_(0.5)
            tensor.copy_(tensor.half().float())


def computed(model, images):
    with torch.no_grad():
        return model.double()(torch.from_numpy(images).double()).numpy()


def write(name, stem, patch, projected):
    folder = HERE / "fixtures" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model = made(stem, patch, projected, SIZE)
    randomise(model)
    tensors = {key: value.half() if value.is_floating_point() else value for key, value in model.state_dict().items()}
    save_file({key: value.contiguous() for key, value in tensors.items()}, folder / "model.safetensors")
    other = made(stem, patch, projected, RESIZED)
    state = model.state_dict()
    state["pos_embed"] = resample_abs_pos_embed(state["pos_embed"], other.patch_embed.grid_size,
                                                num_prefix_tokens=1 if projected else 0)
    other.load_state_dict(state)
    random = np.random.default_rng([ord(c) for c in name])
    images, resized = (random.standard_normal((2, 3, *size)).astype(np.float32) for size in (SIZE, RESIZED))
    np.save(folder / "input.npy", images)
    found = computed(model, images)
    np.save(folder / "logits.npy", found)
    np.save(folder / "resized_input.npy", resized)
    np.save(folder / "resized_logits.npy", computed(other, resized))
    meta = {"covers": f"timm {timm.__version__}, {name.removeprefix('timm_')}", "limits": {"f16": 0.005, "f32": 2e-05},
            "model": "model.safetensors", "outputs": {"logits": list(found.shape)}, "set": ["heads=3"],
            "resized": {"image_size": list(RESIZED), "output": "logits"}}
    (folder / "meta.json").write_text(json.dumps(meta, indent=2) + "\n")


def main():
    for name in sys.argv[1:] or STEMS:
        torch.manual_seed(sum(ord(c) * (i + 1) for i, c in enumerate(name)))
        write(name, *STEMS[name])
        print(name)


if __name__ == "__main__":
    main()
