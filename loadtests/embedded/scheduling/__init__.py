"""kube-scheduler's default filters and scores on stated requests, as pure functions over plain objects."""
