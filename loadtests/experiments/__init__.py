"""Experiments, one folder per source."""
