#!/usr/bin/env python3
"""Writes the pictures of tests/data/pictures/golden/ and, beside each, what Pillow reads from it as a PPM file.

Needs NumPy, Pillow and libturbojpeg.so.0. A comment in the PPM file is the largest difference from Pillow that the test
allows: 0, or 1 where 16 bits or ink are rounded in another way.
"""
from __future__ import annotations

import ctypes
import io
import pathlib
import struct
import zlib

import numpy as np
from PIL import Image

OUT = pathlib.Path(__file__).parent / "golden"
WIDTH, HEIGHT = 19, 13
rng = np.random.default_rng(62)


def smooth(channels: int) -> np.ndarray:
    """A picture without symmetry that lossy formats keep."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    planes = [(13 * x + 5 * y) % 256, (3 * x + 17 * y + 40) % 256, (200 - 7 * x + 2 * y) % 256, (x * y) % 256]
    return np.stack(planes[:channels], -1).astype(np.uint8)


RGB = Image.fromarray(smooth(3))
GREY = Image.fromarray(smooth(1)[..., 0])
ALPHA = np.where((np.indices((HEIGHT, WIDTH)).sum(0) % 3) == 0, 0, 255).astype(np.uint8)
HALF = ((np.indices((HEIGHT, WIDTH)).sum(0) * 11) % 256).astype(np.uint8)
RGBA = Image.fromarray(np.dstack([smooth(3), ALPHA]))
RGBA_HALF = Image.fromarray(np.dstack([smooth(3), HALF]))


def on_black(rgba: np.ndarray) -> np.ndarray:
    share = rgba[..., 3:].astype(int)
    return ((2 * rgba[..., :3].astype(int) * share + 255) // 510).astype(np.uint8)


def write(name: str, data: bytes, expected: object = None, tolerance: int = 0) -> None:
    (OUT / name).write_bytes(data)
    if expected is None:
        with Image.open(io.BytesIO(data)) as image:
            expected = image.convert("RGB")
    pixels = np.asarray(expected)
    if pixels.ndim == 2:
        pixels = np.repeat(pixels[..., None], 3, -1)
    height, width = pixels.shape[:2]
    header = f"P6\n# {tolerance}\n{width} {height}\n255\n".encode()
    (OUT / f"{name}.ppm").write_bytes(header + pixels.astype(np.uint8).tobytes())


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def exif(orientation: int) -> bytes:
    data = Image.Exif()
    data[0x0112] = orientation
    return data.tobytes()


def turned(orientation: int, data: bytes) -> np.ndarray:
    """As seen. The turns are Pillow's own."""
    from PIL import ImageOps
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(ImageOps.exif_transpose(image).convert("RGB"))


def jpegs() -> None:
    plain = saved(RGB, "JPEG", quality=92)
    write("plain.jpg", plain)
    write("444.jpg", saved(RGB, "JPEG", quality=92, subsampling=0))
    write("422.jpg", saved(RGB, "JPEG", quality=92, subsampling=1))
    write("grey.jpg", saved(GREY, "JPEG", quality=92))
    write("progressive.jpg", saved(RGB, "JPEG", quality=92, progressive=True))
    write("restarts.jpg", saved(RGB, "JPEG", quality=92, restart_marker_blocks=1))
    write("rgb.jpg", saved(RGB, "JPEG", quality=92, keep_rgb=True))
    ink = Image.fromarray(smooth(4), "CMYK")
    write("cmyk.jpg", saved(ink, "JPEG", quality=95))
    write("ycck.jpg", ycck(255 - smooth(4)))
    # Irregular ends, which every image program reads.
    progressive = saved(RGB, "JPEG", quality=92, progressive=True)
    for name, data in (("plain", plain), ("progressive", progressive)):
        pixels = Image.open(io.BytesIO(data)).convert("RGB")
        write(f"{name}-zeros.jpg", data[:-2] + bytes(20) + data[-2:], pixels)
        write(f"{name}-stray.jpg", data[:-2] + b"\xab\xcd\x01" * 12 + data[-2:], pixels)
        write(f"{name}-no-end.jpg", data[:-2], pixels)
        write(f"{name}-trailer.jpg", data + b"a trailer", pixels)
    for orientation in range(1, 9):
        data = saved(RGB, "JPEG", quality=92, exif=exif(orientation))
        write(f"turned-{orientation}.jpg", data, turned(orientation, data))


