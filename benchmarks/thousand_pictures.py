"""A thousand pictures of mixed sizes, formats and modes, ten of them broken in ten ways: one `bacs adapt`.

    python benchmarks/thousand_pictures.py --count 1000

Makes the pictures and an ensemble of two members that take 32 and 24 pixels, runs the command by `vanilla` and by
`bacs`, and checks every row. What is expected comes from the pixels as they were made (or, where a format loses some,
as Pillow reads them), cut and resized here, and from plain torch and SciPy. Exit code 1 if anything differs.
"""

import argparse
import contextlib
import io
import json
import os
import resource
import struct
import sys
import tempfile
import time
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from PIL import Image
from scipy.stats import entropy

import bacs
from bacs import cli
from bacs.parameters import read
from bacs.posteriors import swag_diag

SIZES = (32, 24)
MEAN, STD = np.array([0.48, 0.45, 0.41]), np.array([0.23, 0.22, 0.24])
CLASSES = ["cat", "dog", "eel", "fox", "gnu"]


def colours(rng, height, width):
    """A picture of soft blobs, unlike any other."""
    coarse = rng.integers(0, 256, (rng.integers(2, 6), rng.integers(2, 6), 3), dtype=np.uint8)
    return np.array(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC))


def make(folder, kind, number, rng):
    """Writes one good picture; its path, and its pixels as far as the format keeps them."""
    height, width = (int(side) for side in rng.integers(16, 200, 2))
    rgb = colours(rng, height, width)
    grey = rgb[..., 0]
    threefold = np.stack([grey] * 3, axis=-1)
    hidden = rng.random((height, width, 1)) < 0.3
    alpha = np.where(hidden, 0, 255).astype(np.uint8)
    path = folder / f"camera-{number % 7}" / f"{number:04}.{kind.split()[0]}"
    path.parent.mkdir(exist_ok=True)
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    animation = {"save_all": True, "append_images": [Image.fromarray(255 - rgb)]}
    picture, options, kept = {
        "png": (rgb, {}, rgb),
        "png grey": (grey, {}, threefold),
        "png rgba": (np.concatenate([rgb, alpha], axis=-1), {}, np.where(hidden, 255, rgb)),
        "png grey alpha": (np.concatenate([rgb[..., :1], alpha], -1), {}, np.where(hidden, 255, threefold)),
        "png palette": (Image.fromarray(rgb).quantize(200), {}, None),
        "png 16-bit": ((grey * 256.0 + rng.integers(0, 256)).astype(np.uint16), {}, threefold),
        "png turned": (rgb[::-1, ::-1], {"exif": exif}, rgb),
        "png black and white": (Image.fromarray(grey).convert("1"), {}, None),
        "jpg": (rgb, {"quality": 90}, None),
        "jpg grey": (grey, {}, None),
        "jpg cmyk": (Image.fromarray(rgb).convert("CMYK"), {}, None),
        "JPEG progressive": (rgb, {"progressive": True}, None),
        "bmp": (rgb, {}, rgb),
        "webp": (rgb, {"lossless": True}, rgb),
        "webp lossy": (rgb, {}, None),
        "tiff": (rgb, {"compression": "tiff_lzw"}, rgb),
        "tif 16-bit": (grey.astype(np.uint16) * 256, {}, threefold),
        "gif": (rgb, {}, None),
        "gif animated": (rgb, animation, None),
        "ppm": (rgb, {}, rgb),
    }[kind]
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(np.ascontiguousarray(picture))
    image.save(path, **options)
    if kept is None:
        with Image.open(path) as lossy:
            kept = np.array(lossy.convert("RGB"))
    return path, kept.astype(np.uint8)


KINDS = (
    *("png", "png grey", "png rgba", "png grey alpha", "png palette", "png 16-bit", "png turned"),
    *("png black and white", "jpg", "jpg grey", "jpg cmyk", "JPEG progressive", "bmp", "webp", "webp lossy"),
    *("tiff", "tif 16-bit", "gif", "gif animated", "ppm"),
)


