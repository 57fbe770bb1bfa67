"""Writes preprocessing/profiles.json and pictures.json: what torchvision, timm and transformers make of pictures.

    PYTHONPATH=DIR_WITH_TIMM:DIR_WITH_TRANSFORMERS python3 tests/parity/make_preprocess_fixture.py

Every case is a configuration as the library's users find it beside a model (or the library's usual
transform, for a profile) and pictures of noise_pictures.py in several sizes, with a hash of the float32
[C, H, W] that comes out. The processors of transformers are those that work on Pillow's pictures. pictures.json has the same for files of
tests/images/pictures, with the resized picture's hash besides.
"""

import json
import pathlib

import numpy as np
from PIL import Image

from check_preprocess import reference
from noise_pictures import fnv, noise_picture

# Even and odd, both ways round, smaller than the crop, of the crop's size, remainders of 1 to 3 modulo 4.
SIZES = [(64, 64), (97, 61), (61, 97), (50, 40), (33, 130), (20, 21), (131, 128), (70, 53), (71, 53), (72, 53), (73, 53)]
LARGE = [(403, 301), (640, 359), (300, 225)]
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}

HUGGING_FACE = {
    # google/vit-base-patch16-224, smaller
    "vit": {"do_normalize": True, "do_resize": True, "image_mean": [0.5, 0.5, 0.5],
            "image_std": [0.5, 0.5, 0.5], "size": 56, "image_processor_type": "ViTImageProcessor"},
    "vit_old": {"feature_extractor_type": "ViTFeatureExtractor", "size": {"height": 48, "width": 40}, "resample": 3,
                "do_rescale": True, "rescale_factor": 0.00392156862745098},
    "vit_without_scaling": {"image_processor_type": "ViTImageProcessor", "size": 32, "do_rescale": False,
                            "resample": 1, "image_mean": 127.5, "image_std": [50.5, 60.25, 70.75]},
    "vit_without_normalizing": {"image_processor_type": "ViTImageProcessor", "size": [31, 33], "do_normalize": False,
                                "resample": 0},
    "deit": {"image_processor_type": "DeiTImageProcessor", "size": 64, "resample": 3, "crop_size": 56, **IMAGENET},
    "deit_uncropped": {"feature_extractor_type": "DeiTFeatureExtractor", "size": {"height": 48, "width": 48},
                       "do_center_crop": False},
    "dinov2": {"crop_size": {"height": 56, "width": 56}, "do_center_crop": True, "do_convert_rgb": True,
               "do_normalize": True, "do_rescale": True, "do_resize": True, **IMAGENET,
               "image_processor_type": "BitImageProcessor", "resample": 3,
               "rescale_factor": 0.00392156862745098, "size": {"shortest_edge": 64}},
    "clip": {"crop_size": 47, "do_center_crop": True, "do_normalize": True, "do_resize": True,
             "feature_extractor_type": "CLIPFeatureExtractor",
             "image_mean": [0.48145466, 0.4578275, 0.40821073],
             "image_std": [0.26862954, 0.26130258, 0.27577711], "resample": 3, "size": 47},
    "clip_padded": {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 40},
                    "crop_size": {"height": 57, "width": 66}},
    "clip_unresized": {"image_processor_type": "CLIPImageProcessor", "do_resize": False,
                       "crop_size": {"height": 54, "width": 61}},
    "siglip": {"image_processor_type": "SiglipImageProcessor", "size": {"height": 48, "width": 48}, "resample": 3,
               "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]},
}