def ycck(ink: np.ndarray) -> bytes:
    """TurboJPEG stores four inks as YCCK."""
    library = ctypes.CDLL("libturbojpeg.so.0")
    library.tjInitCompress.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(library.tjInitCompress())
    data, size = ctypes.POINTER(ctypes.c_ubyte)(), ctypes.c_ulong(0)
    pixels = np.ascontiguousarray(ink)
    cmyk, s444 = 11, 0
    status = library.tjCompress2(handle, pixels.ctypes.data_as(ctypes.c_void_p), WIDTH, 0, HEIGHT, cmyk, ctypes.byref(data),
                                 ctypes.byref(size), s444, 95, 0)
    assert status == 0
    return ctypes.string_at(data, size.value)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(bits: int, colour: int, rows: list[bytes], *more: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, bits, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(more) + chunk(
        b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) + chunk(b"IEND", b"")


def packed(values: np.ndarray, bits: int) -> list[bytes]:
    unpacked = (values[..., None] >> np.arange(bits - 1, -1, -1)) & 1
    return [np.packbits(row.reshape(-1).astype(np.uint8)).tobytes() for row in unpacked]


def pngs() -> None:
    grey, rgb = smooth(1)[..., 0], smooth(3)
    for bits in (1, 2, 4):
        values = grey >> (8 - bits)
        write(f"grey-{bits}.png", png(bits, 0, packed(values, bits)), values.astype(int) * 255 // (2**bits - 1))
        palette = rng.integers(0, 256, (2**bits, 3), dtype=np.uint8)
        write(f"palette-{bits}.png", png(bits, 3, packed(values, bits), chunk(b"PLTE", palette.tobytes())), palette[values])
    write("grey.png", saved(GREY, "PNG"))
    write("rgb.png", saved(RGB, "PNG"))
    write("palette.png", saved(RGB.quantize(100), "PNG"))
    clear = chunk(b"tRNS", bytes([0, 255, 0, 255]))
    palette = rng.integers(0, 256, (4, 3), dtype=np.uint8)
    seen = palette.copy()
    seen[[0, 2]] = 0
    write("palette-clear.png", png(2, 3, packed(grey >> 6, 2), chunk(b"PLTE", palette.tobytes()), clear), seen[grey >> 6])
    write("rgba.png", saved(RGBA, "PNG"), on_black(np.asarray(RGBA)))
    grey_alpha = Image.fromarray(np.dstack([grey, ALPHA]), "LA")
    write("grey-alpha.png", saved(grey_alpha, "PNG"), np.where(ALPHA == 0, 0, grey))
    deep = rng.integers(0, 65536, (HEIGHT, WIDTH, 3)).astype(">u2")
    write("rgb-16.png", png(16, 2, [row.tobytes() for row in deep]), deep >> 8, tolerance=1)
    write("grey-16.png", png(16, 0, [row[:, 0].tobytes() for row in deep]), deep[..., 0] >> 8, tolerance=1)
    data = saved(RGB, "PNG", exif=exif(6))
    write("turned-6.png", data, turned(6, data))
    write("trailer.png", saved(RGB, "PNG") + b"a trailer")


def webps() -> None:
    write("lossy.webp", saved(RGB, "WEBP", quality=90))
    write("lossless.webp", saved(RGB, "WEBP", lossless=True))
    write("alpha.webp", saved(RGBA_HALF, "WEBP", lossless=True, exact=True), on_black(np.asarray(RGBA_HALF)))
    write("animated.webp", saved(RGB, "WEBP", lossless=True, save_all=True, append_images=[GREY.convert("RGB")]), RGB)
    data = saved(RGB, "WEBP", lossless=True, exif=exif(8))
    write("turned-8.webp", data, turned(8, data))


def gifs() -> None:
    colours = RGB.quantize(64)
    write("plain.gif", saved(colours, "GIF", interlace=0))
    write("interlaced.gif", saved(colours, "GIF", interlace=1))
    write("animated.gif", saved(colours, "GIF", save_all=True, append_images=[RGB.rotate(180).quantize(64)]), colours.convert("RGB"))
    clear = np.asarray(colours.convert("RGB")).copy()
    clear[np.asarray(colours) == 5] = 0
    write("clear.gif", saved(colours, "GIF", transparency=5, optimize=False), clear)


def bmp(bits: int, compression: int, data: bytes, palette: bytes = b"", masks: bytes = b"", height: int = HEIGHT) -> bytes:
    begin = 14 + 40 + len(masks) + len(palette)
    header = struct.pack("<IiiHHIIiiII", 40, WIDTH, height, 1, bits, compression, len(data), 0, 0, len(palette) // 4, 0)
    return b"BM" + struct.pack("<IHHI", begin + len(data), 0, 0, begin) + header + masks + palette + data


def padded(rows: list[bytes]) -> bytes:
    return b"".join(row + bytes(-len(row) % 4) for row in rows)


def bmps() -> None:
    for name, image in (("1", GREY.convert("1")), ("8", RGB.quantize(200)), ("24", RGB), ("grey", GREY)):
        write(f"{name}.bmp", saved(image, "BMP"))
    grey = smooth(1)[..., 0]
    palette = rng.integers(0, 256, (16, 3), dtype=np.uint8)
    colours = b"".join(bytes([b, g, r, 0]) for r, g, b in palette)
    four = grey >> 4
    write("4.bmp", bmp(4, 0, padded(packed(four, 4)[::-1]), colours), palette[four])
    write("from-top.bmp", bmp(4, 0, padded(packed(four, 4)), colours, height=-HEIGHT), palette[four])
    core = b"BM" + struct.pack("<IHHI", 0, 0, 0, 26 + 48) + struct.pack("<IHHHH", 12, WIDTH, HEIGHT, 1, 4)
    core += b"".join(bytes([b, g, r]) for r, g, b in palette) + padded(packed(four, 4)[::-1])
    write("os2.bmp", core, palette[four])
    runs = b"".join(b"".join(bytes([1, value]) for value in row) + b"\0\0" for row in four[::-1]) + b"\0\1"
    write("rle8.bmp", bmp(8, 1, runs, colours), palette[four])
    rows = [b"\0" + bytes([WIDTH]) + packed(row[None], 4)[0] for row in four[::-1]]
    literal = b"".join(row + bytes(len(row) % 2) + b"\0\0" for row in rows) + b"\0\1"
    write("rle4.bmp", bmp(4, 2, literal, colours), palette[four])
    words = rng.integers(0, 65536, (HEIGHT, WIDTH)).astype("<u2")
    fives = np.dstack([(words >> shift & 31).astype(int) * 255 // 31 for shift in (10, 5, 0)])
    write("16.bmp", bmp(16, 0, padded([row.tobytes() for row in words[::-1]])), fives)
    masked = np.dstack([(words >> 11).astype(int) * 255 // 31, (words >> 5 & 63).astype(int) * 255 // 63,
                        (words & 31).astype(int) * 255 // 31])
    masks = struct.pack("<III", 0xF800, 0x07E0, 0x001F)
    write("16-masks.bmp", bmp(16, 3, padded([row.tobytes() for row in words[::-1]]), b"", masks), masked)
    rgb = smooth(3)
    fours = np.dstack([rgb[..., ::-1], np.zeros((HEIGHT, WIDTH, 1), np.uint8)])
    write("32.bmp", bmp(32, 0, fours[::-1].tobytes()), rgb)


def tiffs() -> None:
    for name in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits"):
        write(f"{name.removeprefix('tiff_')}.tiff", saved(RGB, "TIFF", compression=name))
    write("grey.tiff", saved(GREY, "TIFF"))
    write("1.tiff", saved(GREY.convert("1"), "TIFF"))
    write("group4.tiff", saved(GREY.convert("1"), "TIFF", compression="group4"))
    write("palette.tiff", saved(RGB.quantize(100), "TIFF"))
    ink = Image.fromarray(smooth(4), "CMYK")
    write("cmyk.tiff", saved(ink, "TIFF"), tolerance=1)
    write("rgba.tiff", saved(RGBA_HALF, "TIFF"), on_black(np.asarray(RGBA_HALF)), tolerance=1)
    deep = rng.integers(0, 65536, (HEIGHT, WIDTH)).astype(np.uint16)
    write("grey-16.tiff", saved(Image.fromarray(deep), "TIFF"), deep >> 8, tolerance=1)
    data = saved(RGB, "TIFF", tiffinfo={274: 7})
    with Image.open(io.BytesIO(data)) as image:
        write("turned-7.tiff", data, np.asarray(RGB.transpose(Image.Transpose.TRANSVERSE)))


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    for old in OUT.iterdir():
        old.unlink()
    for kind in (jpegs, pngs, webps, gifs, bmps, tiffs):
        kind()
    print(f"{len(list(OUT.iterdir())) // 2} pictures in {OUT}")
