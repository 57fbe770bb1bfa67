#!/usr/bin/env python3
"""Compares `vitrine preprocess` with Pillow, torchvision and transformers on pictures of every format.

    python3 tests/parity/check_preprocess.py --vitrine build/release/vitrine [--out DIR]

Takes tests/images/pictures and makes larger ones (JPEG in every subsampling, grey, CMYK, progressive; PNG with
palettes, 16 bits, alpha, interlaced; WebP; 1x1 to 4000x3000). Each goes through a bilinear and a bicubic profile:
the resized picture must equal what Pillow 11 made of Image.open(...).convert("RGB"), byte for byte, and the numbers
the library's, to the last bit. Prints a line a picture and the largest differences, which must be 0. With
transformers on PYTHONPATH its processors are the reference of hf, clip and siglip; else Pillow and their formulas.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image
from torchvision import transforms
from torchvision.transforms import InterpolationMode

from noise_pictures import noise_picture

HERE = pathlib.Path(__file__).parent
IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
CLIP = ([0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711])
HALF = ([0.5] * 3, [0.5] * 3)


def smooth_picture(seed, width, height):
    """Something between noise and a photo: a few frequencies and a little noise."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    planes = []
    for _ in range(3):
        plane = np.zeros((height, width), np.float32)
        for _ in range(5):
            fx, fy, phase = random.uniform(0.5, 40, 3)
            plane += np.sin(x * fx / width * 6 + y * fy / height * 6 + phase)
        planes.append(plane * 25 + 128 + random.normal(0, 6, plane.shape))
    return np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)


def make_pictures(folder):
    """Pictures larger than those that are committed, in all formats."""
    made = []

    def save(name, image, **options):
        path = folder / name
        image.save(path, **options)
        made.append(path)

    rgb = lambda seed, w, h: Image.fromarray(smooth_picture(seed, w, h))
    for i, (width, height) in enumerate([(1, 1), (2, 1), (1, 300), (5, 4), (224, 224), (256, 256), (640, 480), (480, 641),
                                         (1000, 750), (1023, 1024), (1920, 1080), (3000, 4000), (4000, 3000), (4000, 31)]):
        save(f"size_{width}x{height}.png", rgb(i, width, height))
        save(f"size_{width}x{height}.jpg", rgb(i, width, height), quality=88)
    for name, subsampling in (("444", 0), ("422", 1), ("420", 2)):
        save(f"jpeg_{name}.jpg", rgb(20, 501, 373), quality=90, subsampling=subsampling)
    save("jpeg_progressive.jpg", rgb(21, 611, 407), quality=75, progressive=True)
    save("jpeg_grey.jpg", rgb(22, 355, 287).convert("L"))
    save("jpeg_cmyk.jpg", rgb(23, 299, 411).convert("CMYK"))
    save("png_palette.png", rgb(24, 420, 317).quantize(200))
    save("png_alpha.png", Image.fromarray(np.concatenate([smooth_picture(25, 313, 419), smooth_picture(26, 313, 419)[..., :1]], -1)))
    save("png_16_bit.png", Image.fromarray((smooth_picture(27, 333, 222)[..., 0].astype(np.uint16) * 257)))
    save("png_noise.png", Image.fromarray(noise_picture(28, 403, 301)))
    save("webp_lossy.webp", rgb(29, 517, 389), quality=70)
    save("webp_lossless.webp", rgb(30, 389, 517), lossless=True)
    return made


def torchvision_reference(size, resize, interpolation, numbers):
    picture = transforms.Compose([transforms.Resize(resize, interpolation), transforms.CenterCrop(size)])
    tensor = transforms.Compose([transforms.ToTensor(), transforms.Normalize(*numbers)])
    return lambda image: (np.asarray(picture(image)), tensor(picture(image)).numpy())


