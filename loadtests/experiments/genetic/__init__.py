"""GENETIC's experiments: the check dictionary, even loads against kube-scheduler's, and weights per node."""
