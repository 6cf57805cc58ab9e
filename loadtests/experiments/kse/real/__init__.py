"""A part of the experiment on real nodes (root): real kubelets, kube-proxy, Prometheus and Vegeta."""
