#!/usr/bin/env python3
"""Writes the malformed files of this folder and manifest.json: what is wrong with each, and a word that
the error's sentence must have. Run it after a change and commit what it writes; it gives the same bytes
every time. `valid` holds files that must be accepted: configs are tried beside its checkpoint, so that
nothing else can be what is wrong with them."""

import json
import shutil
import struct
from pathlib import Path

HERE = Path(__file__).resolve().parent
manifest = []


def put(name, content, wrong, word):
    path = HERE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    manifest.append({"file": name, "wrong": wrong, "word": word})


# ---- safetensors ---------------------------------------------------------------------------------

def st(header, data=b"", length=None):
    """A file of this header (text, bytes, or something to dump) and data, N as told."""
    if not isinstance(header, (str, bytes)):
        header = json.dumps(header, separators=(",", ":"))
    header = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def tensor(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def bad_st(name, content, wrong, word):
    put(f"safetensors/{name}.safetensors", content, wrong, word)


def safetensors():
    four = b"\0" * 4
    eight = b"\0" * 8
    # The frame.
    bad_st("empty", b"", "no bytes at all", "0 bytes")
    bad_st("seven_bytes", b"\x01\0\0\0\0\0\0", "shorter than N", "7 bytes")
    bad_st("only_length", struct.pack("<Q", 2), "nothing behind N", "only 0 follow")
    bad_st("length_past_file", st("{}", length=100), "N is larger than the file", "only 2 follow")
    bad_st("length_one_too_large", st("{}", length=3), "N is one too large", "only 2 follow")
    bad_st("length_over_limit", st("{}", length=100_000_001), "N is over the format's limit", "at most 100000000")
    bad_st("length_all_ones", st("{}", length=2**64 - 1), "8+N overflows to 7", "at most 100000000")
    bad_st("length_overflows", st("{}", length=2**64 - 8), "8+N overflows to 0", "at most 100000000")
    bad_st("length_zero", st("", b"data", length=0), "an empty header", "expected")
    bad_st("length_big_endian", struct.pack(">Q", 2) + b"{}", "N has the wrong byte order", "at most 100000000")
    bad_st("html", b"<!DOCTYPE html><html><head><title>404</title>", "a web page saved as a model", "at most")
    bad_st("pickle_zip", b"PK\x03\x04\x00\x00\x08\x08" + bytes(24), "a PyTorch .pth", "at most")
    bad_st("lfs_pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4\n", "an LFS pointer", "at most")
    # The JSON.
    bad_st("starts_with_space", st(" {}"), "the header must start with {", "starts with")
    bad_st("starts_with_bom", st(b"\xef\xbb\xbf{}"), "a byte order mark", "starts with")
    bad_st("array", st("[]"), "not an object", "starts with")
    bad_st("string", st('"a"'), "not an object", "starts with")
    bad_st("not_utf8", st(b'{"\xff":1}'), "a byte that is not UTF-8", "UTF-8")
    bad_st("utf8_overlong", st(b'{"\xc0\xaf":1}'), "an overlong form", "UTF-8")
    bad_st("utf8_surrogate", st(b'{"\xed\xa0\x80":1}'), "an encoded surrogate", "UTF-8")
    bad_st("utf8_cut", st(b'{"a":"\xe2\x82'), "a cut character", "UTF-8")
    bad_st("escape_lone_surrogate", st('{"\\ud800":1}'), "half a surrogate pair", "not valid JSON")
    bad_st("json_cut", st('{"a":{"dtype":"F32"'), "the JSON ends too early", "ends too early")
    bad_st("json_rubbish_behind", st("{}{}"), "a second object", "unexpected")
    bad_st("json_nul_behind", st(b"{}\0\0\0\0\0\0"), "padded with NUL", "NUL")
    bad_st("json_trailing_comma", st('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],}}', four), "a trailing comma", "unexpected")
    bad_st("json_single_quotes", st("{'a':1}"), "Python's quotes", "unexpected")
    bad_st("json_comment", st("{/* a */}"), "a comment", "unexpected")
    bad_st("json_control_character", st(b'{"a\nb":1}'), "a raw line's end in a string", "unexpected")
    bad_st("json_deep_arrays", st('{"a":' + "[" * 20000), "20 000 nested arrays", "deeper")
    bad_st("json_deep_objects", st('{"a":' * 5000), "5 000 nested objects", "deeper")
    bad_st("json_closed_too_often", st("{}}"), "one brace too many", "unexpected")
    # Names and fields.
    bad_st("name_twice", st('{"a":%s,"a":%s}' % ((json.dumps(tensor()),) * 2), four), "a tensor's name twice", "twice")
    bad_st("name_twice_escaped", st('{"a":%s,"\\u0061":%s}' % ((json.dumps(tensor("U8", [0], [0, 0])),) * 2)), "the same name, once escaped", "twice")
    bad_st("field_twice", st('{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}', four), "dtype twice", "twice")
    bad_st("field_unknown", st({"a": tensor() | {"stride": [1]}}, four), "a field that the format has not", "stride")
    bad_st("field_dtype_missing", st({"a": {"shape": [1], "data_offsets": [0, 4]}}, four), "no dtype", "no dtype")
    bad_st("field_shape_missing", st({"a": {"dtype": "F32", "data_offsets": [0, 4]}}, four), "no shape", "no shape")
    bad_st("field_offsets_missing", st({"a": {"dtype": "F32", "shape": [1]}}, four), "no data_offsets", "no data_offsets")
    bad_st("tensor_not_object", st({"a": [1, 2]}), "an array for a tensor", "an array")
    bad_st("tensor_null", st({"a": None}), "null for a tensor", "null")
    bad_st("dtype_unknown", st({"a": tensor("F33")}, four), "an unknown dtype", "F33")
    bad_st("dtype_lower_case", st({"a": tensor("f32")}, four), "a dtype in lower case", "f32")
    bad_st("dtype_number", st({"a": tensor(32)}, four), "a number for the dtype", "dtype")
    bad_st("name_with_escapes", st('{"\\u001b[2J\\n":{"dtype":"\\u0007"}}'), "a name that writes into the terminal", "\\x1b[2J\\x0a")
    # Metadata.
    bad_st("metadata_number", st({"__metadata__": {"epoch": 3}}), "a number among the metadata", "expected a string")
    bad_st("metadata_nested", st({"__metadata__": {"a": {"b": "c"}}}), "an object among the metadata", "expected a string")
    bad_st("metadata_null_value", st({"__metadata__": {"a": None}}), "null among the metadata", "expected a string")
    bad_st("metadata_array", st({"__metadata__": ["a"]}), "metadata that is an array", "object of strings")
    bad_st("metadata_string", st({"__metadata__": "pt"}), "metadata that is a string", "object of strings")
    bad_st("metadata_twice", st('{"__metadata__":{},"__metadata__":{}}'), "metadata twice", "twice")
    bad_st("metadata_key_twice", st('{"__metadata__":{"a":"1","a":"2"}}'), "a key of the metadata twice", "twice")
    # Dimensions.
    bad_st("dim_negative", st({"a": tensor(shape=[-1])}, four), "a negative dimension", "negative")
    bad_st("dim_minus_zero", st('{"a":{"dtype":"F32","shape":[-0],"data_offsets":[0,0]}}'), "minus zero", "negative")
    bad_st("dim_fraction", st({"a": tensor(shape=[1.5])}, four), "a fraction", "fraction")
    bad_st("dim_float", st({"a": tensor(shape=[1.0])}, four), "a whole number written as a float", "fraction")
    bad_st("dim_past_64_bits", st({"a": tensor(shape=[2**64])}, four), "a dimension past 64 bits", "64 bits")
    bad_st("dim_string", st({"a": tensor(shape=["1"])}, four), "a string for a dimension", "string")
    bad_st("dim_nested", st({"a": tensor(shape=[[1]])}, four), "an array for a dimension", "deeper")
    bad_st("dims_overflow", st({"a": tensor(shape=[2**32, 2**32])}, four), "the product is 2^64", "overflow")
    bad_st("dims_overflow_to_size", st({"a": tensor(shape=[2**62 + 1])}, four), "4 x the dimension wraps to 4", "overflow")
    bad_st("dims_overflow_then_zero", st({"a": tensor(shape=[2**32, 2**32, 0], offsets=[0, 0])}), "overflow before a zero", "overflow")
    bad_st("dims_too_many", st({"a": tensor(shape=[1] * 1000)}, four), "a thousand dimensions", "dimensions")
    bad_st("shape_not_array", st({"a": tensor() | {"shape": 1}}, four), "a number for the shape", "shape")
    # Offsets and sizes.
    bad_st("offsets_one", st({"a": tensor(offsets=[0])}, four), "one offset", "expected 2")
    bad_st("offsets_three", st({"a": tensor(offsets=[0, 4, 4])}, four), "three offsets", "expected 2")
    bad_st("offsets_backwards", st({"a": tensor(offsets=[4, 0])}, four), "the end before the begin", "before they begin")
    bad_st("offsets_negative", st({"a": tensor(offsets=[-4, 0])}, four), "a negative offset", "negative")
    bad_st("offsets_float", st({"a": tensor(offsets=[0, 4.0])}, four), "an offset written as a float", "fraction")
    bad_st("offsets_past_file", st({"a": tensor(shape=[2], offsets=[0, 8])}, four), "the data is cut", "only 4 bytes")
    bad_st("offsets_huge", st({"a": tensor("U8", [2**64 - 1], [0, 2**64 - 1])}, four), "an end of 2^64-1", "only 4 bytes")
    bad_st("offsets_past_64_bits", st({"a": tensor("U8", [4], [0, 2**64 + 4])}, four), "an offset past 64 bits", "64 bits")
    bad_st("terabyte", st({"a": tensor(shape=[2**38], offsets=[0, 2**40])}, four), "a terabyte is announced", "only 4 bytes")
    bad_st("size_too_small", st({"a": tensor(shape=[2], offsets=[0, 4])}, four), "fewer bytes than the shape needs", "expected 8")
    bad_st("size_too_large", st({"a": tensor(shape=[1], offsets=[0, 8])}, eight), "more bytes than the shape needs", "expected 4")
    bad_st("size_of_zero_dim", st({"a": tensor(shape=[0, 7])}, four), "bytes for a tensor without elements", "expected 0")
    bad_st("size_half_byte", st({"a": tensor("F4", [3], [0, 2])}, b"\0\0"), "three 4-bit elements", "whole byte")
    bad_st("hole_first", st({"a": tensor(offsets=[4, 8])}, eight), "the first tensor begins at 4", "hole")
    bad_st("hole_between", st({"a": tensor(), "b": tensor(offsets=[8, 12])}, eight + four), "a hole between two", "hole")
    bad_st("hole_last", st({"a": tensor()}, eight), "data behind the last tensor", "8 bytes of data")
    bad_st("data_without_tensors", st("{}", four), "data that no tensor has", "4 bytes of data")
    bad_st("overlap", st({"a": tensor(shape=[2], offsets=[0, 8]), "b": tensor(shape=[2], offsets=[4, 12])}, eight + four), "two overlap", "overlap")
    bad_st("overlap_same", st({"a": tensor(), "b": tensor()}, four), "two share their bytes", "overlap")
    bad_st("overlap_inside", st({"a": tensor(shape=[4], offsets=[0, 16]), "b": tensor(offsets=[4, 8])}, eight * 2), "one inside the other", "overlap")


# ---- npy -----------------------------------------------------------------------------------------

def npy(text, data=b"", version=b"\x01\x00", length=None, end="\n"):
    text = text.encode("latin1") + end.encode()
    length = len(text) if length is None else length
    return b"\x93NUMPY" + version + struct.pack("<H" if version[0] == 1 else "<I", length) + text + data


def dictionary(descr="'<f4'", order="False", shape="(1, 3, 4, 4)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


def bad_npy(name, content, wrong, word):
    put(f"npy/{name}.npy", content, wrong, word)


def npys():
    data = b"\0" * 192  # [1, 3, 4, 4] of float32
    bad_npy("empty", b"", "no bytes at all", "no .npy file")
    bad_npy("magic", b"\x93NUMPX" + npy(dictionary(), data)[6:], "another magic string", "no .npy file")
    bad_npy("zip", b"PK\x03\x04" + bytes(40), "an .npz archive", "no .npy file")
    bad_npy("magic_cut", b"\x93NUM", "cut in the magic string", "no .npy file")
    bad_npy("length_cut", b"\x93NUMPY\x01\x00\x10", "cut in the header's length", "ends inside")
    bad_npy("length_cut_v2", b"\x93NUMPY\x02\x00\x10\x00\x00", "cut in the header's length", "ends inside")
    bad_npy("version_3", npy(dictionary(), data, b"\x03\x00"), "format 3.0", "version 3.0")
    bad_npy("version_0", npy(dictionary(), data, b"\x00\x01"), "format 0.1", "version 0.1")
    bad_npy("version_1_7", npy(dictionary(), data, b"\x01\x07"), "format 1.7", "version 1.7")
    bad_npy("header_past_file", npy(dictionary(), length=5000), "the header is cut", "follow")
    bad_npy("header_4_gib", npy(dictionary(), data, b"\x02\x00", length=2**32 - 1), "a header of 4 GiB", "at most")
    bad_npy("header_empty", npy("", data, end=""), "an empty header", "expected")
    bad_npy("header_not_dictionary", npy("[1, 2, 3]", data), "a list for a header", "expected")
    bad_npy("header_code", npy("__import__('os').system('true')", data), "code for a header", "expected")
    bad_npy("header_unclosed", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 4, 4)", data), "no closing brace", "expected")
    bad_npy("header_deep", npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + "(" * 10000, data), "10 000 brackets", "expected")
    bad_npy("header_rubbish_behind", npy(dictionary() + " + 1", data), "rubbish behind the dictionary", "after")
    bad_npy("header_no_line_end", npy(dictionary(), data, end=""), "no line's end", "after")
    bad_npy("key_missing", npy("{'descr': '<f4', 'shape': (1, 3, 4, 4), }", data), "no fortran_order", "no fortran_order")
    bad_npy("key_twice", npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 4, 4), }", data), "descr twice", "once")
    bad_npy("key_unknown", npy("{'descr': '<f4', 'order': 'C', 'shape': (1, 3, 4, 4), }", data), "an unknown key", "order")
    bad_npy("fortran_order", npy(dictionary(order="True"), data), "Fortran order", "Fortran")
    bad_npy("fortran_order_number", npy(dictionary(order="0"), data), "a number for a truth value", "False")
    bad_npy("big_endian", npy(dictionary("'>f4'"), data), "big endian", "big-endian")
    bad_npy("native_endian", npy(dictionary("'=f4'"), data), "a byte order that is not told", "=f4")
    bad_npy("objects", npy(dictionary("'|O'"), data), "Python objects", "objects")
    bad_npy("records", npy(dictionary("[('a', '<f4')]"), data), "records", "records")
    bad_npy("complex", npy(dictionary("'<c8'", shape="(1, 3, 4, 2)"), data), "complex numbers", "c8")
    bad_npy("unicode", npy(dictionary("'<U4'"), data), "text", "U4")
    bad_npy("descr_number", npy(dictionary("4"), data), "a number for descr", "expected a string")
    bad_npy("shape_number", npy(dictionary(shape="192"), data), "a number for the shape", "expected")
    bad_npy("shape_no_tuple", npy(dictionary(shape="(48)"), data), "brackets around a number", "(n,)")
    bad_npy("shape_list", npy(dictionary(shape="[1, 3, 4, 4]"), data), "a list for the shape", "expected")
    bad_npy("shape_negative", npy(dictionary(shape="(-1, 3, 4, 4)"), data), "a negative dimension", "expected a dimension")
    bad_npy("shape_float", npy(dictionary(shape="(1.0, 3, 4, 4)"), data), "a float for a dimension", "expected")
    bad_npy("shape_text", npy(dictionary(shape="(one, 3, 4, 4)"), data), "a word for a dimension", "expected a dimension")
    bad_npy("shape_past_64_bits", npy(dictionary(shape="(18446744073709551617, 3, 4, 4)"), data), "a dimension past 64 bits", "64 bits")
    bad_npy("shape_overflow", npy(dictionary(shape="(4294967296, 4294967296, 4, 4)"), data), "a product past 64 bits", "64 bits")
    bad_npy("shape_overflow_to_size", npy(dictionary(shape="(4611686018427387952,)"), data), "4 x the dimension wraps to 192", "64 bits")
    bad_npy("shape_deep_rank", npy(dictionary(shape="(" + "1, " * 40 + ")"), b"\0" * 4), "forty dimensions", "32 dimensions")
    bad_npy("data_missing", npy(dictionary()), "no data", "0 bytes of data, expected 192")
    bad_npy("data_cut", npy(dictionary(), data[:-1]), "one byte is missing", "191 bytes of data, expected 192")
    bad_npy("data_too_long", npy(dictionary(), data + b"\0"), "one byte too many", "193 bytes of data, expected 192")
    bad_npy("data_terabyte", npy(dictionary(shape="(1, 3, 500000, 500000)"), data), "3 TB are announced", "expected 3000000000000")
    bad_npy("data_of_f16", npy(dictionary(), b"\0" * 96), "half the bytes", "96 bytes of data, expected 192")


