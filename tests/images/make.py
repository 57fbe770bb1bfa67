#!/usr/bin/env python3
"""Writes pictures/ and manifest.json: pictures of every kind that is read, and what Pillow makes of each.

    PATH=$PATH:DIR python3 tests/images/make.py      # DIR: cjpeg and jpegtran, if they are elsewhere

Needs Pillow 11, NumPy, and cjpeg and jpegtran (libjpeg-turbo-progs). Every picture is seeded by its own
name: adding one leaves the others alone. Run it after a change and commit what it writes.

In the manifest, `pictures` has for each file: its size; CRC-32s of convert("RGB")'s bytes, sixteen bands of rows
(row 16*y//height tells the band), so that a difference has a place; for the smallest also the bytes;
`turned` after ImageOps.exif_transpose, where that differs; `white`, where that differs: of convert("RGB"), laid on white
where something is transparent in it still, as transformers 5's convert_to_rgb does; `grey`, one CRC-32 of convert("L").
`truncations` has three files and the lengths of those beginnings (every seventh, and the last twenty)
that Pillow still takes for the whole picture; it refuses all others.
"""

import io
import json
import shutil
import struct
import subprocess
import warnings
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

HERE = Path(__file__).resolve().parent
PICTURES = HERE / "pictures"
BANDS = 16
warnings.simplefilter("ignore")
manifest = []


# ---- contents ------------------------------------------------------------------------------------

