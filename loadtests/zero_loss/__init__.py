"""Requests lost while pods are moved: constant load through kube-proxy on real nodes, strategy by strategy."""
