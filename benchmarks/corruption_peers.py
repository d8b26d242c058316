"""The PyPI package `imagecorruptions`, made to run: an independent implementation with ImageNet-C's constants."""

import sys
import warnings

import numpy as np

INSTALL = """This comparison needs packages that bacs itself does not. In an environment of its own:
    pip install -c constraints.txt -e . 'setuptools<81' imagecorruptions scikit-image opencv-python-headless"""


def load():
    """The module, with the three calls mended that no longer exist in NumPy 2 and in scikit-image."""
    warnings.simplefilter("ignore")  # of pkg_resources and of scipy's old names, all inside the package
    if not hasattr(np, "float_"):
        np.float_ = np.float64  # fog
    try:
        import imagecorruptions
        import imagecorruptions.corruptions as functions
        from skimage import filters
    except ImportError as error:
        sys.exit(f"{error}\n{INSTALL}")

    def gaussian(image, *args, multichannel=False, **options):  # glass_blur, gaussian_blur
        return filters.gaussian(image, *args, channel_axis=-1 if multichannel else None, **options)

    functions.gaussian = gaussian
    return imagecorruptions
