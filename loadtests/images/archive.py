"""Writes an image as an OCI layout in one tar, the same bytes for the same content."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BLOCK = 1 << 20
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@dataclass(frozen=True, slots=True)
class File:
    """One file of a layer: its absolute path in the image and where it comes from."""

    path: str
    source: Path


@dataclass(frozen=True, slots=True)
class Layer:
    tar: Path
    digest: str


@dataclass(frozen=True, slots=True)
class Image:
    name: str
    layers: tuple[Layer, ...]
    entrypoint: tuple[str, ...]
    user: str = "65532"
    environment: Mapping[str, str] | None = None


def write_layer(tar: Path, files: Iterable[File]) -> Layer:
    """Folders are made as they are needed; everything belongs to root and is readable by all."""
    made: set[str] = set()
    with tarfile.open(tar, "w") as archive:
        for file in sorted(files, key=lambda each: each.path):
            for folder in reversed(Path(file.path).parents[:-1]):
                if str(folder) not in made:
                    made.add(str(folder))
                    archive.addfile(_entry(str(folder), tarfile.DIRTYPE, 0o755))
            with file.source.open("rb") as content:
                entry = _entry(file.path, tarfile.REGTYPE, 0o755 if _is_program(file.source) else 0o644)
                entry.size = file.source.stat().st_size
                archive.addfile(entry, content)
    return read_layer(tar)


def read_layer(tar: Path) -> Layer:
    digest = hashlib.sha256()
    with tar.open("rb") as content:
        while block := content.read(_BLOCK):
            digest.update(block)
    return Layer(tar, digest.hexdigest())


def write_image(path: Path, image: Image, architecture: str = "amd64") -> Path:
    config = _json(
        {
            "architecture": architecture,
            "os": "linux",
            "config": {
                "Entrypoint": list(image.entrypoint),
                "Env": [f"{name}={value}" for name, value in (image.environment or {}).items()],
                "User": image.user,
                "WorkingDir": "/",
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.digest}" for layer in image.layers]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, config),
            "layers": [
                {"mediaType": _LAYER, "digest": f"sha256:{layer.digest}", "size": layer.tar.stat().st_size}
                for layer in image.layers
            ],
        }
    )
    named = _descriptor(_MANIFEST, manifest) | {"annotations": {"io.containerd.image.name": image.name}}
    unfinished = path.with_name(f".{path.name}.unfinished")
    with tarfile.open(unfinished, "w") as archive:
        _add(archive, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
        _add(archive, "index.json", _json({"schemaVersion": 2, "manifests": [named]}))
        for content in (config, manifest):
            _add(archive, f"blobs/sha256/{_digest(content)}", content)
        for layer in image.layers:
            archive.add(layer.tar, f"blobs/sha256/{layer.digest}")
    return unfinished.rename(path)


def _entry(path: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path.lstrip("/"))
    entry.type, entry.mode = kind, mode
    return entry


def _is_program(source: Path) -> bool:
    return bool(source.stat().st_mode & 0o100)


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = _entry(name, tarfile.REGTYPE, 0o644)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def _descriptor(media_type: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": f"sha256:{_digest(content)}", "size": len(content)}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True).encode()