def scene(name, width, height, channels=3, noise=6.0, top=255):
    """Slopes, waves, a disc, hard edges and a little noise: [height, width, channels] of 0 to top."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    x, y = x / max(width, 24), y / max(height, 24)
    planes = []
    for channel in range(channels):
        a, b, c, d = random.uniform(0.2, 1, 4)
        plane = a * x + b * y + 0.25 * np.sin(13 * c * x + 5 * y + channel) + 0.2 * np.cos(17 * d * y)
        plane += np.where((x - a) ** 2 + (y - b) ** 2 < 0.06, 0.5, 0)
        plane += np.where((np.floor(x * 9) + np.floor(y * 7)) % 5 == channel, -0.3, 0)
        planes.append(plane)
    values = np.stack(planes, -1)
    values = (values - values.min()) / max(np.ptp(values), 1e-9) * top * 1.1 - top * 0.05
    if noise:
        values += random.normal(0, noise * top / 255, values.shape)
    return np.clip(np.rint(values), 0, top).astype(np.uint16 if top > 255 else np.uint8)


def image(name, width, height, mode="RGB", **options):
    channels = len(Image.new(mode, (1, 1)).getbands())
    values = scene(name, width, height, channels, **options)
    return Image.fromarray(values[..., 0] if channels == 1 else values, mode)


# ---- writing -------------------------------------------------------------------------------------

def digest(picture):
    rows = np.asarray(picture)
    bounds = [-(-band * len(rows) // BANDS) for band in range(BANDS + 1)]
    return [zlib.crc32(rows[a:b].tobytes()) for a, b in zip(bounds, bounds[1:])]


def put(name, content, covers):
    """Writes a picture and notes what Pillow makes of it. The name's suffix need not be its format's."""
    path = PICTURES / name
    path.write_bytes(content)
    with Image.open(path) as opened:
        rgb = opened.convert("RGB")
        grey = rgb.convert("L")
        row = {"file": name, "covers": covers, "width": rgb.width, "height": rgb.height, "rgb": digest(rgb),
               "grey": zlib.crc32(grey.tobytes())}
        if rgb.width * rgb.height <= 36:
            row["bytes"] = rgb.tobytes().hex()
    with Image.open(path) as opened:
        turned = ImageOps.exif_transpose(opened).convert("RGB")
        if digest(turned) != digest(rgb) or turned.size != rgb.size:
            row["turned"] = {"width": turned.width, "height": turned.height, "rgb": digest(turned)}
    if rgb.info.get("transparency") is not None:
        clear = rgb.convert("RGBA")
        white = digest(Image.alpha_composite(Image.new("RGBA", rgb.size, "white"), clear).convert("RGB"))
        if white != row["rgb"]:
            row["white"] = {"width": rgb.width, "height": rgb.height, "rgb": white}
    manifest.append(row)


def saved(picture, kind, **options):
    stream = io.BytesIO()
    picture.save(stream, kind, **options)
    return stream.getvalue()


def run(*command, stdin):
    return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, check=True).stdout


def orientation(value):
    exif = Image.Exif()
    exif[0x0112] = value
    return exif


# ---- JPEG ----------------------------------------------------------------------------------------

def segments(jpeg):
    """The segments up to the first pixels, and the rest."""
    at, parts = 2, []
    while True:
        end = at + 2 + struct.unpack(">H", jpeg[at + 2:at + 4])[0]
        parts.append(jpeg[at:end])
        at = end
        if parts[-1][1] == 0xDA:
            return parts, jpeg[at:]


def joined(parts, rest):
    return b"\xff\xd8" + b"".join(parts) + rest


def with_adobe_transform(jpeg, transform):
    parts, rest = segments(jpeg)
    adobe = b"\xff\xee\x00\x0eAdobe\x00\x64\0\0\0\0" + bytes([transform])
    kept = [part for part in parts if part[1] not in (0xE0, 0xEE)]
    return joined([adobe] + kept, rest)


def jpegs():
    def jpeg(name, covers, width=61, height=45, mode="RGB", noise=6.0, **options):
        content = saved(image(name, width, height, mode, noise=noise), "JPEG", **options)
        put(name + ".jpg", content, covers)
        return content

    jpeg("jpeg_444", "colors at full size", subsampling=0, quality=90)
    jpeg("jpeg_422", "colors at half width", subsampling=1, quality=85)
    jpeg("jpeg_420", "colors at half width and height", subsampling=2, quality=85)
    jpeg("jpeg_1x1", "a single pixel", 1, 1)
    jpeg("jpeg_7x1", "a row", 7, 1, subsampling=2)
    jpeg("jpeg_1x7", "a column", 1, 7, subsampling=1)
    jpeg("jpeg_8x8", "one block exactly", 8, 8, subsampling=0)
    jpeg("jpeg_17x33", "one more than whole blocks", 17, 33, subsampling=2)
    jpeg("jpeg_grey", "one component", mode="L")
    jpeg("jpeg_progressive", "several scans", 119, 73, progressive=True)
    jpeg("jpeg_progressive_grey", "several scans, one component", mode="L", progressive=True)
    jpeg("jpeg_quality_1", "quantization that reaches 255", quality=1)
    jpeg("jpeg_quality_100", "no quantization, values that clip", noise=60.0, quality=100, subsampling=0)
    jpeg("jpeg_restart", "restart markers", restart_marker_blocks=2)
    jpeg("jpeg_rgb", "RGB stored as such, component identifiers R, G, B", keep_rgb=True)
    jpeg("jpeg_224", "the usual size", 224, 224, subsampling=2)
    jpeg("jpeg_403x301", "odd width and height", 403, 301, quality=80)
    jpeg("jpeg_1023x767", "a megapixel, nearly", 1023, 767, noise=2.0, quality=60)
    jpeg("jpeg_2003x3", "wide", 2003, 3)
    jpeg("jpeg_3x2003", "high", 3, 2003)
    jpeg("jpeg_4000x3000", "a camera's size", 4000, 3000, noise=0, quality=40)
    cmyk = jpeg("jpeg_cmyk", "CMYK, inverted as Adobe does", 35, 29, "CMYK")
    parts, rest = segments(cmyk)
    put("jpeg_cmyk_plain.jpg", joined([part for part in parts if part[1] != 0xEE], rest),
        "CMYK without Adobe's marker: inverted all the same")
    put("jpeg_ycck.jpg", with_adobe_transform(cmyk, 2), "YCCK")
    rgb = saved(image("jpeg_adobe_rgb", 41, 23), "JPEG", subsampling=0)
    put("jpeg_adobe_rgb.jpg", with_adobe_transform(rgb, 0), "three components that Adobe's marker calls RGB")
    put("jpeg_adobe_ycc.jpg", with_adobe_transform(rgb, 1), "three components that Adobe's marker calls YCbCr")

    bitmap = saved(image("jpeg_cjpeg", 61, 45), "PPM")
    put("jpeg_440.jpg", run("cjpeg", "-sample", "1x2", stdin=bitmap), "colors at half height")
    put("jpeg_411.jpg", run("cjpeg", "-sample", "4x1", stdin=bitmap), "colors at a quarter of the width")
    put("jpeg_mixed_sampling.jpg", run("cjpeg", "-sample", "2x2,1x2,2x1", stdin=bitmap), "each color sampled differently")
    put("jpeg_arithmetic.jpg", run("cjpeg", "-arithmetic", stdin=bitmap), "arithmetic coding")
    put("jpeg_arithmetic_progressive.jpg", run("jpegtran", "-arithmetic", "-progressive", stdin=rgb),
        "arithmetic coding in several scans")
    put("jpeg_trailing.jpg", rgb + b"and something else" * 9, "bytes after the end")
    put("jpeg_named_png.png", rgb, "a name that lies")
    parts, rest = segments(rgb)
    put("jpeg_padded.jpg", joined([parts[0], b"\xff\xff\xff", *parts[1:]], rest), "fill bytes between segments")
    put("jpeg_comment.jpg", joined([parts[0], b"\xff\xfe\x00\x07hello", b"\xff\xe2\x00\x10ICC_PROFILE\0\x01\x01",
                                    *parts[1:]], rest), "a comment, and a color profile that nobody applies")
    for value in range(2, 9):
        jpeg(f"jpeg_exif_{value}", f"EXIF orientation {value}", 21, 14, exif=orientation(value))
    frames = [image("jpeg_mpo", 33, 21), image("jpeg_mpo_2", 33, 21)]
    put("jpeg_mpo.jpg", saved(frames[0], "MPO", save_all=True, append_images=frames[1:]), "two pictures in one file")


# ---- PNG -----------------------------------------------------------------------------------------

ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def chunk(kind, content, checksum=None):
    crc = zlib.crc32(kind + content) if checksum is None else checksum
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", crc)


def packed(values, depth):
    """Rows of samples as bytes: [rows, samples] to a list of bytes."""
    if depth == 16:
        return [row.astype(">u2").tobytes() for row in values]
    if depth == 8:
        return [row.astype(np.uint8).tobytes() for row in values]
    bits = (values[..., None] >> np.arange(depth - 1, -1, -1)) & 1
    return [np.packbits(row.reshape(-1).astype(np.uint8)).tobytes() for row in bits]


def filtered(rows, step):
    """The five filters in turn."""
    before, result = bytes(len(rows[0])) if rows else b"", []
    for number, row in enumerate(rows):
        kind = number % 5
        now, up = np.frombuffer(row, np.uint8).astype(int), np.frombuffer(before, np.uint8).astype(int)
        left, corner = np.r_[np.zeros(step, int), now[:-step]][:len(now)], np.r_[np.zeros(step, int), up[:-step]][:len(now)]
        guess = left + up - corner
        distances = np.stack([abs(guess - left), abs(guess - up), abs(guess - corner)])
        paeth = np.choose(np.argmin(distances, 0), [left, up, corner])
        took = [np.zeros_like(now), left, up, (left + up) // 2, paeth][kind]
        result.append(bytes([kind]) + ((now - took) % 256).astype(np.uint8).tobytes())
        before = row
    return b"".join(result)


def png(values, depth, color, interlace=False, before=b"", after=b"", part=None, end=True, wrong_checksum=False):
    """A PNG of samples [height, width, channels]; `before` and `after` are chunks around the pixels."""
    height, width, _ = values.shape
    step = max(1, depth * CHANNELS[color] // 8)
    data = b""
    for left, top, right_step, down_step in ADAM7 if interlace else [(0, 0, 1, 1)]:
        small = values[top::down_step, left::right_step]
        if small.size:
            data += filtered(packed(small.reshape(len(small), -1), depth), step)
    data = zlib.compress(data, 9)
    parts = [data[i:i + part] for i in range(0, len(data), part)] if part else [data]
    body = b"".join(chunk(b"IDAT", piece, 1 if wrong_checksum else None) for piece in parts)
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, int(interlace))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + before + body + after +
            (chunk(b"IEND", b"") if end else b""))


def frame_control(number, width, height, left, top):
    return chunk(b"fcTL", struct.pack(">IIIIIHHBB", number, width, height, left, top, 1, 10, 0, 0))


def pngs():
    def make(name, covers, depth, color, width=31, height=23, top=None, **options):
        top = 2 ** depth - 1 if top is None else top
        values = scene(name, width, height, CHANNELS[color], top=top).astype(int)
        put(name + ".png", png(values, depth, color, **options), covers)

    colors = scene("palette", 256, 1).reshape(-1, 3)
    palette = {depth: chunk(b"PLTE", colors[:2 ** depth].tobytes()) for depth in (1, 2, 4, 8)}
    for depth in (1, 2, 4, 8, 16):
        make(f"png_grey_{depth}", f"grey, {depth} bits", depth, 0)
        make(f"png_grey_{depth}_interlaced", f"grey, {depth} bits, interlaced", depth, 0, interlace=True)
    for depth in (1, 2, 4, 8):
        make(f"png_palette_{depth}", f"palette, {depth} bits", depth, 3, before=palette[depth])
        make(f"png_palette_{depth}_interlaced", f"palette, {depth} bits, interlaced", depth, 3, before=palette[depth],
             interlace=True)
    for color, word in ((2, "rgb"), (4, "grey_alpha"), (6, "rgb_alpha")):
        for depth in (8, 16):
            make(f"png_{word}_{depth}", f"{word.replace('_', ' and ')}, {depth} bits", depth, color)
            make(f"png_{word}_{depth}_interlaced", f"{word.replace('_', ' and ')}, {depth} bits, interlaced", depth, color,
                 interlace=True)
    make("png_grey_16_dark", "16-bit grey around 255, where it clips", 16, 0, top=400)
    make("png_palette_transparent", "palette with one transparent entry", 8, 3,
         before=palette[8] + chunk(b"tRNS", b"\xff\xff\0"))
    make("png_palette_alpha", "palette with an alpha value an entry", 4, 3, before=palette[4] + chunk(b"tRNS", bytes(range(0, 160, 10))))
    make("png_palette_short", "indices that the palette does not have", 4, 3, before=chunk(b"PLTE", colors[:9].tobytes()))
    make("png_palette_missing", "no palette at all", 4, 3)
    make("png_grey_transparent", "grey with a transparent value", 8, 0, before=chunk(b"tRNS", b"\0\x80"))
    make("png_rgb_transparent", "RGB with a transparent color, and a palette as a hint", 8, 2,
         before=palette[2] + chunk(b"tRNS", b"\0\1\0\2\0\3"))
    for name, covers, depth, color, sample in (("png_grey_1_clear", "one bit, black is transparent", 1, 0, [0]),
                                               ("png_grey_1_clear_white", "one bit, white is transparent", 1, 0, [1]),
                                               ("png_grey_2_clear", "two bits, one level is transparent", 2, 0, [1]),
                                               ("png_grey_2_clear_black", "two bits, black is transparent", 2, 0, [0]),
                                               ("png_grey_16_clear", "16-bit grey with a transparent value", 16, 0, [0x1200])):
        make(name, covers, depth, color, before=chunk(b"tRNS", struct.pack(f">{len(sample)}H", *sample)))
    for depth in (8, 16):
        spot = scene(f"png_rgb_{depth}_clear", 31, 23, 3, top=2 ** depth - 1)[5, 7].astype(int)
        make(f"png_rgb_{depth}_clear", f"{depth} bits, a color that is there is transparent", depth, 2,
             before=chunk(b"tRNS", struct.pack(">3H", *spot)))
    make("png_palette_4_clear", "palette of 16 with one transparent entry, interlaced", 4, 3, interlace=True,
         before=palette[4] + chunk(b"tRNS", b"\xff" * 5 + b"\0"))
    make("png_palette_4_clear_two", "palette with two transparent entries, which Pillow drops", 4, 3,
         before=palette[4] + chunk(b"tRNS", b"\0\xff\0"))
    make("png_gamma", "gamma and chromaticities, which nobody applies", 8, 2,
         before=chunk(b"gAMA", struct.pack(">I", 100000)) + chunk(b"sRGB", b"\0"))
    make("png_1x1", "a single pixel", 8, 6, 1, 1)
    make("png_1x1_interlaced", "a single pixel, interlaced", 1, 0, 1, 1, interlace=True)
    make("png_3x5_interlaced", "passes without pixels", 8, 2, 3, 5, interlace=True)
    make("png_5x3_interlaced", "passes without pixels, other way", 4, 0, 5, 3, interlace=True)
    make("png_2x3", "small enough to read", 8, 2, 2, 3)
    make("png_many_chunks", "pixels in chunks of five bytes, and empty ones", 8, 2, part=5)
    make("png_checksums", "wrong checksums of the pixels, which Pillow does not look at", 8, 2, wrong_checksum=True, part=100)
    make("png_no_end", "no IEND", 8, 2, end=False)
    make("png_trailing_text", "text after the pixels", 8, 2, after=chunk(b"tEXt", b"Comment\0later"))
    make("png_exif", "EXIF orientation 6 before the pixels", 8, 2, before=chunk(b"eXIf", orientation(6).tobytes()[6:]))
    make("png_exif_late", "EXIF orientation 8 after them", 8, 2, after=chunk(b"eXIf", orientation(8).tobytes()[6:]))
    make("png_977x641", "a prime size", 8, 2, 97, 641)
    make("png_3x2003", "high", 8, 0, 3, 2003)
    values = (np.add.outer(np.arange(3000) // 250, np.arange(4000) // 250) % 16)[..., None]
    put("png_4000x3000.png", png(values, 4, 3, before=palette[4]), "a camera's size")

    values = scene("png_animated", 20, 16, 4).astype(int)
    first = zlib.compress(b"".join(b"\0" + row.astype(np.uint8).tobytes() for row in values))
    control = chunk(b"acTL", struct.pack(">II", 2, 0))
    second = frame_control(1, 20, 16, 0, 0) + chunk(b"fdAT", struct.pack(">I", 2) + first)
    put("png_animated.png", png(values, 8, 6, before=control + frame_control(0, 20, 16, 0, 0), after=second),
        "an animation that begins with the picture itself")
    put("png_animated_hidden.png", png(values, 8, 6, before=control, after=frame_control(0, 20, 16, 0, 0) + second),
        "a picture that is no part of its animation")
    part = scene("png_animated_part", 7, 5, 1, top=15).astype(int)
    inside = png(part, 4, 3, before=palette[4] + control + frame_control(0, 7, 5, 3, 2))
    header = struct.pack(">IIBBBBB", 13, 11, 4, 3, 0, 0, 0)
    put("png_animated_part.png", inside[:8] + chunk(b"IHDR", header) + inside[8 + 25:], "a first frame that is smaller than the picture")


# ---- WebP ----------------------------------------------------------------------------------------

def webps():
    def webp(name, covers, width=61, height=45, mode="RGB", noise=6.0, **options):
        content = saved(image(name, width, height, mode, noise=noise), "WEBP", **options)
        put(name + ".webp", content, covers)
        return content

    webp("webp_lossy", "lossy", quality=80)
    webp("webp_lossless", "lossless", lossless=True)
    webp("webp_lossy_alpha", "lossy with alpha", mode="RGBA", quality=70)
    webp("webp_lossless_alpha", "lossless with alpha", mode="RGBA", lossless=True)
    webp("webp_lossless_exact", "lossless with colors under transparency", mode="RGBA", lossless=True, exact=True)
    exact = bytearray((PICTURES / "webp_lossless_exact.webp").read_bytes())
    assert exact[12:16] == b"VP8L"
    exact[24] &= ~0x10
    put("webp_lossless_unsaid.webp", bytes(exact), "lossless with alpha that its header denies")
    webp("webp_quality_0", "coarse", quality=0)
    webp("webp_1x1", "a single pixel", 1, 1, lossless=True)
    webp("webp_1x1_lossy", "a single pixel, lossy", 1, 1)
    webp("webp_5x7", "odd and small, lossy", 5, 7, quality=90)
    webp("webp_2003x3", "wide", 2003, 3, quality=60)
    webp("webp_517x389", "a usual size", 517, 389, noise=3.0, quality=70)
    webp("webp_exif", "EXIF orientation 5", 21, 14, exif=orientation(5))
    frames = [image(f"webp_animated_{i}", 40, 30, "RGBA", noise=0) for i in range(3)]
    put("webp_animated.webp", saved(frames[0], "WEBP", save_all=True, append_images=frames[1:], duration=40), "an animation")
    put("webp_animated_opaque.webp", saved(frames[0].convert("RGB"), "WEBP", save_all=True, duration=40, lossless=True,
                                           append_images=[frame.convert("RGB") for frame in frames[1:]]),
        "an animation without alpha")
    still = saved(image("webp_animated_part", 12, 10, "RGB"), "WEBP", lossless=True)[12:]
    frame = struct.pack("<HBHBHBHBHBB", 2, 0, 3, 0, 11, 0, 9, 0, 40, 0, 0) + still
    body = (b"VP8X" + struct.pack("<IIHBHB", 10, 0x12, 31, 0, 23, 0) + b"ANIM" + struct.pack("<IIH", 6, 0xFF336699, 0) +
            b"ANMF" + struct.pack("<I", len(frame)) + frame)
    put("webp_animated_part.webp", b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body,
        "a first frame that is smaller than the picture")


# ---- truncations ---------------------------------------------------------------------------------

def accepted(content, whole):
    """Whether Pillow takes these bytes for a picture; that it then is the whole one is checked."""
    try:
        with Image.open(io.BytesIO(content)) as opened:
            found = opened.convert("RGB")
    except Exception:
        return False
    assert digest(found) == digest(whole)
    return True


def truncations():
    rows = []
    for name in ("jpeg_420.jpg", "png_rgb_8.png", "webp_lossy.webp"):
        content = (PICTURES / name).read_bytes()
        with Image.open(io.BytesIO(content)) as opened:
            whole = opened.convert("RGB")
        lengths = sorted({*range(0, len(content), 7), *range(len(content) - 20, len(content))})
        rows.append({"file": name, "lengths": len(lengths),
                     "whole": [length for length in lengths if accepted(content[:length], whole)]})
    return rows


def main():
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir()
    jpegs()
    pngs()
    webps()
    rows = ",\n".join(json.dumps(row) for row in manifest)
    cut = ",\n".join(json.dumps(row) for row in truncations())
    (HERE / "manifest.json").write_text(f'{{"pictures": [\n{rows}\n],\n"truncations": [\n{cut}\n]}}\n')
    print(len(manifest), "pictures,", sum(path.stat().st_size for path in PICTURES.iterdir()), "bytes")


if __name__ == "__main__":
    main()
