"""Compact PyTorch definitions of the models that Vitrine reads, under the names that they are published with.

They are oracles: written to be read beside the papers and run in float64, not to be fast. Every
forward pass returns all that `vitrine run --what` can write:

  tokens     [B, N, D]  the sequence after the last block and the final norm, where the model has one there
  features   [B, F]     the vector that the classifier sees
  logits     [B, K]     the classifier's output, before any softmax; absent without a classifier
  probabilities [B, K]  softmax of the logits

check_against_libraries.py compares them with timm, transformers and torchvision.
"""

import math

import torch
from torch import nn


def pair(size):
    """(height, width) from a number or a pair."""
    return tuple(size) if isinstance(size, (tuple, list)) else (size, size)


def results(tokens, features, logits):
    """The dictionary that every model here returns."""
    out = {"tokens": tokens, "features": features}
    if logits is not None:
        out["logits"] = logits
        out["probabilities"] = logits.softmax(dim=-1)
    return out


class PatchEmbed(nn.Module):
    """Image [B, C, H, W] to tokens [B, P, D], patches in row-major order, with an optional norm."""

    def __init__(self, patch_size, in_chans, embed_dim, norm, bias, eps):
        super().__init__()
        patch = pair(patch_size)
        self.proj = nn.Conv2d(in_chans, embed_dim, kernel_size=patch, stride=patch, bias=bias)
        self.norm = nn.LayerNorm(embed_dim, eps=eps) if norm else nn.Identity()

    def forward(self, image):
        return self.norm(self.proj(image).flatten(2).transpose(1, 2))