# ---- configurations and indices --------------------------------------------------------------------

HF = {
    "architectures": ["ViTForImageClassification"], "model_type": "vit", "hidden_size": 8, "num_hidden_layers": 1,
    "num_attention_heads": 2, "intermediate_size": 16, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
    "image_size": 8, "patch_size": 4, "num_channels": 3, "qkv_bias": True,
    "id2label": {"0": "circle", "1": "square", "2": "star"},
}
TIMM = {"architecture": "vit_tiny_patch16_224", "num_classes": 3, "global_pool": "token",
        "pretrained_cfg": {"input_size": [3, 8, 8], "num_classes": 3},
        "model_args": {"img_size": 8, "patch_size": 4, "embed_dim": 8, "depth": 1, "num_heads": 2, "mlp_ratio": 2}}


def checkpoint():
    """A tiny Hugging Face ViT with constant weights: what the configs stand beside."""
    d, hidden, patches, classes = 8, 16, 4, 3
    layer = "vit.encoder.layer.0."
    shapes = {
        "vit.embeddings.cls_token": [1, 1, d], "vit.embeddings.position_embeddings": [1, patches + 1, d],
        "vit.embeddings.patch_embeddings.projection.weight": [d, 3, 4, 4],
        "vit.embeddings.patch_embeddings.projection.bias": [d],
        layer + "layernorm_before.weight": [d], layer + "layernorm_before.bias": [d],
        layer + "layernorm_after.weight": [d], layer + "layernorm_after.bias": [d],
        layer + "attention.output.dense.weight": [d, d], layer + "attention.output.dense.bias": [d],
        layer + "intermediate.dense.weight": [hidden, d], layer + "intermediate.dense.bias": [hidden],
        layer + "output.dense.weight": [d, hidden], layer + "output.dense.bias": [d],
        "vit.layernorm.weight": [d], "vit.layernorm.bias": [d],
        "classifier.weight": [classes, d], "classifier.bias": [classes],
    }
    for part in ("query", "key", "value"):
        shapes[layer + f"attention.attention.{part}.weight"] = [d, d]
        shapes[layer + f"attention.attention.{part}.bias"] = [d]
    header, data = {}, b""
    for name in sorted(shapes):
        count = 1
        for dim in shapes[name]:
            count *= dim
        values = [((i * 7 + len(data)) % 13 - 6) / 16 for i in range(count)]
        header[name] = tensor("F32", shapes[name], [len(data), len(data) + 4 * count])
        data += struct.pack(f"<{count}f", *values)
    return header, data


