"""kube-scheduler's HTTP extender: planned nodes for replacements of moved pods, BNIP's network score for others."""
