"""The hash that tells the pods of one template from those of another, in the alphabet of the real one."""

from __future__ import annotations

import msgspec

from loadtests.embedded.objects import NAME_ALPHABET
from loadtests.embedded.resources import Json

HASH_LABEL = "pod-template-hash"


def template_hash(template: Json) -> str:
    """FNV-1a over the template's JSON in key order. The real one hashes Go's memory layout: only the form agrees."""
    value = 0x811C9DC5
    for byte in msgspec.json.encode(template, order="sorted"):
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return "".join(NAME_ALPHABET[ord(digit) % len(NAME_ALPHABET)] for digit in str(value))


def same_template(replica_set: Json, deployment: Json) -> bool:
    return _bare(replica_set["spec"]["template"]) == _bare(deployment["spec"]["template"])


def _bare(template: Json) -> Json:
    metadata = template.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": labels}}
