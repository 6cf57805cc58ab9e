"""Forecasts of the usage of pods, workloads and nodes: samples of the history in, values and peaks out."""
