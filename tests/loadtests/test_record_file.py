from __future__ import annotations

from pathlib import Path

import msgspec

from loadtests.record_file import RecordFile


class Kept(msgspec.Struct, frozen=True):
    name: str


def test_a_line_that_was_cut_short_is_left_out_and_the_next_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    file = RecordFile(path, Kept)
    assert file.read() == []
    file.add(Kept("one"))
    with path.open("ab") as cut:
        cut.write(b'{"name": "tw')
    file.add(Kept("three"))
    assert file.read() == [Kept("one"), Kept("three")]
    file.forget()
    assert file.read() == []
