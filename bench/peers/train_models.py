"""The models that pytorch_train.py trains: a configuration's ViT written for speed, and MyViT written with loops.

Parameters of all have Vitrine's names (tests/parity/training.py), so that all can start from the same numbers.
"""

import math
import pathlib
import sys

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "parity"))

import models  # noqa: E402
import training  # noqa: E402

functions = nn.functional


class LoopedMyViT(models.MyViT):
    """MyViT as its tutorial computes it: patches are cut out one by one, attention goes image by image and head by
    head. What a beginner's script costs."""

    def cut(self, images):
        height, width = self.patch
        rows, columns = images.shape[2] // height, images.shape[3] // width
        patches = images.new_zeros(len(images), rows * columns, images.shape[1] * height * width)
        for image, out in zip(images, patches):
            for place in range(rows * columns):
                top, left = place // columns * height, place % columns * width
                out[place] = image[:, top : top + height, left : left + width].reshape(-1)
        return patches

    def attend(self, maps, tokens):
        images = []
        for image in tokens:
            heads = []
            for head, (to_q, to_k, to_v) in enumerate(zip(maps.q_mappings, maps.k_mappings, maps.v_mappings)):
                part = image[:, head * maps.width : (head + 1) * maps.width]
                scores = to_q(part) @ to_k(part).T / math.sqrt(maps.width)
                heads.append(torch.softmax(scores, dim=-1) @ to_v(part))
            images.append(torch.hstack(heads))
        return torch.stack(images)

    def forward(self, images):
        tokens = self.linear_mapper(self.cut(images))
        x = torch.cat([self.class_token.expand(len(images), 1, -1), tokens], dim=1) + self.positional_embeddings
        for block in self.blocks:
            x = x + self.attend(block.mhsa, block.norm1(x))
            x = x + block.mlp(block.norm2(x))
        return self.mlp(x[:, 0])


