"""Writes a ViT as an ONNX graph: onnx_graph.py MODEL.safetensors ARCH BATCH fused|standard f32|f16 OUT.onnx

`standard` has ONNX's own operators of opset 20 (LayerNormalization, Gelu), as an exporter writes them, and leaves
fusing to the runtime; `fused` has ONNX Runtime's operators for transformers (Attention, BiasGelu,
SkipLayerNormalization), which is what its optimizer for transformers makes of such a model. With f16, all weights and
everything between images and logits, both float32, is float16.

A program of its own, so that the memory that the writing takes is free again when the runtime runs.
"""

import sys

import numpy as np
import onnx
from safetensors.numpy import load_file

import common

EPSILON = 1e-6
CONTRIB = "com.microsoft"


class Writer:
    """An ONNX graph that grows node by node; every value is called after the node that makes it."""

    def __init__(self, weights, images, heads, dtype):
        self.dtype = {"f32": np.float32, "f16": np.float16}[dtype]
        self.weights, self.heads = {name: values.astype(self.dtype) for name, values in weights.items()}, heads
        self.batch = images[0]
        self.images = images
        self.nodes, self.constants = [], {}

    def constant(self, name, values):
        if name not in self.constants:
            self.constants[name] = onnx.numpy_helper.from_array(np.array(values, order="C"), name)
        return name

    def node(self, operator, inputs, name, domain="", outputs=None, **attributes):
        outputs = outputs or [name]
        self.nodes.append(onnx.helper.make_node(operator, inputs, outputs, name=name, domain=domain, **attributes))
        return outputs[0]

    def ints(self, *values):
        return self.constant("ints " + " ".join(map(str, values)), np.array(values, dtype=np.int64))

    def weight(self, name):
        return self.constant(name, self.weights[name])

    def matrix(self, name):
        """A linear layer's matrix as ONNX's MatMul wants it: [in, out]."""
        return self.constant(f"{name}.weight, transposed", self.weights[f"{name}.weight"].T)

    def linear(self, x, name):
        product = self.node("MatMul", [x, self.matrix(name)], f"{name} product")
        return self.node("Add", [product, self.weight(f"{name}.bias")], name)

    def norm(self, x, name):
        return self.node("LayerNormalization", [x, self.weight(f"{name}.weight"), self.weight(f"{name}.bias")], name,
                         axis=-1, epsilon=EPSILON)

    def embed(self):
        width, _, patch, _ = self.weights["patch_embed.proj.weight"].shape
        images = self.node("Cast", ["images"], "images as stored", to=onnx.helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype)))
        x = self.node("Conv", [images, self.weight("patch_embed.proj.weight"), self.weight("patch_embed.proj.bias")],
                      "patches", kernel_shape=[patch, patch], strides=[patch, patch])
        x = self.node("Reshape", [x, self.ints(self.batch, width, -1)], "flat patches")
        x = self.node("Transpose", [x], "patch tokens", perm=[0, 2, 1])
        class_token = self.constant("class tokens", np.broadcast_to(self.weights["cls_token"], (self.batch, 1, width)))
        x = self.node("Concat", [class_token, x], "tokens", axis=1)
        return self.node("Add", [x, self.weight("pos_embed")], "embedded")

    def classify(self, x):
        pooled = self.node("Gather", [x, self.constant("first", np.array(0, dtype=np.int64))], "class token", axis=1)
        stored = self.node("Gemm", [self.norm(pooled, "norm"), self.weight("head.weight"), self.weight("head.bias")],
                           "logits as stored", transB=1)
        self.node("Cast", [stored], "logits", to=onnx.TensorProto.FLOAT)

    def standard_attention(self, x, block):
        width = self.weights["norm.weight"].shape[0]
        qkv = self.linear(x, f"{block}.attn.qkv")
        q, k, v = (f"{block} {which}" for which in "qkv")
        self.node("Split", [qkv], f"{block} split", outputs=[q, k, v], axis=2, num_outputs=3)
        split = self.ints(self.batch, -1, self.heads, width // self.heads)
        q, k, v = (self.node("Transpose", [self.node("Reshape", [part, split], f"{part} heads")], f"{part} by head",
                             perm=order) for part, order in ((q, [0, 2, 1, 3]), (k, [0, 2, 3, 1]), (v, [0, 2, 1, 3])))
        # On q rather than on the scores: the smaller of the two.
        scale = self.constant("scale", np.array((width // self.heads) ** -0.5, dtype=self.dtype))
        scores = self.node("MatMul", [self.node("Mul", [q, scale], f"{block} scaled q"), k], f"{block} scores")
        mixed = self.node("MatMul", [self.node("Softmax", [scores], f"{block} softmax", axis=-1), v], f"{block} mixed")
        mixed = self.node("Transpose", [mixed], f"{block} mixed tokens", perm=[0, 2, 1, 3])
        return self.node("Reshape", [mixed, self.ints(self.batch, -1, width)], f"{block} mixed flat")

    def standard(self):
        x = self.embed()
        for block in self.blocks():
            mixed = self.standard_attention(self.norm(x, f"{block}.norm1"), block)
            x = self.node("Add", [x, self.linear(mixed, f"{block}.attn.proj")], f"{block} attended")
            hidden = self.linear(self.norm(x, f"{block}.norm2"), f"{block}.mlp.fc1")
            hidden = self.node("Gelu", [hidden], f"{block} gelu")
            x = self.node("Add", [x, self.linear(hidden, f"{block}.mlp.fc2")], f"{block} out")
        self.classify(x)

    def skip_norm(self, branch, x, norm, bias):
        """x + branch + bias, and its norm: (norm, sum)."""
        outputs = [norm, "", "", f"{norm} sum"]
        self.node("SkipLayerNormalization",
                  [branch, x, self.weight(f"{norm}.weight"), self.weight(f"{norm}.bias"), self.weight(bias)],
                  norm, domain=CONTRIB, outputs=outputs, epsilon=EPSILON)
        return outputs[0], outputs[3]

    def fused(self):
        x = self.embed()
        normed = self.norm(x, "blocks.0.norm1")
        blocks = self.blocks()
        for block, after in zip(blocks, [*blocks[1:], None]):
            qkv = f"{block}.attn.qkv"
            mixed = self.node("Attention", [normed, self.matrix(qkv), self.weight(f"{qkv}.bias")], f"{block} mixed",
                              domain=CONTRIB, num_heads=self.heads)
            mixed = self.node("MatMul", [mixed, self.matrix(f"{block}.attn.proj")], f"{block} projected")
            normed, x = self.skip_norm(mixed, x, f"{block}.norm2", f"{block}.attn.proj.bias")
            hidden = self.node("MatMul", [normed, self.matrix(f"{block}.mlp.fc1")], f"{block} hidden")
            hidden = self.node("BiasGelu", [hidden, self.weight(f"{block}.mlp.fc1.bias")], f"{block} gelu", domain=CONTRIB)
            if after is None:
                last = self.linear(hidden, f"{block}.mlp.fc2")
                x = self.node("Add", [x, last], f"{block} out")
            else:
                out = self.node("MatMul", [hidden, self.matrix(f"{block}.mlp.fc2")], f"{block} out")
                normed, x = self.skip_norm(out, x, f"{after}.norm1", f"{block}.mlp.fc2.bias")
        self.classify(x)

    def blocks(self):
        found = []
        while f"blocks.{len(found)}.norm1.weight" in self.weights:
            found.append(f"blocks.{len(found)}")
        return found

    def model(self):
        graph = onnx.helper.make_graph(
            self.nodes, "vit", [onnx.helper.make_tensor_value_info("images", onnx.TensorProto.FLOAT, self.images)],
            [onnx.helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, [self.batch, len(self.weights["head.bias"])])],
            list(self.constants.values()))
        opsets = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid(CONTRIB, 1)]
        return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9)


def main():
    checkpoint, arch, batch, kind, dtype, out = sys.argv[1:]
    _, _, heads, _, size = common.sizes_of(arch)
    writer = Writer(load_file(checkpoint), [int(batch), 3, size, size], heads, dtype)
    {"fused": writer.fused, "standard": writer.standard}[kind]()
    # The weights beside the graph: one file of protobuf ends at 2 GiB.
    onnx.save_model(writer.model(), out, save_as_external_data=True, location="weights")


if __name__ == "__main__":
    main()