TIMM = {
    "timm_augreg": {"input_size": [3, 56, 56], "interpolation": "bicubic", "crop_pct": 0.9, "crop_mode": "center",
                    "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]},
    "timm_defaults": {"input_size": [3, 47, 47]},
    "timm_dinov2": {"input_size": [3, 70, 70], "crop_pct": 1.0, "mean": [0.485, 0.456, 0.406]},
    "timm_bilinear": {"input_size": [3, 64, 64], "interpolation": "bilinear", "crop_pct": 0.95},
    "timm_lanczos": {"input_size": [3, 48, 48], "interpolation": "lanczos", "crop_pct": 0.875},
    "timm_wide": {"input_size": [3, 40, 63], "crop_pct": 0.9},
    "timm_tall": {"input_size": [3, 57, 33], "crop_pct": 0.8},
    "timm_squash": {"input_size": [3, 56, 44], "crop_pct": 0.9, "crop_mode": "squash"},
    "timm_squash_whole": {"input_size": [3, 54, 54], "crop_pct": 1.0, "crop_mode": "squash"},
    "timm_border": {"input_size": [3, 56, 56], "crop_pct": 0.9, "crop_mode": "border"},
    "timm_border_wide": {"input_size": [3, 41, 66], "crop_pct": 1.0, "crop_mode": "border",
                         "mean": [0.3, 0.5, 0.7], "std": [0.25, 0.5, 0.125]},
}


def class_of(config):
    return config.get("image_processor_type") or config["feature_extractor_type"].replace("FeatureExtractor", "ImageProcessor")


def hugging_face(name, config):
    import transformers
    processor = getattr(transformers, class_of(config)).from_dict(config)
    return lambda picture: processor(picture, return_tensors="np")["pixel_values"][0]


def timm_transform(name, config):
    import timm.data
    data = timm.data.resolve_data_config({}, pretrained_cfg=config)
    transform = timm.data.create_transform(**data, is_training=False)
    return lambda picture: transform(picture).numpy()


def torchvision_transform(size):
    from torchvision import transforms
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms._presets import ImageClassification
    preset = ImageClassification(crop_size=size, resize_size=size * 256 // 224, interpolation=InterpolationMode.BILINEAR)
    return lambda picture: preset(picture).numpy()


def grey_transform(size):
    from torchvision import transforms
    chain = transforms.Compose([transforms.Resize((size, size)), transforms.ToTensor()])
    return lambda picture: chain(picture.convert("L")).numpy()


# The libraries' usual transforms, for the profiles by name.
PROFILES = {
    "timm": ("timm", {"input_size": [3, 0, 0], "crop_pct": 0.9, "mean": [0.5] * 3, "std": [0.5] * 3}),
    "hf": ("transformers", {"image_processor_type": "ViTImageProcessor", "size": 0}),
    "clip": ("transformers", {"image_processor_type": "CLIPImageProcessor", "size": 0, "crop_size": 0}),
    "siglip": ("transformers", {"image_processor_type": "SiglipImageProcessor", "size": {"height": 0, "width": 0}}),
    "hf-deit": ("transformers", HUGGING_FACE["deit"]),
    "hf-dinov2": ("transformers", HUGGING_FACE["dinov2"]),
    "torchvision": ("torchvision", None),
    "grey": ("torchvision", None),
}


def profile_config(name, size):
    config = dict(PROFILES[name][1])
    if name == "timm":
        return config | {"input_size": [3, size, size]}
    if name == "hf-deit":
        config |= {"size": size * 256 // 224, "crop_size": size}
    elif name == "hf-dinov2":
        config |= {"size": {"shortest_edge": size * 256 // 224}, "crop_size": size}
    else:
        config["size"] = {"height": size, "width": size} if name == "siglip" else size
        if "crop_size" in config:
            config["crop_size"] = size
    return config


def profile_transform(name, size):
    if PROFILES[name][0] == "torchvision":
        return torchvision_transform(size) if name == "torchvision" else grey_transform(size)
    return (timm_transform if name == "timm" else hugging_face)(name, profile_config(name, size))


def results(transform, sizes, seed):
    rows = []
    for width, height in sizes:
        seed += 1
        out = np.ascontiguousarray(transform(Image.fromarray(noise_picture(seed, width, height))), dtype="<f4")
        rows.append({"seed": seed, "from": [width, height], "shape": list(out.shape), "fnv": fnv(out.tobytes())})
    return rows


FILES = ["jpeg_403x301.jpg", "jpeg_420.jpg", "jpeg_cmyk.jpg", "jpeg_progressive_grey.jpg", "jpeg_1x1.jpg",
         "png_palette_4_interlaced.png", "png_grey_16.png", "png_grey_alpha_8.png", "png_3x2003.png"]


def write_pictures():
    folder = pathlib.Path(__file__).parents[1] / "images" / "pictures"
    rows = []
    for i, name in enumerate(FILES + sorted(path.name for path in folder.glob("webp_*"))[:2]):
        image = Image.open(folder / name).convert("RGB")
        for profile in (["torchvision", "hf"][i % 2], ["timm", "clip", "siglip"][i % 3]):
            pixels, numbers = reference(profile, 48 + i)(image)
            rows.append({"file": name, "profile": profile, "size": 48 + i, "resized": fnv(pixels.tobytes()),
                         "normalized": fnv(np.ascontiguousarray(numbers, dtype="<f4").tobytes())})
    path = pathlib.Path(__file__).parent / "preprocessing" / "pictures.json"
    lines = ",\n".join(json.dumps(row) for row in rows)
    path.write_text(f'{{"cases": [\n{lines}\n]}}\n')
    print(f"{path}: {len(rows)} cases")


def main():
    write_pictures()
    cases = []
    for name, config in HUGGING_FACE.items():
        cases.append({"name": name, "file": "preprocessor_config.json", "json": config,
                      "pictures": results(hugging_face(name, config), SIZES, 100 * len(cases))})
    for name, config in TIMM.items():
        cases.append({"name": name, "file": "config.json",
                      "json": {"architecture": "vit_base_patch16_224", "pretrained_cfg": config},
                      "pictures": results(timm_transform(name, config), SIZES, 100 * len(cases))})
    for name in PROFILES:
        for size in (56, 224):
            cases.append({"name": name, "profile": name, "size": size,
                          "pictures": results(profile_transform(name, size), SIZES if size == 56 else LARGE[: 2],
                                              100 * len(cases))})
    import timm
    import torchvision
    import transformers
    versions = {"timm": timm.__version__, "torchvision": torchvision.__version__, "transformers": transformers.__version__}
    path = pathlib.Path(__file__).parent / "preprocessing" / "profiles.json"
    body = ",\n".join(json.dumps({k: v for k, v in case.items() if k != "pictures"})[:-1] + ', "pictures": [\n  ' +
                      ",\n  ".join(json.dumps(row) for row in case["pictures"]) + "]}" for case in cases)
    path.write_text(f'{{"libraries": {json.dumps(versions)}, "cases": [\n{body}\n]}}\n')
    print(f"{path}: {len(cases)} cases, {sum(len(case['pictures']) for case in cases)} pictures")


if __name__ == "__main__":
    main()