class FastMyViT(nn.Module):
    """The same numbers in as few PyTorch calls as possible: the maps of all heads are one product with a block-diagonal
    matrix, attention is PyTorch's own."""

    def __init__(self, fields):
        super().__init__()
        own = training.build(fields)
        self.heads, self.eps, self.depth = fields["heads"], fields["eps"], fields["depth"]
        self.patch = own.patch
        self.register_buffer("positions", own.positional_embeddings.clone(), persistent=False)
        for name, value in training.parameters(own).items():
            self.register_parameter(name.replace(".", "/"), nn.Parameter(value.clone()))

    def weight(self, name):
        return getattr(self, name.replace(".", "/"))

    def linear(self, x, name):
        return functions.linear(x, self.weight(f"{name}.weight"), self.weight(f"{name}.bias"))

    def norm(self, x, name):
        gain, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return functions.layer_norm(x, x.shape[-1:], gain, bias, self.eps)

    def attention(self, x, name):
        batch, count, dim = x.shape
        maps = [torch.block_diag(*self.weight(f"{name}.{which}.weight")) for which in "qkv"]
        biases = [self.weight(f"{name}.{which}.bias").reshape(-1) for which in "qkv"]
        qkv = functions.linear(x, torch.cat(maps), torch.cat(biases))
        qkv = qkv.view(batch, count, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        return functions.scaled_dot_product_attention(*qkv.unbind(0)).transpose(1, 2).reshape(batch, count, dim)

    def forward(self, images):
        batch, channels, image_height, image_width = images.shape
        height, width = self.patch
        rows, columns = image_height // height, image_width // width
        patches = images.view(batch, channels, rows, height, columns, width).permute(0, 2, 4, 1, 3, 5)
        kernel = self.weight("patch_embed.proj.weight")
        patches = patches.reshape(batch, rows * columns, channels * height * width)
        tokens = functions.linear(patches, kernel.view(len(kernel), -1), self.weight("patch_embed.proj.bias"))
        x = torch.cat([self.weight("cls_token").expand(batch, 1, -1), tokens], dim=1) + self.positions
        for block in (f"blocks.{i}" for i in range(self.depth)):
            x = x + self.attention(self.norm(x, f"{block}.norm1"), f"{block}.attn")
            hidden = functions.gelu(self.linear(self.norm(x, f"{block}.norm2"), f"{block}.mlp.fc1"))
            x = x + self.linear(hidden, f"{block}.mlp.fc2")
        return torch.softmax(self.linear(x[:, 0], "head"), dim=-1)


def fused_attention(layer, x):
    """models.Attention's forward pass by PyTorch's own attention."""
    batch, count, dim = x.shape
    qkv = layer.qkv(x).view(batch, count, 3, layer.num_heads, dim // layer.num_heads).permute(2, 0, 3, 1, 4)
    heads = functions.scaled_dot_product_attention(*qkv.unbind(0), scale=layer.scale)
    return layer.proj(heads.transpose(1, 2).reshape(batch, count, dim))


class FastViT(nn.Module):
    """Any other configuration's model, with PyTorch's own attention."""

    def __init__(self, fields):
        super().__init__()
        self.vit = training.build(fields)
        self.result = "probabilities" if fields["softmax_output"] else "logits"
        for block in self.vit.blocks:
            block.attn.forward = lambda x, layer=block.attn: fused_attention(layer, x)

    def forward(self, images):
        return self.vit(images)[self.result]


def names_of(model):
    """Vitrine's name of each parameter of one of these models; LoopedMyViT's maps share one."""
    if isinstance(model, FastMyViT):
        return {name: name.replace("/", ".") for name, _ in model.named_parameters()}
    own, prefix = (model.vit, "vit.") if isinstance(model, FastViT) else (model, "")
    return {prefix + name: next(iter(training.canonical(own, {name: value.detach()})))
            for name, value in own.named_parameters()}


def canonical(model, values):
    """{name: tensor} of a model's parameters, or their gradients, under Vitrine's names."""
    if isinstance(model, FastMyViT):
        return {name.replace("/", "."): value for name, value in values.items()}
    if isinstance(model, FastViT):
        return training.canonical(model.vit, {name.removeprefix("vit."): value for name, value in values.items()})
    return training.canonical(model, values)


def make(config, looped=False):
    """The model with the weights that Vitrine draws from the configuration's seed."""
    fields = config["model"]
    if looped and not fields["per_head_maps"]:
        raise ValueError("the version with loops is of MyViT alone (per_head_maps)")
    if not fields["per_head_maps"]:
        model = FastViT(fields)
        training.initialise(model.vit, fields, config["seed"])
        return model
    own = training.initialise(training.build(fields), fields, config["seed"])
    if looped:
        model = LoopedMyViT((fields["channels"], fields["image_height"], fields["image_width"]),
                            fields["image_height"] // fields["patch_height"], fields["depth"], fields["dim"],
                            fields["heads"], fields["classes"])
        model.load_state_dict(own.state_dict())
        return model
    model = FastMyViT(fields)
    with torch.no_grad():
        for name, value in training.parameters(own).items():
            model.weight(name).copy_(value)
    return model


def make_optimizer(model, config, **options):
    names = names_of(model)
    return training.optimizer_of([(names[name], value) for name, value in model.named_parameters()], config, **options)


def compare(config, images, labels):
    """The largest relative error of FastMyViT's loss and of its gradients against LoopedMyViT's, in float64."""
    found = []
    criterion = nn.CrossEntropyLoss(label_smoothing=config["label_smoothing"])
    for looped in (True, False):
        model = make(config, looped).double()
        loss = criterion(model(images.double()), labels)
        loss.backward()
        gradients = canonical(model, {name: value.grad for name, value in model.named_parameters()})
        found.append((loss.item(), {name: value.numpy() for name, value in gradients.items()}))
    (loss, reference), (other_loss, gradients) = found
    if reference.keys() != gradients.keys():
        raise ValueError("the two versions have other parameters")
    worst = 0.0
    for name, value in reference.items():
        # A key's bias has no gradient but rounding's.
        scale = np.linalg.norm(reference[name.replace("k.bias", "k.weight")])
        worst = max(worst, float(np.linalg.norm(gradients[name] - value) / scale))
    return {"loss": abs(other_loss - loss) / abs(loss), "gradients": worst}