def bad_config(name, content, wrong, word):
    if isinstance(content, dict):
        content = json.dumps(content, indent=1)
    put(f"config/{name}.json", content, wrong, word)


def configs():
    text = json.dumps(HF)
    # JSON.
    bad_config("empty", "", "no bytes at all", "ends too early")
    bad_config("cut", text[:100], "cut", "ends too early")
    bad_config("not_utf8", b'{"model_type": "v\xeft"}', "Latin-1", "UTF-8")
    bad_config("nul_behind", text.encode() + b"\0", "a NUL behind it", "NUL")
    bad_config("rubbish_behind", text + "}", "one brace too many", "unexpected")
    bad_config("comment", "// the model\n" + text, "a comment", "unexpected")
    bad_config("nan", text.replace("1e-12", "NaN"), "NaN is no JSON", "unexpected")
    bad_config("number_too_large", text.replace("1e-12", "1e999"), "a number past double", "too large")
    bad_config("key_twice", text.replace('"hidden_size": 8', '"hidden_size": 8, "hidden_size": 8'), "hidden_size twice", "twice")
    bad_config("key_twice_deep", text.replace('"1": "square"', '"0": "square"'), "a label twice", "twice")
    bad_config("deep_arrays", '{"model_type": "vit", "x": ' + "[" * 30000 + "]" * 30000 + "}", "30 000 nested arrays", "deeper")
    bad_config("deep_objects", '{"x":' * 10000, "10 000 nested objects", "deeper")
    bad_config("array", "[]", "an array", "object")
    bad_config("null", "null", "null", "object")
    bad_config("string", '"vit"', "a string", "object")
    bad_config("nothing_in_it", "{}", "no model_type", "model_type")
    # Wrong types.
    bad_config("hidden_size_string", HF | {"hidden_size": "8"}, "a string for a size", "hidden_size")
    bad_config("hidden_size_fraction", HF | {"hidden_size": 8.5}, "half a column", "hidden_size")
    bad_config("hidden_size_negative", HF | {"hidden_size": -8}, "a negative size", "hidden_size")
    bad_config("hidden_size_array", HF | {"hidden_size": [8]}, "an array for a size", "hidden_size")
    bad_config("hidden_size_past_64_bits", HF | {"hidden_size": 2**64}, "a size past 64 bits", "hidden_size")
    bad_config("image_size_object", HF | {"image_size": {"a": 8}}, "an object for the image's size", "image_size")
    bad_config("image_size_three", HF | {"image_size": [8, 8, 8]}, "three sides", "image_size")
    bad_config("eps_string", HF | {"layer_norm_eps": "1e-12"}, "a string for eps", "layer_norm_eps")
    bad_config("qkv_bias_number", HF | {"qkv_bias": 1}, "a number for a truth value", "qkv_bias")
    bad_config("labels_array", HF | {"id2label": ["a", "b", "c"]}, "an array of labels", "id2label")
    bad_config("model_type_number", HF | {"model_type": 3}, "a number for the model's type", "model_type")
    bad_config("model_type_unknown", HF | {"model_type": "bert"}, "another kind of model", "bert")
    bad_config("activation_unknown", HF | {"hidden_act": "relu6"}, "an unknown activation", "relu6")
    bad_config("activation_number", HF | {"hidden_act": 6}, "a number for the activation", "hidden_act")
    # Absurd or contradictory sizes.
    bad_config("parameters_10_to_12", HF | {"hidden_size": 65536, "intermediate_size": 262144, "num_hidden_layers": 24,
                                            "num_attention_heads": 512}, "10^12 parameters", "parameters")
    bad_config("hidden_size_zero", HF | {"hidden_size": 0}, "no columns", "dim")
    bad_config("hidden_size_huge", HF | {"hidden_size": 2**63}, "2^63 columns", "dim")
    bad_config("layers_zero", HF | {"num_hidden_layers": 0}, "no layers", "depth")
    bad_config("layers_huge", HF | {"num_hidden_layers": 10**12}, "10^12 layers", "depth")
    bad_config("heads_zero", HF | {"num_attention_heads": 0}, "no heads", "head")
    bad_config("heads_do_not_divide", HF | {"num_attention_heads": 3}, "8 columns, 3 heads", "heads")
    bad_config("heads_huge", HF | {"num_attention_heads": 2**64 - 1}, "2^64-1 heads", "heads")
    bad_config("intermediate_huge", HF | {"intermediate_size": 2**62}, "an MLP of 2^62 columns", "mlp_hidden")
    bad_config("image_zero", HF | {"image_size": 0}, "no pixels", "image_height")
    bad_config("image_huge", HF | {"image_size": 2**40}, "2^80 pixels", "image_height")
    bad_config("patch_zero", HF | {"patch_size": 0}, "patches without pixels", "patch_height")
    bad_config("patch_larger_than_image", HF | {"patch_size": 16}, "no patch fits", "patch_height")
    bad_config("tokens_too_many", HF | {"image_size": 16384, "patch_size": 1}, "2^28 tokens", "tokens")
    bad_config("channels_zero", HF | {"num_channels": 0}, "no channels", "channels")
    bad_config("eps_negative", HF | {"layer_norm_eps": -1.0}, "a negative eps", "eps")
    bad_config("eps_huge", HF | {"layer_norm_eps": 1e300}, "an eps of 1e300", "eps")
    # It contradicts the checkpoint beside it.
    bad_config("wider_than_checkpoint", HF | {"hidden_size": 16}, "16 columns, the tensors have 8", "expected")
    bad_config("deeper_than_checkpoint", HF | {"num_hidden_layers": 2}, "a layer that the file has not", "layer.1")
    bad_config("more_classes_than_checkpoint", HF | {"id2label": {str(i): "x" for i in range(5)}}, "5 labels, 3 rows", "classifier")
    # Other families.
    bad_config("vision_config_number", {"model_type": "clip", "vision_config": 3}, "a number for the vision model", "vision_config")
    bad_config("vision_config_array", {"model_type": "siglip", "vision_config": [HF]}, "an array for the vision model", "vision_config")
    bad_config("vision_config_three_sides", {"model_type": "siglip", "vision_config": {"image_size": [8, 8, 8]}}, "three sides of the vision model's image", "image_size")
    bad_config("model_type_text_tower", HF | {"model_type": "clip_text_model"}, "a model without images", "clip_text_model")
    bad_config("model_type_of_other_names", HF | {"model_type": "dinov2"}, "DINOv2 with tensors named as ViT's", "dinov2")
    # timm's and our own.
    bad_config("timm_input_size", TIMM | {"pretrained_cfg": {"input_size": [3, 8]}}, "two of three sizes", "input_size")
    bad_config("timm_args_array", TIMM | {"model_args": []}, "an array of arguments", "model_args")
    bad_config("timm_ratio_huge", TIMM | {"model_args": {"mlp_ratio": 1e300}}, "an MLP of 1e301 columns", "mlp_ratio")
    bad_config("timm_pool_unknown", TIMM | {"global_pool": "max"}, "an unknown pooling", "global_pool")
    bad_config("timm_architecture_other", TIMM | {"architecture": "resnet50"}, "a network of another kind", "resnet50")
    bad_config("timm_architecture_hostile", TIMM | {"architecture": "vit_\u001b[2J" + "x" * 5000}, "control characters in a long name", "architecture")
    bad_config("timm_architecture_huge", TIMM | {"architecture": "vit_tiny_patch99999999999_224", "model_args": {}}, "patches of 10^22 pixels", "patch_height")
    bad_config("timm_block_other", TIMM | {"model_args": TIMM["model_args"] | {"block_fn": "ResPostBlock"}}, "another block, the same tensors", "block_fn")
    bad_config("timm_norm_other", TIMM | {"model_args": TIMM["model_args"] | {"norm_layer": "rmsnorm"}}, "another norm", "norm_layer")
    bad_config("timm_argument_unknown", TIMM | {"model_args": TIMM["model_args"] | {"num_parallel": 2}}, "an argument that isn't known", "num_parallel")
    bad_config("timm_drop_rate_one", TIMM | {"model_args": TIMM["model_args"] | {"drop_rate": 1}}, "everything is dropped", "drop_rate")
    bad_config("own_field_unknown", {"vitrine": {"widht": 8}}, "a misspelt field", "widht")
    bad_config("own_field_object", {"vitrine": {"dim": {}}}, "an object for a number", "dim")
    bad_config("own_field_negative", {"vitrine": {"dim": -8}}, "a negative size", "dim")
    bad_config("own_parameters_10_to_12", {"vitrine": {"dim": 65536, "depth": 24, "heads": 512, "classes": 1000}}, "10^12 parameters", "parameters")