def make_broken(folder, rng):
    """Ten that are no pictures, each in its own way; what the reason must begin with, by path."""

    def encoded(pixels, form):
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, form)
        return buffer.getvalue()

    def png(width, height):
        def chunk(kind, content):
            return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

        header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")

    noise = rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)
    flipped = bytearray(encoded(noise, "PNG"))
    flipped[len(flipped) // 2] ^= 255
    files = {
        "truncated.jpg": (encoded(noise, "JPEG")[:1500], "damaged"),
        "empty.png": (b"", "empty"),
        "random.bmp": (rng.bytes(700), "not a picture"),
        "note.jpg": (b"remember to take pictures\n", "not a picture"),
        "flipped.png": (bytes(flipped), "damaged"),
        "no-pixels.png": (png(0, 7), "not a picture"),
        "bomb.png": (png(40_000, 40_000), "too large to be decoded safely"),
        "float.tif": (encoded(np.ones((9, 9), np.float32), "TIFF"), "32 bits per pixel"),
    }
    broken = {folder / name: reason for name, (_, reason) in files.items()}
    for name, (data, _) in files.items():
        (folder / name).write_bytes(data)
    (folder / "folder.png").mkdir()
    broken[folder / "folder.png"] = "a folder, not a picture"
    if os.geteuid() == 0:  # to root nothing is denied
        os.mkfifo(folder / "pipe.png")
        broken[folder / "pipe.png"] = "not a regular file"
    else:
        (folder / "denied.png").write_bytes(encoded(noise, "PNG"))
        (folder / "denied.png").chmod(0)
        broken[folder / "denied.png"] = "permission denied"
    return broken


def make_ensemble(folder):
    """Two members with posteriors and sizes of their own."""
    members = []
    for seed, size in enumerate(SIZES):
        generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = bacs.models.build("resnet26", width=8, blocks=1, classes=len(CLASSES)).eval()
        with torch.no_grad():
            list(model.parameters())[-2].mul_(20)  # the last weights: answers that differ from image to image
        posterior = swag_diag.init(read(model))
        for _ in range(5):
            posterior = swag_diag.update(
                posterior, {n: p + 1e-3 * torch.randn(p.shape, generator=generator) for n, p in read(model).items()}
            )
        fit = bacs.Preprocessing(tuple(MEAN), tuple(STD), size=(size, size))
        members.append(bacs.Member(model, posterior, fit))
    ensemble = bacs.Ensemble(members, class_names=CLASSES)
    ensemble.save(folder)
    return ensemble


def prepared(pixels, size):
    """The central square of a picture at this size, as the model takes it."""
    height, width, _ = pixels.shape
    if (height, width) != (size, size):
        side = min(height, width)
        left, top = (width - side) / 2, (height - side) / 2
        box = (left, top, left + side, top + side)
        pixels = np.array(Image.fromarray(pixels).resize((size, size), Image.Resampling.BILINEAR, box=box))
    return ((pixels / 255 - MEAN) / STD).astype(np.float32).transpose(2, 0, 1)


def expected_rows(members):
    """Class, confidence, entropy, its mean over members, and the mean divergence of members from their average."""
    mean = np.mean(members, axis=0)
    divergence = np.mean([entropy(member, mean, axis=1) for member in members], axis=0)
    expected = np.mean([entropy(member, axis=1) for member in members], axis=0)
    return mean.argmax(axis=1), mean.max(axis=1), entropy(mean, axis=1), expected, divergence


def command(*arguments):
    """Exit code and summary of one `bacs adapt`."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(io.StringIO()):
        code = cli.main(["adapt", *map(str, arguments), "--json"])
    return code, json.loads(shown.getvalue())


def check(table, summary, code, good, broken, members):
    """Compares a table and a summary with what is expected."""
    assert code == 3, f"exit code {code}: skipped pictures must show"
    assert summary["images"] == len(good)
    failures = {Path(failure["path"]): failure["reason"] for failure in summary["skipped"]}
    assert failures.keys() == broken.keys(), failures.keys() ^ broken.keys()
    for path, reason in failures.items():
        assert reason.startswith(broken[path]), (path, reason)
    assert table["path"] == [str(path) for path in good]
    classes, *numbers = expected_rows(members)
    for row, name in enumerate(table["path"]):
        assert table["class_index"][row] == classes[row], name
        assert table["class_name"][row] == CLASSES[classes[row]], name
    columns = ("confidence", "predictive_entropy", "expected_entropy", "mutual_information")
    for column, values in zip(columns, numbers, strict=True):
        np.testing.assert_allclose(table[column], values, atol=2e-5, err_msg=column)
    flagged = np.array(table["abstain"])
    assert flagged.sum() == len(good) - int(0.8 * len(good) + 1e-9)
    assert np.array(table["confidence"])[flagged].max() <= np.array(table["confidence"])[~flagged].min()


def run(folder, count, seed=0):
    """Makes, adapts and checks; yields a line for each step."""
    rng = np.random.default_rng(seed)
    photos = folder / "photos"
    photos.mkdir()
    made = [make(photos, KINDS[number % len(KINDS)], number, rng) for number in range(count - 10)]
    good = dict(sorted(made))
    broken = make_broken(photos, rng)
    (photos / "notes.txt").write_text("no picture, and not called one")
    ensemble = make_ensemble(folder / "run")
    views = [torch.from_numpy(np.stack([prepared(p, size) for p in good.values()])) for size in SIZES]
    yield f"{len(made)} good pictures in {len(set(KINDS))} kinds, {len(broken)} broken"
    alone = [replace(ensemble, members=[member]) for member in ensemble.members]
    with torch.no_grad():
        plain = [m.model(view).double().softmax(1).numpy() for m, view in zip(ensemble.members, views, strict=True)]
    adapted = [
        bacs.adapt(one, view, "bacs").predict(view).double().numpy() for one, view in zip(alone, views, strict=True)
    ]
    for method, members in (("vanilla", plain), ("bacs", adapted)):
        out = folder / f"{method}.parquet"
        began = time.perf_counter()
        code, summary = command(folder / "run", photos, "--method", method, "--out", out, "--coverage", 0.8)
        seconds = time.perf_counter() - began
        check(pq.read_table(out).to_pydict(), summary, code, good, broken, members)
        assert summary["ignored"] == 1
        told = f"{summary['images']} rows right, {len(summary['skipped'])} named failures"
        yield f"{method}: exit code {code}, {told}, {seconds:.1f} s"
    for failure in summary["skipped"]:
        yield f"  {Path(failure['path']).name}: {failure['reason']}"


def main(arguments=None):
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--count", type=int, default=1000, help="pictures, ten broken ones included")
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args(arguments)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for line in run(Path(folder), chosen.count, chosen.seed):
            print(line, flush=True)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f} MiB")


if __name__ == "__main__":
    sys.exit(main())
