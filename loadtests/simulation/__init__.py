"""Simulated time: a model of nodes and kubelets, with the real controller on a virtual clock."""
