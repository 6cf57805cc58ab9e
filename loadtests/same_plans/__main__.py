"""Do two versions of the code decide the same? Fingerprints of thousands of random problems and clusters.

    python -m loadtests.same_plans --against REV
    python -m loadtests.same_plans --out after.json --compare before.json
    python -m loadtests.same_plans --show snapshot-00042

For a change that must not change a decision. Every revision makes its fingerprints with its own version of this
package; the inputs come from seeds, so that all versions get the same. The wording of messages does not count.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from loadtests.same_plans.cases import Coverage, case_by_id, make_case
from loadtests.same_plans.comparison import compare, compare_with_revision, read_entries
from loadtests.same_plans.draw import LEFT_OUT, PLANNERS
from loadtests.same_plans.fingerprint import Entry
from loadtests.same_plans.project import installed_planners, use_compiled_kernels
from reactor.errors import InputError, RematchError


def main() -> int:
    wanted = _parser().parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _run(wanted)
    except RematchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _run(wanted: argparse.Namespace) -> int:
    if wanted.against:
        size = ["--problems", str(wanted.problems), "--snapshots", str(wanted.snapshots)]
        comparison = compare_with_revision(wanted.against, [*size, *["--compiled"] * wanted.compiled])
        print(comparison)
        return 0 if comparison.identical else 1
    if wanted.compiled:
        use_compiled_kernels()
    if wanted.show:
        case = case_by_id(wanted.show)
        print(json.dumps(case.given if wanted.given else case.found, indent=1, sort_keys=True))
        return 0
    if missing := set(installed_planners()) - {*PLANNERS, *LEFT_OUT}:
        raise InputError(f"no random problem uses the planner {', '.join(sorted(missing))}; add it to PLANNERS")
    return _fingerprint(wanted)


def _fingerprint(wanted: argparse.Namespace) -> int:
    coverage = Coverage()
    entries = list(_entries(wanted.problems, wanted.snapshots, coverage))
    if wanted.out:
        document = {"entries": [entry.to_json() for entry in entries], "coverage": coverage.to_json()}
        wanted.out.write_text(json.dumps(document, indent=1) + "\n")
    print(json.dumps(coverage.to_json(), indent=1), file=sys.stderr)
    if wanted.compare is None:
        return 0
    comparison = compare(read_entries(wanted.compare), entries)
    print(comparison)
    return 0 if comparison.identical else 1


def _entries(problems: int, snapshots: int, coverage: Coverage) -> Iterator[Entry]:
    for kind, number in (("problem", problems), ("snapshot", snapshots)):
        began = time.monotonic()
        for at in range(number):
            case = make_case(kind, at)
            coverage.add(case)
            yield case.entry
            if (at + 1) % 100 == 0 or at + 1 == number:
                print(f"{at + 1} of {number} {kind}s, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m loadtests.same_plans", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--problems", type=int, default=2000, help="2000 by default")
    parser.add_argument("--snapshots", type=int, default=1000, help="1000 by default")
    parser.add_argument("--against", metavar="REV", help="compare with that revision; exit code 1 if they differ")
    parser.add_argument("--out", type=Path, help="write the fingerprints to this file")
    parser.add_argument("--compare", type=Path, help="compare with a file of --out; exit code 1 if they differ")
    parser.add_argument("--show", metavar="ID", help="print the result of one case, without words")
    parser.add_argument("--given", action="store_true", help="with --show: print the input instead")
    parser.add_argument("--compiled", action="store_true", help="use the compiled kernels; the result must be the same")
    return parser


if __name__ == "__main__":
    sys.exit(main())
