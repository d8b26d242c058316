import numpy as np
import pytest
import torch
from PIL import Image

from bacs.data.folder import FolderImages
from bacs.training import Identity, PadCropFlip
from bacs.training.augment import RandomResizedCrop, crop_box


def by_hand(image, uniforms, padding, flip):
    """One image padded, cut and mirrored by numpy."""
    padded = np.pad(image, ((padding, padding), (padding, padding), (0, 0)))
    top, left = (int(u * (2 * padding + 1)) for u in uniforms[:2])
    height, width, _ = image.shape
    if flip and uniforms[2] < 0.5:
        padded, left = padded[:, ::-1], 2 * padding - left
    return padded[top : top + height, left : left + width]


@pytest.mark.parametrize("flip", [True, False])
def test_crops_and_flips_are_those_of_a_loop_over_images(flip):
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (50, 9, 7, 3), dtype=np.uint8)
    uniforms = torch.rand(40, 3, generator=torch.Generator().manual_seed(0))
    positions = torch.randperm(50, generator=torch.Generator().manual_seed(1))[:40]
    made = PadCropFlip(padding=2, flip=flip)(torch.from_numpy(images), positions, uniforms).numpy()
    for row, (position, draw) in enumerate(zip(positions.tolist(), uniforms.tolist(), strict=True)):
        np.testing.assert_array_equal(made[row], by_hand(images[position], draw, 2, flip))


def test_every_window_and_both_mirrorings_are_about_equally_likely():
    image = torch.arange(1, 26, dtype=torch.uint8).reshape(1, 5, 5, 1)
    count = 9000
    uniforms = torch.rand(count, 3, generator=torch.Generator().manual_seed(0))
    made = PadCropFlip(padding=1)(image, torch.zeros(count, dtype=torch.int64), uniforms)
    _, counts = made.flatten(1).unique(dim=0, return_counts=True)
    assert len(counts) == 18  # 3 x 3 windows, two mirrorings
    expected = count / 18
    assert (counts - expected).abs().max() < 5 * expected**0.5  # five deviations of a Poisson count


def test_part_of_a_batch_gives_that_part_of_the_result():
    images = torch.randint(0, 256, (20, 6, 6, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    uniforms = torch.rand(20, 3, generator=torch.Generator().manual_seed(1))
    augment, positions = PadCropFlip(), torch.arange(20)
    whole = augment(images, positions, uniforms)
    assert torch.equal(augment(images, positions[7:13], uniforms[7:13]), whole[7:13])


def test_identity_takes_the_images_as_they_are():
    images = torch.arange(48, dtype=torch.uint8).reshape(4, 2, 2, 3)
    assert torch.equal(Identity()(images, torch.tensor([2, 0]), torch.empty(2, 0)), images[[2, 0]])


def test_crop_boxes_have_the_area_and_shape_that_was_drawn():
    generator = torch.Generator().manual_seed(0)
    areas, ratios = [], []
    for uniforms in torch.rand(2000, 4, generator=generator).tolist():
        left, top, right, bottom = crop_box(400, 400, uniforms, 0.08)
        assert 0 <= left < right <= 400.0001
        assert 0 <= top < bottom <= 400.0001
        areas.append((right - left) * (bottom - top) / 400**2)
        ratios.append((right - left) / (bottom - top))
    assert 0.07 < min(areas) < 0.09
    assert 0.9 < max(areas) <= 1.0001
    assert 0.74 < min(ratios) < 0.77
    assert 1.3 < max(ratios) < 1.34


def test_random_crops_of_files_are_cut_out_of_the_right_picture(tmp_path):
    for number in range(3):
        pixels = np.full((40, 60, 3), 60 * (number + 1), np.uint8)
        pixels[:, :30, 0] = 255  # the left half is red
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
    images = FolderImages(tuple(sorted(tmp_path.glob("*.png"))), (16, 16))
    uniforms = torch.tensor([[0.0, 0.5, 0.0, 0.0, 0.9], [0.0, 0.5, 1.0, 0.0, 0.9], [1.0, 0.5, 0.5, 0.5, 0.1]])
    made = RandomResizedCrop()(images, torch.tensor([2, 1, 0]), uniforms)
    assert made.shape == (3, 16, 16, 3)
    assert made[0].unique(dim=0).shape[0] == 1
    assert made[0, 8, 8].tolist() == [255, 180, 180]  # far left of picture 2
    assert made[1, 8, 8].tolist() == [120, 120, 120]  # far right of picture 1
    assert made[2, 8, 0].tolist() == [60, 60, 60]  # nearly all of picture 0, mirrored
    assert made[2, 8, 15].tolist() == [255, 60, 60]


def test_random_crops_need_files():
    with pytest.raises(TypeError, match="reads image files, got Tensor; use pad_crop_flip"):
        RandomResizedCrop()(torch.zeros(2, 8, 8, 3, dtype=torch.uint8), torch.tensor([0]), torch.zeros(1, 5))
