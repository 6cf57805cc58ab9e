"""`rematch lab evidence`: docs/evidence.md from the result files beside it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from loadtests.evidence.page import SOURCES, page
from loadtests.evidence.result_files import ResultFiles
from reactor.errors import InputError

PAGE = "evidence.md"


def main(docs: Path) -> None:
    if not docs.is_dir():
        raise InputError(f"--docs {docs}: there is no such folder; run this in a clone, or name its docs folder")
    files = ResultFiles(docs)
    written = docs / PAGE
    written.write_text(page(files), encoding="utf-8")
    counts = Counter(claim.row(files).finding.verdict for source in SOURCES for claim in source.claims)
    click.echo(f"{written}: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}")
