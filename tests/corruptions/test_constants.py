"""All constants against the published tables, which stand here once more, as rows of text."""

import pytest

from bacs.corruptions import TEST, VALIDATION
from bacs.corruptions.constants import CONSTANTS

# Corruption: severity 1 to 5 of CIFAR-C | of ImageNet-C. The parts of a severity are in the order of the scripts that
# made the sets: blur disks (radius, rim), glass (sigma, reach, rounds), motion (radius, sigma), zoom (stop, step), snow
# (mean, deviation, zoom, threshold, radius, sigma, kept), frost (image, frost), fog (amount, decay), elastic (alpha,
# sigma, affine), spatter (mean, deviation, sigma, threshold, strength, mud), saturation (factor, offset).
PUBLISHED = """
gaussian_noise: .04 .06 .08 .09 .10 | .08 .12 .18 .26 .38
shot_noise: 500 250 100 75 50 | 60 25 12 5 3
impulse_noise: .01 .02 .03 .05 .07 | .03 .06 .09 .17 .27
defocus_blur: .3,.4 .4,.5 .5,.6 1,.2 1.5,.1 | 3,.1 4,.5 6,.5 8,.5 10,.5
glass_blur: .05,1,1 .25,1,1 .4,1,1 .25,1,2 .4,1,2 | .7,1,2 .9,2,1 1,2,3 1.1,3,2 1.5,4,2
motion_blur: 6,1 6,1.5 6,2 8,2 9,2.5 | 10,3 15,5 15,8 15,12 20,15
zoom_blur: 1.06,.01 1.11,.01 1.16,.01 1.21,.01 1.26,.01 | 1.11,.01 1.16,.01 1.21,.02 1.26,.02 1.31,.03
snow: .1,.2,1,.6,8,3,.95 .1,.2,1,.5,10,4,.9 .15,.3,1.75,.55,10,4,.9 .25,.3,2.25,.6,12,6,.85 .3,.3,1.25,.65,14,12,.8 |
      .1,.3,3,.5,10,4,.8 .2,.3,2,.5,12,4,.7 .55,.3,4,.9,12,8,.7 .55,.3,4.5,.85,12,8,.65 .55,.3,2.5,.85,12,12,.55
frost: 1,.2 1,.3 .9,.4 .85,.4 .75,.45 | 1,.4 .8,.6 .7,.7 .65,.7 .6,.75
fog: .2,3 .5,3 .75,2.5 1,2 1.5,1.75 | 1.5,2 2,2 2.5,1.7 2.5,1.5 3,1.4
brightness: .05 .1 .15 .2 .3 | .1 .2 .3 .4 .5
contrast: .75 .5 .4 .3 .15 | .4 .3 .2 .1 .05
elastic_transform: 0,0,.08 .05,.2,.07 .08,.06,.06 .1,.04,.05 .1,.03,.03 |
      2,.7,.1 2,.08,.2 .05,.01,.02 .07,.01,.02 .12,.01,.02
pixelate: .95 .9 .85 .75 .65 | .6 .5 .4 .3 .25
jpeg_compression: 80 65 58 50 40 | 25 18 15 10 7
speckle_noise: .06 .1 .12 .16 .2 | .15 .2 .35 .45 .6
gaussian_blur: .4 .6 .7 .8 1 | 1 2 3 4 6
spatter: .62,.1,.7,.7,.5,0 .65,.1,.8,.7,.5,0 .65,.3,1,.69,.5,0 .65,.1,.7,.69,.6,1 .65,.1,.5,.68,.6,1 |
      .65,.3,4,.69,.6,0 .65,.3,3,.68,.6,0 .65,.3,2,.68,.5,0 .65,.3,1,.65,1.5,1 .67,.4,1,.65,1.5,1
saturate: .3,0 .1,0 1.5,0 2,.1 2.5,.2 | .3,0 .1,0 2,0 5,.1 20,.2
"""
ELASTIC_SIZES = {
    "cifar": (32, 32),
    "imagenet": (244, 224),
}  # what the scripts multiply by, and the images' side
FROST_SCALES = {"cifar": 0.2, "imagenet": 1.0}  # to which the scripts shrink the pictures of frost


def published():
    """(set, corruption, severity) -> numbers."""
    found = {}
    for line in PUBLISHED.replace("|\n", "|").strip().splitlines():
        name, _, both = line.partition(":")
        for constants, row in zip(("cifar", "imagenet"), both.split("|"), strict=True):
            for severity, cell in enumerate(row.split(), start=1):
                found[constants, name, severity] = [float(number) for number in cell.split(",")]
    return found


def flat(value):
    return [number for part in value for number in flat(part)] if isinstance(value, tuple) else [float(value)]


def test_both_tables_have_five_rows_for_each_corruption():
    assert set(CONSTANTS) == {"cifar", "imagenet"}
    for table in CONSTANTS.values():
        assert tuple(table) == TEST + VALIDATION
        assert all(len(rows) == 5 for rows in table.values())


def test_all_190_constants_are_those_that_were_published():
    expected = published()
    assert len(expected) == 2 * 19 * 5
    for (constants, name, severity), numbers in expected.items():
        ours = flat(CONSTANTS[constants][name][severity - 1])
        if name == "elastic_transform":  # ours are parts of the image's side, theirs of a number in the script
            multiplier, side = ELASTIC_SIZES[constants]
            ours, numbers = [part * side for part in ours], [number * multiplier for number in numbers]
        if name == "frost":  # ours take every n-th pixel of the picture
            numbers = [*numbers, 1 / FROST_SCALES[constants]]
        assert ours == pytest.approx(numbers, rel=1e-12), (constants, name, severity)
