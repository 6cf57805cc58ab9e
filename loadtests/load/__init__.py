"""Load by other people's tools: Vegeta and k6, each as a bounded child process whose every request is read back."""