def bad_index(name, content, wrong, word):
    if isinstance(content, dict):
        content = json.dumps({"metadata": {}, "weight_map": content}, indent=1)
    put(f"index/{name}.index.json", content, wrong, word)


def indices():
    bad_index("cut", '{"weight_map": {"a": "mo', "cut", "ends too early")
    bad_index("no_map", '{"metadata": {}}', "no weight_map", "weight_map")
    bad_index("map_array", '{"weight_map": ["model.safetensors"]}', "an array for the map", "weight_map")
    bad_index("file_number", {"classifier.bias": 1}, "a number for a file", "JSON number")
    bad_index("file_up", {"classifier.bias": "../valid/model.safetensors"}, "a file of another folder", "plain name")
    bad_index("file_absolute", {"classifier.bias": "/etc/model.safetensors"}, "an absolute path", "plain name")
    bad_index("file_backslash", {"classifier.bias": "..\\valid\\model.safetensors"}, "a path in Windows' spelling", "plain name")
    bad_index("file_nul", {"classifier.bias": "model.safetensors\0.safetensors"}, "a NUL in the name", "plain name")
    bad_index("file_dots", {"classifier.bias": ".."}, "the folder above", "plain name")
    bad_index("file_pickle", {"classifier.bias": "pytorch_model.bin"}, "no safetensors file", "plain name")
    bad_index("file_missing", {"classifier.bias": "model-00002-of-00002.safetensors"}, "a file that is not there", "no such file")
    bad_index("tensor_twice", '{"weight_map": {"a": "b.safetensors", "a": "c.safetensors"}}', "a tensor twice", "twice")


def main():
    for folder in ("safetensors", "npy", "config", "index", "valid"):
        shutil.rmtree(HERE / folder, ignore_errors=True)
    safetensors()
    npys()
    configs()
    indices()
    valid = HERE / "valid"
    valid.mkdir()
    header, data = checkpoint()
    text = json.dumps(header, separators=(",", ":"))
    (valid / "model.safetensors").write_bytes(st(text + " " * (-len(text) % 8), data))
    (valid / "config.json").write_text(json.dumps(HF, indent=1) + "\n")
    pixels = [i / 192 for i in range(192)]  # [1, 3, 8, 8]
    (valid / "input.npy").write_bytes(npy(dictionary(shape="(1, 3, 8, 8)").ljust(117), struct.pack("<192f", *pixels)))
    with open(HERE / "manifest.json", "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(row) for row in manifest) + "\n]\n")
    names = [row["file"] for row in manifest]
    assert len(names) == len(set(names)), "a name is used twice"
    print(f"{len(names)} malformed files")


main()
