"""The result files that are kept in docs/."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reactor.errors import InputError


@dataclass(frozen=True, slots=True)
class ResultFiles:
    folder: Path

    def read(self, name: str) -> Any:
        """JSON as it is, CSV as a list of rows by column; None where there is no such file."""
        path = self.folder / name
        if not path.exists():
            return None
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".csv":
            return list(csv.DictReader(text.splitlines()))
        try:
            return json.loads(text)
        except ValueError as error:
            raise InputError(f"{path} is not JSON: {error}; make it anew with its experiment") from error
