"""Kubeconfigs for the control plane's users."""

from __future__ import annotations

from pathlib import Path

import yaml


def write_kubeconfig(path: Path, url: str, ca: Path, *, token: str = "", token_file: Path | None = None) -> Path:
    """Readable by its owner only. A token in a file is read again when the file changes."""
    user = {"tokenFile": str(token_file.absolute())} if token_file is not None else {"token": token}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": {"server": url, "certificate-authority": str(ca.absolute())}}],
        "users": [{"name": "lab", "user": user}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
        "current-context": "lab",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path