def transformers_reference(size, short_side, resample, numbers):
    """As transformers does it: with its own code if it is there, else Pillow and its formulas."""
    def formulas(image):
        # CLIP's and SigLIP's processors turn one transparent color white.
        if resample == Image.Resampling.BICUBIC and image.info.get("transparency") is not None:
            clear = image.convert("RGBA")
            image = Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear).convert("RGB")
        if short_side:
            short, long = sorted(image.size)
            other = int(size * long / short)
            image = image.resize((size, other) if image.width <= image.height else (other, size), resample)
            left, top = (image.width - size) // 2, (image.height - size) // 2
            image = image.crop((left, top, left + size, top + size))
        else:
            image = image.resize((size, size), resample)
        pixels = np.asarray(image)
        scaled = (pixels.astype(np.float64) * (1 / 255)).astype(np.float32)
        values = (scaled - np.array(numbers[0], np.float32)) / np.array(numbers[1], np.float32)
        return pixels, values.transpose(2, 0, 1)

    try:
        import transformers
    except ImportError:
        return formulas
    # Those on Pillow's pictures: since version 5 they have names of their own.
    on_pillow = lambda name: getattr(transformers, name + "ImageProcessorPil", None) or getattr(transformers, name + "ImageProcessor")
    square = {"height": size, "width": size}
    if short_side:
        make = lambda **o: on_pillow("CLIP")(size={"shortest_edge": size}, crop_size=square, **o)
    elif resample == Image.Resampling.BICUBIC:
        make = lambda **o: on_pillow("Siglip")(size=square, **o)
    else:
        make = lambda **o: on_pillow("ViT")(size=square, **o)
    numbers_of, pixels_of = make(), make(do_rescale=False, do_normalize=False)

    def processors(image):
        if image.height in (1, 3) or image.width in (1, 3):  # transformers takes such a side for the channels
            return formulas(image)
        run = lambda processor: processor(image, return_tensors="np")["pixel_values"][0]
        return run(pixels_of).transpose(1, 2, 0), run(numbers_of)

    return processors


def reference(profile, size):
    bicubic, bilinear = InterpolationMode.BICUBIC, InterpolationMode.BILINEAR
    return {
        "timm": lambda: torchvision_reference(size, int(size / 0.9), bicubic, HALF),
        "torchvision": lambda: torchvision_reference(size, size * 256 // 224, bilinear, IMAGENET),
        "hf": lambda: transformers_reference(size, False, Image.Resampling.BILINEAR, HALF),
        "clip": lambda: transformers_reference(size, True, Image.Resampling.BICUBIC, CLIP),
        "siglip": lambda: transformers_reference(size, False, Image.Resampling.BICUBIC, HALF),
    }[profile]()


def run_vitrine(program, picture, profile, size, stage, out):
    command = [program, "preprocess", str(picture), "--no-exif", "--profile", profile, "--size", str(size), "--stage", stage,
               "--out", str(out)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return np.load(out)


def ulps(a, b):
    """How many float32 numbers lie between, at most."""
    as_order = lambda x: np.where(x.view(np.int32) < 0, np.int64(-0x80000000) - x.view(np.int32), x.view(np.int32).astype(np.int64))
    a, b = np.ascontiguousarray(a, np.float32), np.ascontiguousarray(b, np.float32)
    return int(np.abs(as_order(a) - as_order(b)).max())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vitrine", default="build/release/vitrine")
    parser.add_argument("--out", type=pathlib.Path, help="where the made pictures stay")
    options = parser.parse_args()
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="vitrine-preprocess-"))
    folder = options.out or scratch
    folder.mkdir(parents=True, exist_ok=True)
    pictures = sorted((HERE.parent / "images" / "pictures").iterdir()) + make_pictures(folder)
    bilinear, bicubic, sizes = ["torchvision", "hf"], ["timm", "clip", "siglip"], [224, 37, 384]
    worst_bytes, worst_ulps, compared = 0, 0, 0
    for i, picture in enumerate(pictures):
        image = Image.open(picture).convert("RGB")
        line = []
        for profile, size in ((bilinear[i % 2], sizes[i % 3]), (bicubic[i % 3], sizes[i // 3 % 3])):
            pixels, numbers = reference(profile, size)(image)
            resized = run_vitrine(options.vitrine, picture, profile, size, "resized", scratch / "r.npy")
            assert resized.dtype == np.uint8 and resized.shape == pixels.shape, (resized.shape, pixels.shape)
            difference = int(np.abs(resized.astype(int) - pixels).max())
            normalized = run_vitrine(options.vitrine, picture, profile, size, "normalized", scratch / "n.npy")
            assert normalized.dtype == np.float32 and normalized.shape == (1, *numbers.shape), normalized.shape
            distance = ulps(normalized[0], numbers)
            worst_bytes, worst_ulps = max(worst_bytes, difference), max(worst_ulps, distance)
            compared += 1
            line.append(f"{profile} {size}: {difference}, {distance} ulp")
        print(f"{picture.name:36} {image.width:5} x {image.height:<5} {'; '.join(line)}", flush=True)
    print(f"{len(pictures)} pictures, {compared} comparisons: largest difference of resized bytes {worst_bytes}, "
          f"of numbers {worst_ulps} ulp")
    return 1 if worst_bytes or worst_ulps > 1 else 0


if __name__ == "__main__":
    sys.exit(main())
