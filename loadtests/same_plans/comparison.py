"""Compare the fingerprints of two versions: from files, or of this version and another revision."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from loadtests.same_plans.fingerprint import Entry
from loadtests.same_plans.project import PLACING, RESERVED
from loadtests.tools.processes import CommandFailed, run
from loadtests.tools.revisions import Version, two_versions
from reactor.errors import InputError

MOST_LISTED = 20
DEADLINE = 3600.0
_TOOL = "loadtests/same_plans"


@dataclass(frozen=True, slots=True)
class Difference:
    case: str
    parts: tuple[str, ...]
    reserved: bool = False
    """A node is reserved for one of its pending pods."""

    @property
    def only_in_reserved_placing(self) -> bool:
        return self.reserved and {*self.parts} <= {PLACING, RESERVED}


@dataclass(frozen=True, slots=True)
class PlanComparison:
    kinds: Counter[str]
    differences: tuple[Difference, ...]

    @property
    def identical(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        listed = [f"{each.case}: {', '.join(each.parts)}" for each in self.differences[:MOST_LISTED]]
        left_out = len(self.differences) - len(listed)
        more = [f"and {left_out} more"] if left_out else []
        reserved = sum(each.only_in_reserved_placing for each in self.differences)
        others = len(self.differences) - reserved
        counts = [f"{others} differ"] if others else []
        if reserved:
            counts.append(f"{reserved} differ only in placing of reserved replacements")
        size = f"{self.kinds['problem']} problems, {self.kinds['snapshot']} snapshots"
        return "\n".join([*listed, *more, f"{size}: {', '.join(counts) or 'identical'}"])


def compare(old: Sequence[Entry], new: Sequence[Entry]) -> PlanComparison:
    """A case or a part that only one of them has differs."""
    old_by_id, new_by_id = ({entry.id: entry for entry in entries} for entries in (old, new))
    found = [_difference(case, old_by_id.get(case), new_by_id.get(case)) for case in {**new_by_id, **old_by_id}]
    return PlanComparison(Counter(entry.kind for entry in new), tuple(each for each in found if each is not None))


def _difference(case: str, old: Entry | None, new: Entry | None) -> Difference | None:
    if old == new:
        return None
    if old is None or new is None:
        return Difference(case, ("only in the old version" if new is None else "only in the new version",))
    names = {**old.parts, **new.parts}
    parts = tuple(name for name in names if old.parts.get(name) != new.parts.get(name))
    return Difference(case, parts, RESERVED in names)


def read_entries(path: Path) -> list[Entry]:
    try:
        return [Entry(**entry) for entry in json.loads(path.read_bytes())["entries"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} does not contain fingerprints: {error}") from error


def compare_with_revision(revision: str, options: Sequence[str]) -> PlanComparison:
    """Both versions run at the same time, each with its own `loadtests.same_plans`."""
    with TemporaryDirectory(prefix="rematch-same-plans-") as folder, two_versions(revision) as (old, new):
        if (old.tree / _TOOL).is_dir():
            tool = f"runs its own {_TOOL}"
        else:
            _lend_tool(old, revision)
            tool = f"has no {_TOOL} and runs a copy of this version's"
        print(f"{revision} {tool}; both versions run at the same time", file=sys.stderr, flush=True)
        files = Path(folder, "old.json"), Path(folder, "new.json")
        asyncio.run(_write_both((old, new), files, options))
        return compare(*map(read_entries, files))


def _lend_tool(old: Version, revision: str) -> None:
    """Raise InputError when the revision lacks a module that this version's `project` imports."""
    shutil.copytree(Path(__file__).parent, old.tree / _TOOL)
    try:
        asyncio.run(run([*_command(old), "--help"], deadline=DEADLINE))
    except CommandFailed as error:
        why = str(error).splitlines()[-1]
        raise InputError(
            f"{revision} cannot be compared: it has no {_TOOL}, and this version's does not know its modules ({why})"
        ) from error


async def _write_both(versions: Sequence[Version], files: Sequence[Path], options: Sequence[str]) -> None:
    """The first error ends both."""
    commands = [
        [*_command(version), *options, "--out", str(file)] for version, file in zip(versions, files, strict=True)
    ]
    await asyncio.gather(*(run(command, deadline=DEADLINE) for command in commands))


def _command(version: Version) -> list[str]:
    return [str(version.python), "-P", "-m", "loadtests.same_plans"]
