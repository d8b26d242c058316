"""A user's pictures: every format and mode as it should look, and every broken file by its name."""

import io
import os
import struct
import tempfile
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image, ImageOps

import bacs
from bacs.data import pictures
from bacs.data.decode import decode
from bacs.errors import DataError

SIZED = bacs.Preprocessing((0.5,) * 3, (0.5,) * 3, size=(8, 8))
UNSIZED = bacs.Preprocessing((0.5,) * 3, (0.5,) * 3)


def noise(rng, height=8, width=8):
    return Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))


def encoded(image, form="PNG", **options):
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def png(width, height, depth=8, colour=2, data=b""):
    """A PNG file written byte by byte."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


class TestDecoding:
    @pytest.mark.parametrize("form", ["PNG", "BMP", "TIFF", "PPM", "WEBP", "GIF", "JPEG"])
    def test_every_format_shows_its_picture(self, rng, form):
        ramp = np.stack([np.linspace(0, 255, 32, dtype=np.uint8)] * 32)
        picture = Image.fromarray(np.stack([ramp, ramp.T, ramp[::-1, ::-1]], axis=-1))
        options = {"lossless": True} if form == "WEBP" else {"quality": 95, "subsampling": 0} if form == "JPEG" else {}
        found = np.asarray(decode(encoded(picture, form, **options), 3)).astype(int)
        tolerance = {"JPEG": 12, "GIF": 60}.get(form, 0)  # lossy; 256 colours
        assert np.abs(found - np.asarray(picture)).max() <= tolerance

    def test_exif_turns_the_picture_upright(self, rng):
        upright = noise(rng, 6, 10)
        turned = upright.transpose(Image.Transpose.ROTATE_90)
        exif = Image.Exif()
        exif[0x0112] = 6  # to be turned clockwise by 90 degrees
        found = decode(encoded(turned, "PNG", exif=exif), 3)
        np.testing.assert_array_equal(found, upright)

    @pytest.mark.parametrize("orientation", range(1, 9))
    @pytest.mark.parametrize("form", ["PNG", "TIFF", "WEBP"])
    def test_every_orientation_is_that_of_pillow(self, rng, orientation, form):
        exif = Image.Exif()
        exif[0x0112] = orientation
        options = {"lossless": True} if form == "WEBP" else {}
        data = encoded(noise(rng, 6, 10), form, exif=exif, **options)
        expected = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
        assert expected.size == ((10, 6) if orientation < 5 else (6, 10))
        np.testing.assert_array_equal(decode(data, 3), expected)

    def test_damaged_exif_leaves_the_picture_as_it_lies(self, rng):
        photo = noise(rng, 6, 10)
        damaged = encoded(photo, exif=b"Exif\0\0no header of a TIFF file")
        with pytest.raises(SyntaxError):
            ImageOps.exif_transpose(Image.open(io.BytesIO(damaged)))
        np.testing.assert_array_equal(decode(damaged, 3), photo)

    def test_what_is_transparent_shows_white(self, rng):
        colours = np.asarray(noise(rng))
        alpha = rng.integers(0, 256, (8, 8, 1), dtype=np.uint8)
        expected = colours * (alpha / 255) + 255 * (1 - alpha / 255)
        rgba = Image.fromarray(np.concatenate([colours, alpha], axis=-1))
        np.testing.assert_allclose(decode(encoded(rgba), 3), expected, atol=1)
        grey = Image.fromarray(np.concatenate([colours[..., :1], alpha], axis=-1))
        assert grey.mode == "LA"
        np.testing.assert_allclose(decode(encoded(grey), 1), expected[..., 0], atol=1)

    def test_a_transparent_colour_of_a_palette_shows_white(self):
        image = Image.new("P", (4, 4), 1)
        image.putpalette([255, 0, 0, 0, 128, 0])
        image.putpixel((0, 0), 0)
        found = np.asarray(decode(encoded(image, "GIF", transparency=0), 3))
        assert found[0, 0].tolist() == [255, 255, 255]
        assert found[3, 3].tolist() == [0, 128, 0]

    def test_16_bits_become_their_upper_eight(self, rng):
        values = rng.integers(0, 65536, (8, 8), dtype=np.uint16)
        for form in ("PNG", "TIFF"):
            found = decode(encoded(Image.fromarray(values), form), 3)
            np.testing.assert_array_equal(found, np.stack([values // 256] * 3, axis=-1))
        colours = rng.integers(0, 65536, (8, 8, 3), dtype=np.uint16)
        rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in colours)
        np.testing.assert_array_equal(decode(png(8, 8, depth=16, data=rows), 3), colours // 256)

    def test_cmyk_grey_and_black_and_white(self):
        cmyk = Image.new("CMYK", (4, 4), (0, 255, 255, 0))  # no cyan, no black: red
        assert np.asarray(decode(encoded(cmyk, "TIFF"), 3))[0, 0].tolist() == [255, 0, 0]
        for mode, value in (("L", 77), ("1", 1)):
            expected = 255 if mode == "1" else value
            picture = encoded(Image.new(mode, (4, 4), value))
            assert np.asarray(decode(picture, 3))[0, 0].tolist() == [expected] * 3
            assert np.asarray(decode(picture, 1))[0, 0] == expected

    def test_grey_of_colours_is_their_luma(self):
        assert np.asarray(decode(encoded(Image.new("RGB", (2, 2), (255, 0, 0))), 1))[0, 0] == round(0.299 * 255)

    def test_an_animation_is_its_first_frame(self, rng):
        frames = [Image.new("RGB", (6, 6), colour) for colour in ("red", "blue")]
        data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
        assert np.asarray(decode(data, 3))[0, 0].tolist() == [255, 0, 0]


def broken_files(folder, rng):
    """Files and folders that are no pictures, by name, with the reason that is expected."""
    photo = encoded(noise(rng, 64, 64), "JPEG")
    flipped = bytearray(encoded(noise(rng, 64, 64)))
    flipped[len(flipped) // 2] ^= 255
    contents = {
        "truncated.jpg": (photo[: len(photo) // 2], "damaged"),
        "empty.png": (b"", "empty"),
        "random.bmp": (rng.bytes(500), "not a picture"),
        "text.jpg": (b"I am a note", "not a picture"),
        "flipped.png": (bytes(flipped), "damaged"),
        "no_pixels.png": (png(0, 5), "not a picture"),
        "bomb.png": (png(30_000, 30_000), "too large to be decoded safely"),
        "depth.tif": (encoded(Image.fromarray(np.ones((4, 4), np.float32)), "TIFF"), "32 bits per pixel"),
    }
    for name, (data, _) in contents.items():
        (folder / name).write_bytes(data)
    reasons = {name: reason for name, (_, reason) in contents.items()}
    (folder / "folder.png").mkdir()
    (folder / "link.png").symlink_to("nowhere.png")
    os.mkfifo(folder / "pipe.jpg")
    reasons |= {"folder.png": "a folder, not a picture", "link.png": "missing", "pipe.jpg": "not a regular file"}
    if os.geteuid() != 0:  # root may read everything
        (folder / "secret.png").write_bytes(photo)
        (folder / "secret.png").chmod(0)
        reasons["secret.png"] = "permission denied"
    return reasons


class TestFailures:
    def test_each_is_named_with_its_reason_and_the_others_are_read(self, tmp_path, rng):
        reasons = broken_files(tmp_path, rng)
        assert len(reasons) >= 11
        for name in ("a.png", "z.png"):
            noise(rng).save(tmp_path / name)
        found = pictures(tmp_path, SIZED)
        assert [os.path.basename(path) for path in found.paths] == ["a.png", "z.png"]
        assert {os.path.basename(path) for path, _ in found.failures} == reasons.keys()
        for path, reason in found.failures:
            assert reason.startswith(reasons[os.path.basename(path)]), (path, reason)
            assert "\n" not in reason

    def test_places_count_what_could_not_be_read(self, tmp_path, rng):
        for name in ("a.png", "b.png", "c.png"):
            noise(rng).save(tmp_path / name)
        (tmp_path / "b.png").write_bytes(b"")
        assert pictures(tmp_path, SIZED).index.tolist() == [0, 2]

    def test_permission_denied_is_said(self, tmp_path, rng, monkeypatch):
        noise(rng).save(tmp_path / "a.png")

        def denied(*arguments, **options):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Image, "open", denied)
        with pytest.raises(DataError, match=r"^permission denied$"):
            decode(tmp_path / "a.png", 3)

    def test_strict_stops_at_the_first(self, tmp_path, rng):
        noise(rng).save(tmp_path / "a.png")
        (tmp_path / "b.png").write_bytes(b"")
        (tmp_path / "c.png").write_bytes(b"x")
        with pytest.raises(DataError, match=r"b\.png: empty$"):
            pictures(tmp_path, SIZED, strict=True)

    def test_nothing_readable_is_an_error(self, tmp_path):
        (tmp_path / "b.png").write_bytes(b"")
        with pytest.raises(DataError, match=r"none of the 1 pictures can be read; .*b\.png: empty"):
            pictures(tmp_path, SIZED)

    def test_a_full_disk_is_named(self, tmp_path, rng, monkeypatch):
        noise(rng).save(tmp_path / "a.png")

        class Full(io.BytesIO):
            def write(self, data):
                raise OSError(28, "No space left on device")

        monkeypatch.setattr(tempfile, "TemporaryFile", lambda **options: Full())
        with pytest.raises(DataError, match="do not fit into .*: No space left on device; TMPDIR"):
            pictures(tmp_path, SIZED)


class TestSources:
    def test_a_folder_is_searched_to_its_depth_in_the_order_of_paths(self, tmp_path, rng):
        for name in ("b/x.png", "a/deep/y.JPG", "c.tiff", ".hidden/z.png", "a/.z.png"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            noise(rng).save(tmp_path / name)
        (tmp_path / "notes.txt").write_text("")
        (tmp_path / "a" / "loop").symlink_to(tmp_path)
        found = pictures(tmp_path, SIZED)
        assert [os.path.relpath(path, tmp_path) for path in found.paths] == ["a/deep/y.JPG", "b/x.png", "c.tiff"]
        assert found.ignored == 1
        assert found.failures == ()

    def test_a_glob_takes_what_it_matches(self, tmp_path, rng, monkeypatch):
        monkeypatch.chdir(tmp_path)
        for name in ("1/a.png", "2/b.png", "2/c.jpg", "2/d.camera"):
            os.makedirs(os.path.dirname(name), exist_ok=True)
            noise(rng).save(name, "PNG")
        assert pictures("*/*.png", SIZED).paths == ("1/a.png", "2/b.png")
        assert pictures("**/?.camera", SIZED).paths == ("2/d.camera",)
        assert pictures("**", SIZED).paths == ("1/a.png", "2/b.png", "2/c.jpg", "2/d.camera")
        with pytest.raises(DataError, match=r"\*\.gif matches no file"):
            pictures("*.gif", SIZED)

    def test_one_picture(self, tmp_path, rng):
        noise(rng).save(tmp_path / "a[1].png")
        assert len(pictures(tmp_path / "a[1].png", SIZED)) == 1

    def test_a_name_that_is_no_text_can_be_shown(self, tmp_path, rng):
        with open(os.fsencode(tmp_path) + b"/caf\xe9.png", "wb") as file:
            file.write(encoded(noise(rng)))
        (path,) = pictures(tmp_path, SIZED).paths
        assert path.endswith("caf\\xe9.png")

    def test_missing_and_empty_sources_are_named(self, tmp_path):
        with pytest.raises(DataError, match="nowhere is missing: IMAGES is a folder, a glob in quotes"):
            pictures(tmp_path / "nowhere", SIZED)
        with pytest.raises(DataError, match=r"nowhere\.npy is missing"):
            pictures(tmp_path / "nowhere.npy", SIZED)
        with pytest.raises(DataError, match="no pictures"):
            pictures(tmp_path, SIZED)

    @pytest.mark.parametrize(
        ("array", "shape"),
        [
            (np.zeros((3, 9, 7, 3), np.uint8), (3, 9, 7, 3)),
            (np.zeros((3, 9, 7), np.uint8), (3, 9, 7, 1)),
            (np.zeros((3, 3, 9, 7), np.float32), (3, 3, 9, 7)),
            (np.zeros((3, 20), np.float64), (3, 20)),
            (np.zeros((3, 20), np.int64), (3, 20)),
        ],
    )
    def test_array_files_are_taken_as_they_are(self, tmp_path, array, shape):
        np.save(tmp_path / "a.npy", array)
        np.savez(tmp_path / "a.npz", images=array, labels=np.zeros(3, np.int64))
        for name in ("a.npy", "a.npz"):
            found = pictures(tmp_path / name, None)
            assert found.images.shape == shape
            assert found.images.dtype == array.dtype
            assert found.paths is None


class TestSizes:
    def test_mixed_sizes_become_the_models(self, tmp_path, rng):
        originals = [noise(rng, height, width) for height, width in ((8, 8), (30, 20), (5, 50), (1, 1))]
        for number, original in enumerate(originals):
            original.save(tmp_path / f"{number}.png")
        found = pictures(tmp_path, SIZED)
        assert found.images.shape == (4, 8, 8, 3)
        np.testing.assert_array_equal(found.images[0], originals[0])
        # 30 x 20 becomes 12 x 8, and the central square of that are rows 2 to 10.
        expected = originals[1].resize((8, 12), Image.Resampling.BILINEAR).crop((0, 2, 8, 10))
        np.testing.assert_array_equal(found.images[1], expected)

    def test_without_a_size_mixed_sizes_are_an_error_that_says_what_to_do(self, tmp_path, rng):
        noise(rng, 8, 9).save(tmp_path / "a.png")
        assert pictures(tmp_path, UNSIZED).images.shape == (1, 8, 9, 3)
        noise(rng, 9, 8).save(tmp_path / "b.png")
        with pytest.raises(DataError, match=r"b\.png has 9 x 8 pixels and .*a\.png 8 x 9, .*--size HEIGHT WIDTH"):
            pictures(tmp_path, UNSIZED)

    def test_every_geometry_has_its_own_view_and_equal_ones_share(self, tmp_path, rng):
        noise(rng, 20, 20).save(tmp_path / "a.png")
        other = bacs.Preprocessing((0.0,), (1.0,), size=(4, 6))
        same = bacs.Preprocessing((0.1,) * 3, (0.2,) * 3, size=(8, 8), channel_order="bgr")
        found = pictures(tmp_path, SIZED, other, same)
        assert [view.shape for view in found.views] == [(1, 8, 8, 3), (1, 4, 6, 1), (1, 8, 8, 3)]
        assert found.views[0] is found.views[2]

    def test_no_preprocessing_and_odd_channels_are_named(self, tmp_path, rng):
        noise(rng).save(tmp_path / "a.png")
        with pytest.raises(ValueError, match="pictures need a member with preprocessing"):
            pictures(tmp_path, None)
        with pytest.raises(ValueError, match="pictures have 1 or 3 channels, the member's preprocessing has 2"):
            pictures(tmp_path, bacs.Preprocessing((0, 0), (1, 1)))


class TestParquet:
    def test_pictures_as_hugging_face_writes_them(self, tmp_path, rng):
        originals = [noise(rng) for _ in range(3)]
        rows = [{"bytes": encoded(o), "path": f"{n}.png"} for n, o in enumerate(originals)]
        rows[1] = {"bytes": None, "path": "elsewhere.png"}
        pq.write_table(pa.table({"label": [0, 1, 2], "image": rows}), tmp_path / "a.parquet")
        found = pictures(tmp_path / "a.parquet", SIZED)
        assert found.paths == ("0.png", "2.png")
        assert found.failures == (("elsewhere.png", "empty"),)
        np.testing.assert_array_equal(found.images, np.stack([originals[0], originals[2]]))

    def test_plain_bytes_have_rows_for_names(self, tmp_path, rng):
        rows = [encoded(noise(rng)), b"no picture"]
        pq.write_table(pa.table({"anything": rows, "label": [0, 1]}), tmp_path / "a.parquet")
        found = pictures(tmp_path / "a.parquet", SIZED)
        assert found.paths[0].endswith("a.parquet row 0")
        assert found.failures[0].path.endswith("a.parquet row 1")

    def test_arrays_in_lists_of_every_kind(self, tmp_path, rng):
        array = rng.integers(0, 256, (5, 4, 6, 3), dtype=np.uint8)
        flat = pa.array(array.ravel())
        fixed = flat
        for length in (3, 6, 4):
            fixed = pa.FixedSizeListArray.from_arrays(fixed, length)
        nested = pa.array(array.tolist(), pa.list_(pa.list_(pa.list_(pa.uint8()))))
        tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(array)
        for column in (fixed, nested, tensors):
            pq.write_table(pa.table({"images": column}), tmp_path / "a.parquet")
            np.testing.assert_array_equal(pictures(tmp_path / "a.parquet", None).images, array)
        floats = rng.normal(size=(5, 7)).astype(np.float32)
        column = pa.FixedSizeListArray.from_arrays(pa.array(floats.ravel()), 7)
        pq.write_table(pa.table({"image": column, "name": list("abcde")}), tmp_path / "a.parquet")
        np.testing.assert_array_equal(pictures(tmp_path / "a.parquet", None).images, floats)

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ({"label": [1, 2]}, r"one column must hold images .*found \['label'\]"),
            ({"a": [[1], [2]], "b": [[1], [2]]}, r"found \['a', 'b'\]"),
            ({"image": [[1.0, 2.0], [3.0]]}, "arrays must have one shape, found lists of 1 to 2 values"),
            ({"image": [[1.0], None]}, "1 of the rows or lists are missing"),
            ({"image": [["a"], ["b"]]}, "arrays must hold numbers"),
        ],
    )
    def test_tables_without_images_are_named(self, tmp_path, columns, message):
        pq.write_table(pa.table(columns), tmp_path / "a.parquet")
        with pytest.raises(DataError, match=message):
            pictures(tmp_path / "a.parquet", None)

    def test_a_damaged_file_is_named(self, tmp_path):
        (tmp_path / "a.parquet").write_bytes(b"PAR1 and nothing more")
        with pytest.raises(DataError, match=r"a\.parquet: damaged or not a Parquet file"):
            pictures(tmp_path / "a.parquet", SIZED)


def test_a_decoder_tries_the_formats_that_it_is_told():
    buffer = io.BytesIO()
    Image.new("RGB", (4, 3)).save(buffer, "BMP")
    assert decode(buffer.getvalue(), 3).size == (4, 3)
    with pytest.raises(DataError, match=r"^not a JPEG or PNG picture$"):
        decode(buffer.getvalue(), 3, formats=("JPEG", "PNG"))
