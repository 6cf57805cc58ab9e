"""The experiment on real nodes (root): real kubelets, kube-scheduler, kube-proxy, Prometheus and load tools."""