class Rotary:
    """Turns queries and keys of patches [B, N, H, D] by their rows and columns; `halves` says which columns are pairs."""

    def __init__(self, grid, width, halves, base, reference, centered):
        def places(count):
            numbers = torch.arange(count, dtype=torch.float64)
            if centered:
                return 2 * math.pi * (2 * (numbers + 0.5) / count - 1)
            return numbers / count * reference if reference else numbers

        frequencies = base ** -(torch.arange(width // 4, dtype=torch.float64) / (width // 4))
        rows, columns = (places(count)[:, None] * frequencies for count in grid)
        angles = torch.cat([rows[:, None].expand(-1, grid[1], -1), columns[None].expand(grid[0], -1, -1)], dim=-1).flatten(0, 1)
        self.halves, self.cos, self.sin = halves, angles.cos()[:, None], angles.sin()[:, None]

    def __call__(self, x):
        prefix, patches = x.split([x.shape[1] - len(self.cos), len(self.cos)], dim=1)
        a, b = patches.chunk(2, dim=-1) if self.halves else (patches[..., ::2], patches[..., 1::2])
        cos, sin = self.cos.to(x.dtype), self.sin.to(x.dtype)
        turned = [a * cos - b * sin, b * cos + a * sin]
        patches = torch.cat(turned, dim=-1) if self.halves else torch.stack(turned, dim=-1).flatten(-2)
        return torch.cat([prefix, patches], dim=1)


def relative_rows(grid, first):
    return (2 * grid[0] - 1) * (2 * grid[1] - 1) + 3 * first


def relative_index(grid, first):
    """[N, N]: the row of a table of relative positions for a query and a key, as BEiT counts them."""
    height, width = grid
    places = torch.stack(torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")).flatten(1)
    down, right = places[:, :, None] - places[:, None]
    tokens = first + height * width
    index = torch.empty(tokens, tokens, dtype=torch.long)
    index[first:, first:] = (down + height - 1) * (2 * width - 1) + right + width - 1
    if first:
        rows = relative_rows(grid, first)
        index[0, 1:], index[1:, 0], index[0, 0] = rows - 3, rows - 2, rows - 1
    return index


class Attention(nn.Module):
    """Multi-head self-attention. The fused projection's rows are q, k, v, each head by head."""

    def __init__(self, dim, num_heads, qkv_bias=True, qk_scale=None, key_bias=True, head_norm=False, attention_norm=False, rotary=None,
                 relative=None, talking=False, eps=1e-6):
        super().__init__()
        self.num_heads = num_heads
        self.scale = qk_scale or (dim // num_heads) ** -0.5
        self.key_bias, self.rotary = key_bias, rotary
        self.rel_pos = None
        self.relative = relative
        if relative and relative["shared"] is None:
            self.rel_pos = nn.Parameter(torch.zeros(relative_rows(*relative["tokens"]), num_heads))
        self.qkv = nn.Linear(dim, 3 * dim, bias=qkv_bias)
        self.q_norm = nn.LayerNorm(dim // num_heads, eps=eps) if head_norm else nn.Identity()
        self.k_norm = nn.LayerNorm(dim // num_heads, eps=eps) if head_norm else nn.Identity()
        self.norm = nn.LayerNorm(dim, eps=eps) if attention_norm else nn.Identity()
        self.proj = nn.Linear(dim, dim)
        # Of talking heads: mixtures of all heads' scores, and of their weights.
        self.proj_l, self.proj_w = (nn.Linear(num_heads, num_heads) if talking else nn.Identity() for _ in range(2))

    def bias(self):
        if self.key_bias or self.qkv.bias is None:
            return self.qkv.bias
        mask = torch.ones_like(self.qkv.bias)
        mask[len(mask) // 3 : len(mask) // 3 * 2] = 0
        return self.qkv.bias * mask

    def forward(self, x):
        batch, count, dim = x.shape
        qkv = nn.functional.linear(x, self.qkv.weight, self.bias())
        q, k, v = qkv.view(batch, count, 3, self.num_heads, dim // self.num_heads).unbind(2)
        q, k = self.q_norm(q), self.k_norm(k)
        if self.rotary:
            q, k = self.rotary(q), self.rotary(k)
        scores = torch.einsum("bnhd,bmhd->bhnm", q, k) * self.scale
        if self.relative:
            table = self.rel_pos if self.relative["shared"] is None else self.relative["shared"]
            scores = scores + table[relative_index(*self.relative["tokens"])].permute(2, 0, 1)
        scores = self.proj_l(scores.movedim(1, -1)).movedim(-1, 1)
        weights = self.proj_w(scores.softmax(dim=-1).movedim(1, -1)).movedim(-1, 1)
        return self.proj(self.norm(torch.einsum("bhnm,bmhd->bnhd", weights, v).flatten(2)))


class QuickGELU(nn.Module):
    """The sigmoid approximation of OpenAI's CLIP."""

    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)


ACTIVATIONS = {
    "gelu": nn.GELU,
    "gelu_tanh": lambda: nn.GELU(approximate="tanh"),
    "quick_gelu": QuickGELU,
    "silu": nn.SiLU,
}


class Mlp(nn.Module):
    def __init__(self, dim, hidden, act_layer="gelu", norm_eps=0):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.act = ACTIVATIONS[act_layer]()
        self.norm = nn.LayerNorm(hidden, eps=norm_eps) if norm_eps else nn.Identity()
        self.fc2 = nn.Linear(hidden, dim)

    def forward(self, x):
        return self.fc2(self.norm(self.act(self.fc1(x))))


class SwiGLU(nn.Module):
    """DINOv2's gated MLP: `packed` counts the rows of gate and values together."""

    def __init__(self, dim, packed, norm_eps=0):
        super().__init__()
        self.fc1 = nn.Linear(dim, packed)
        self.norm = nn.LayerNorm(packed // 2, eps=norm_eps) if norm_eps else nn.Identity()
        self.fc2 = nn.Linear(packed // 2, dim)

    def forward(self, x):
        gate, values = self.fc1(x).chunk(2, dim=-1)
        return self.fc2(self.norm(nn.functional.silu(gate) * values))


class AttentionPool(nn.Module):
    """MAP: a learned query attends to all tokens, and an MLP follows."""

    def __init__(self, dim, num_heads, mlp_hidden, act_layer, eps):
        super().__init__()
        self.num_heads = num_heads
        self.latent = nn.Parameter(torch.zeros(1, 1, dim))
        self.q = nn.Linear(dim, dim)
        self.kv = nn.Linear(dim, 2 * dim)
        self.proj = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim, eps=eps)
        self.mlp = Mlp(dim, mlp_hidden, act_layer)

    def forward(self, x):
        batch, count, dim = x.shape
        width = dim // self.num_heads
        q = self.q(self.latent).view(self.num_heads, width)
        k, v = self.kv(x).view(batch, count, 2, self.num_heads, width).unbind(2)
        weights = (torch.einsum("hd,bmhd->bhm", q, k) * width**-0.5).softmax(dim=-1)
        x = self.proj(torch.einsum("bhm,bmhd->bhd", weights, v).flatten(1))
        return x + self.mlp(self.norm(x))


class LayerScale(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * self.gamma


class Branch(nn.Module):
    """One of several attentions or MLPs of a block, with a norm and a scale of its own."""

    def __init__(self, name, inner, dim, layer_scale, eps):
        super().__init__()
        self.name = name
        self.norm = nn.LayerNorm(dim, eps=eps)
        self.add_module(name, inner)
        self.ls = LayerScale(dim) if layer_scale else nn.Identity()

    def forward(self, x):
        return self.ls(getattr(self, self.name)(self.norm(x)))


class Block(nn.Module):
    """An encoder block, whose norms are in front of the branches or, with post_norm, behind them.

    `kind` "parallel": the MLP sees what the attention sees, and what both give is scaled and added. With `branches`, the
    results of so many attentions are added, then those of as many MLPs.
    """

    def __init__(
        self,
        dim,
        num_heads,
        mlp_ratio=4.0,
        qkv_bias=True,
        qk_scale=None,
        layer_scale=False,
        swiglu=False,
        act_layer="gelu",
        eps=1e-6,
        mlp_norm=False,
        post_norm=False,
        kind="sequential",
        branches=1,
        **attention,
    ):
        super().__init__()
        self.post_norm, self.kind, self.branches = post_norm, kind, branches
        hidden = int(dim * mlp_ratio)
        norm_eps = eps if mlp_norm else 0

        def attn():
            return Attention(dim, num_heads, qkv_bias, qk_scale, eps=eps, **attention)

        def mlp():
            return SwiGLU(dim, hidden, norm_eps) if swiglu else Mlp(dim, hidden, act_layer, norm_eps)

        if branches > 1:
            self.attns = nn.ModuleList(Branch("attn", attn(), dim, layer_scale, eps) for _ in range(branches))
            self.ffns = nn.ModuleList(Branch("mlp", mlp(), dim, layer_scale, eps) for _ in range(branches))
            return
        self.norm1 = nn.LayerNorm(dim, eps=eps)
        self.attn = attn()
        self.ls1 = LayerScale(dim) if layer_scale else nn.Identity()
        if kind == "sequential":
            self.norm2 = nn.LayerNorm(dim, eps=eps)
        self.mlp = mlp()
        if kind == "sequential":
            self.ls2 = LayerScale(dim) if layer_scale else nn.Identity()

    def forward(self, x):
        if self.branches > 1:
            x = x + sum(attn(x) for attn in self.attns)
            return x + sum(ffn(x) for ffn in self.ffns)
        if self.kind == "parallel":
            normed = self.norm1(x)
            return x + self.ls1(self.attn(normed) + self.mlp(normed))
        if self.post_norm:
            x = x + self.norm1(self.attn(x))
            return x + self.norm2(self.mlp(x))
        x = x + self.ls1(self.attn(self.norm1(x)))
        return x + self.ls2(self.mlp(self.norm2(x)))


class ClassAttention(nn.Module):
    """The first token alone looks, at all."""

    def __init__(self, dim, num_heads, qkv_bias):
        super().__init__()
        self.num_heads = num_heads
        self.q, self.k, self.v = (nn.Linear(dim, dim, bias=qkv_bias) for _ in range(3))
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.num_heads, -1)) for part in (self.q(x[:, :1]), self.k(x), self.v(x)))
        weights = (torch.einsum("bnhd,bmhd->bhnm", q, k) * q.shape[-1] ** -0.5).softmax(dim=-1)
        return self.proj(torch.einsum("bhnm,bmhd->bnhd", weights, v).flatten(2))


class ClassBlock(nn.Module):
    """CaiT's blocks behind the others, which change the class token alone."""

    def __init__(self, dim, num_heads, mlp_ratio, qkv_bias, layer_scale, act_layer, eps):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=eps)
        self.attn = ClassAttention(dim, num_heads, qkv_bias)
        self.ls1 = LayerScale(dim) if layer_scale else nn.Identity()
        self.norm2 = nn.LayerNorm(dim, eps=eps)
        self.mlp = Mlp(dim, int(dim * mlp_ratio), act_layer)
        self.ls2 = LayerScale(dim) if layer_scale else nn.Identity()

    def forward(self, token, patches):
        token = token + self.ls1(self.attn(self.norm1(torch.cat([token, patches], dim=1))))
        return token + self.ls2(self.mlp(self.norm2(token)))


class PreLogits(nn.Module):
    """The paper's representation layer: a linear map and tanh before the classifier."""

    def __init__(self, dim, size):
        super().__init__()
        self.fc = nn.Linear(dim, size)

    def forward(self, x):
        return torch.tanh(self.fc(x))


class VisionTransformer(nn.Module):
    """The ViTs of all libraries under timm's names.

    The options carry timm's names too. `representation_size` and `qk_scale` were dropped from timm
    after 0.5 and 0.4, checkpoints that need them are still around. Not timm's are `swiglu` (there a
    class of MLP), `one_head` (DeiT's tokens with a classifier on the first only), `embedding_size`
    (CLIP's projection as Hugging Face keeps it), `position_registers` (False: registers are inserted
    after the positions were added), the pooling `token_and_mean`, `positions` (False: no table), `rotary` (Rotary's
    arguments behind the grid and the heads' width), `relative` ("own" or "shared": whose tables of relative positions),
    `block` (what Block and Attention are given besides) and `class_blocks` (CaiT's, before which there is no class token). Prefix tokens come in the order class, distillation, registers.
    """

    def __init__(
        self,
        img_size=224,
        patch_size=16,
        in_chans=3,
        num_classes=1000,
        embed_dim=768,
        depth=12,
        num_heads=12,
        mlp_ratio=4.0,
        qkv_bias=True,
        qk_scale=None,
        representation_size=None,
        distilled=False,
        one_head=False,
        class_token=True,
        global_pool="token",
        fc_norm=None,
        reg_tokens=0,
        no_embed_class=False,
        layer_scale=False,
        pre_norm=False,
        patch_norm=False,
        swiglu=False,
        act_layer="gelu",
        embedding_size=0,
        position_registers=True,
        final_norm=True,
        eps=1e-6,
        positions=True,
        rotary=None,
        relative=None,
        block=None,
        class_blocks=0,
    ):
        super().__init__()
        if global_pool not in ("token", "avg", "map", "token_and_mean"):
            raise ValueError(
                f"global_pool is '{global_pool}', expected token, avg, map or token_and_mean"
            )
        height, width = pair(img_size)
        patch_height, patch_width = pair(patch_size)
        patches = (height // patch_height) * (width // patch_width)
        self.global_pool = global_pool
        self.no_embed_class = no_embed_class
        self.position_registers = position_registers
        self.num_prefix_tokens = int(class_token) + int(distilled) + reg_tokens
        norm_after_pool = global_pool == "avg" if fc_norm is None else fc_norm

        # A norm right after the embedding makes the convolution's bias redundant; timm leaves it out.
        self.patch_embed = PatchEmbed(patch_size, in_chans, embed_dim, patch_norm, bias=not pre_norm, eps=eps)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, embed_dim)) if class_token else None
        self.dist_token = nn.Parameter(torch.zeros(1, 1, embed_dim)) if distilled else None
        self.reg_token = nn.Parameter(torch.zeros(1, reg_tokens, embed_dim)) if reg_tokens else None
        rows = patches + (0 if no_embed_class else self.num_prefix_tokens)
        rows -= 0 if no_embed_class or position_registers else reg_tokens
        self.pos_embed = nn.Parameter(torch.zeros(1, rows, embed_dim)) if positions else None
        grid = (height // patch_height, width // patch_width)
        if relative:
            tokens = (grid, self.num_prefix_tokens)
            self.rel_pos = nn.Parameter(torch.zeros(relative_rows(*tokens), num_heads)) if relative == "shared" else None
            block = {**(block or {}), "relative": {"tokens": tokens, "shared": self.rel_pos}}
        if rotary:
            block = {**(block or {}), "rotary": Rotary(grid, embed_dim // num_heads, **rotary)}
        self.norm_pre = nn.LayerNorm(embed_dim, eps=eps) if pre_norm else nn.Identity()
        self.blocks = nn.Sequential(
            *[
                Block(
                    embed_dim,
                    num_heads,
                    mlp_ratio,
                    qkv_bias,
                    qk_scale,
                    layer_scale,
                    swiglu,
                    act_layer,
                    eps,
                    **(block or {}),
                )
                for _ in range(depth)
            ]
        )
        self.blocks_token_only = nn.ModuleList(
            ClassBlock(embed_dim, num_heads, mlp_ratio, qkv_bias, layer_scale, act_layer, eps) for _ in range(class_blocks)
        )
        norm_first, norm_last = final_norm and not norm_after_pool, final_norm and norm_after_pool
        self.norm = nn.LayerNorm(embed_dim, eps=eps) if norm_first else nn.Identity()
        self.attn_pool = (
            AttentionPool(embed_dim, num_heads, int(embed_dim * mlp_ratio), act_layer, eps)
            if global_pool == "map"
            else None
        )
        self.fc_norm = nn.LayerNorm(embed_dim, eps=eps) if norm_last else nn.Identity()

        # The two heads of a distilled model read their tokens directly: it has no representation layer.
        has_representation = bool(representation_size) and not distilled
        self.pre_logits = PreLogits(embed_dim, representation_size) if has_representation else nn.Identity()
        pooled_width = 2 * embed_dim if global_pool == "token_and_mean" else embed_dim
        self.visual_projection = (
            nn.Linear(pooled_width, embedding_size, bias=False) if embedding_size else nn.Identity()
        )
        width_out = representation_size if has_representation else embedding_size or pooled_width
        self.head = nn.Linear(width_out, num_classes) if num_classes else None
        two_heads = distilled and not one_head
        self.head_dist = nn.Linear(embed_dim, num_classes) if num_classes and two_heads else None

    def embed(self, image):
        x = self.patch_embed(image)
        if self.blocks_token_only:
            return x + self.pos_embed
        prefix = [
            t.expand(len(x), -1, -1)
            for t in (self.cls_token, self.dist_token, self.reg_token)
            if t is not None
        ]
        if self.pos_embed is None:
            return self.norm_pre(torch.cat([*prefix, x], dim=1))
        if self.no_embed_class:
            return self.norm_pre(torch.cat([*prefix, x + self.pos_embed], dim=1))
        if self.reg_token is not None and not self.position_registers:
            x = torch.cat([prefix[0], x], dim=1) + self.pos_embed
            return self.norm_pre(torch.cat([x[:, :1], prefix[1], x[:, 1:]], dim=1))
        return self.norm_pre(torch.cat([*prefix, x], dim=1) + self.pos_embed)

    def forward(self, image):
        x = self.blocks(self.embed(image))
        if self.blocks_token_only:
            token = self.cls_token.expand(len(x), -1, -1)
            for block in self.blocks_token_only:
                token = block(token, x)
            x = torch.cat([token, x], dim=1)
        tokens = self.norm(x)
        if self.head_dist is not None:
            first, second = tokens[:, 0], tokens[:, 1]
            logits = (self.head(first) + self.head_dist(second)) / 2 if self.head is not None else None
            return results(tokens, (first + second) / 2, logits)
        patches = tokens[:, self.num_prefix_tokens :]
        if self.global_pool == "avg":
            pooled = patches.mean(dim=1)
        elif self.global_pool == "map":
            pooled = self.attn_pool(patches)
        elif self.global_pool == "token_and_mean":
            pooled = torch.cat([tokens[:, 0], patches.mean(dim=1)], dim=1)
        else:
            pooled = tokens[:, 0]
        features = self.visual_projection(self.pre_logits(self.fc_norm(pooled)))
        return results(tokens, features, self.head(features) if self.head is not None else None)


def sine_cosine_positions(count, dim):
    """The fixed table of "Attention Is All You Need": sine in the even columns, cosine in the odd ones.

    MyViT keeps it in float32 and does not store it, so the table is rounded here as well.
    """
    table = torch.empty(count, dim, dtype=torch.float32)
    for i in range(count):
        for j in range(dim):
            angle = i / 10000 ** ((j - j % 2) / dim)
            table[i, j] = math.cos(angle) if j % 2 else math.sin(angle)
    return table


class PerHeadAttention(nn.Module):
    """MyViT's attention: each head maps its own slice of the token, and nothing mixes the heads after."""

    def __init__(self, dim, num_heads):
        super().__init__()
        self.width = dim // num_heads
        self.q_mappings = nn.ModuleList(nn.Linear(self.width, self.width) for _ in range(num_heads))
        self.k_mappings = nn.ModuleList(nn.Linear(self.width, self.width) for _ in range(num_heads))
        self.v_mappings = nn.ModuleList(nn.Linear(self.width, self.width) for _ in range(num_heads))

    def forward(self, x):
        heads = []
        maps = zip(x.split(self.width, dim=-1), self.q_mappings, self.k_mappings, self.v_mappings)
        for part, to_q, to_k, to_v in maps:
            scores = to_q(part) @ to_k(part).transpose(1, 2) / math.sqrt(self.width)
            heads.append(scores.softmax(dim=-1) @ to_v(part))
        return torch.cat(heads, dim=-1)


class MyViTBlock(nn.Module):
    def __init__(self, dim, num_heads, mlp_ratio):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.mhsa = PerHeadAttention(dim, num_heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, mlp_ratio * dim), nn.GELU(), nn.Linear(mlp_ratio * dim, dim))

    def forward(self, x):
        x = x + self.mhsa(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class MyViT(nn.Module):
    """The small tutorial model for 28x28 digits: PyTorch's default norm eps (1e-5), no final norm.

    Its own forward pass ends in softmax: that is `probabilities` here.
    """

    def __init__(self, chw=(1, 28, 28), n_patches=7, n_blocks=2, hidden_d=8, n_heads=2, out_d=10):
        super().__init__()
        channels, height, width = chw
        self.patch = (height // n_patches, width // n_patches)
        self.linear_mapper = nn.Linear(channels * self.patch[0] * self.patch[1], hidden_d)
        self.class_token = nn.Parameter(torch.zeros(1, hidden_d))
        positions = sine_cosine_positions(n_patches**2 + 1, hidden_d)
        self.register_buffer("positional_embeddings", positions, persistent=False)
        self.blocks = nn.ModuleList(MyViTBlock(hidden_d, n_heads, 4) for _ in range(n_blocks))
        self.mlp = nn.Sequential(nn.Linear(hidden_d, out_d), nn.Softmax(dim=-1))

    def forward(self, image):
        patches = nn.functional.unfold(image, self.patch, stride=self.patch).transpose(
            1, 2
        )  # K order c, y, x
        cls = self.class_token.expand(len(image), 1, -1)
        x = torch.cat([cls, self.linear_mapper(patches)], dim=1) + self.positional_embeddings
        for block in self.blocks:
            x = block(x)
        return results(x, x[:, 0], self.mlp[0](x[:, 0]))


class TorchvisionOracle(nn.Module):
    """torchvision's real VisionTransformer, run in pieces so that tokens and features come out as well."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def state_dict(self, *args, **kwargs):
        return self.model.state_dict(*args, **kwargs)

    def load_state_dict(self, state, *args, **kwargs):
        return self.model.load_state_dict(state, *args, **kwargs)

    def forward(self, image):
        x = self.model._process_input(image)
        tokens = self.model.encoder(torch.cat([self.model.class_token.expand(len(x), -1, -1), x], dim=1))
        features = tokens[:, 0]
        for layer in list(self.model.heads)[:-1]:
            features = layer(features)
        return results(tokens, features, self.model.heads[-1](features))
