"""Writes preprocessing/fast.json: what transformers' processors on PyTorch ("fast", the default since version 5) make of
pictures, as make_preprocess_fixture.py has it of those on Pillow.

    python3 tests/parity/make_fast_preprocess_fixture.py      # transformers 5, torchvision, a processor with AVX2

Without AVX2, torchvision resizes bytes in floats, and some come out one level off.
"""

import json
import pathlib

import torch

import make_preprocess_fixture as pillow

NOT_ON_TORCH = {"vit_without_scaling": {"resample": 2}, "vit_without_normalizing": {"resample": 3}}
FAST_PROFILES = ("hf", "clip", "siglip", "hf-deit", "hf-dinov2")


def main():
    import torchvision
    import transformers

    if not any(name in torch.backends.cpu.get_cpu_capability() for name in ("AVX2", "AVX512")):
        raise SystemExit("this processor has no AVX2, without which torchvision resizes otherwise")
    cases = []
    for name, config in pillow.HUGGING_FACE.items():
        config = {**config, **NOT_ON_TORCH.get(name, {})}
        kind = config.pop("feature_extractor_type", "").replace("FeatureExtractor", "ImageProcessor")
        config["image_processor_type"] = config.get("image_processor_type", kind)
        pictures = pillow.results(pillow.hugging_face(name, config), pillow.SIZES, 100 * len(cases))
        config["image_processor_type"] += "Fast"
        cases.append({"name": name, "file": "preprocessor_config.json", "json": config, "pictures": pictures})
    for name in FAST_PROFILES:
        for size in (56, 224):
            sizes = pillow.SIZES[:4] if size == 56 else pillow.LARGE
            cases.append({"name": f"{name}-fast", "profile": f"{name}-fast", "size": size,
                          "pictures": pillow.results(pillow.profile_transform(name, size), sizes, 100 * len(cases))})
    path = pathlib.Path(__file__).parent / "preprocessing" / "fast.json"
    lines = []
    for case in cases:
        pictures = ",\n  ".join(json.dumps(row) for row in case.pop("pictures"))
        lines.append(json.dumps(case)[:-1] + f', "pictures": [\n  {pictures}]}}')
    libraries = {"torch": torch.__version__, "torchvision": torchvision.__version__, "transformers": transformers.__version__}
    path.write_text(f'{{"libraries": {json.dumps(libraries)}, "cases": [\n' + ",\n".join(lines) + "\n]}\n")
    print(f"{path}: {len(cases)} cases, {path.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
