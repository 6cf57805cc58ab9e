"""Plots that need matplotlib. They come with a clone, not with the lab."""
