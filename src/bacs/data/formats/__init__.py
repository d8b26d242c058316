"""Readers of the file formats in which image sets are published: paths in, (uint8 NHWC images, labels) out."""
