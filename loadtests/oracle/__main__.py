"""Do we allow what kube-scheduler allows? Random clusters, judged by its own filter plugins.

    python -m loadtests.oracle --seeds 1000
    python -m loadtests.oracle --seeds 5000-6000 --cases .rematch/oracle

Exit code 1 when we allow what kube-scheduler refuses (and it is not an intended difference), or when our side fails.
Each kind of difference is shrunk to a small cluster, in a file that `rematch plan -f` reads.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from loadtests.oracle.run import Run
from reactor.errors import InputError, RematchError


def main() -> int:
    wanted = _parser().parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run = Run(_seeds(wanted.seeds), wanted.cases, cautious=wanted.cautious)
    except RematchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    try:
        asyncio.run(run.run())
    except KeyboardInterrupt:
        print("interrupted; this is what was found so far", file=sys.stderr)
    except RematchError as error:
        print(run.report())
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(run.report())
    return 0 if run.result.clean and run.result.clusters else 1


def _seeds(text: str) -> range:
    first, dash, last = text.partition("-")
    if not first.isdigit() or (dash and not last.isdigit()):
        raise InputError(f"--seeds is {text!r}; write how many clusters, such as 1000, or which, such as 5000-6000")
    seeds = range(int(first), int(last)) if dash else range(int(first))
    if not seeds:
        raise InputError(f"--seeds {text} are no clusters at all")
    return seeds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m loadtests.oracle", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seeds", default="200", help="how many random clusters, or which: 200 by default")
    parser.add_argument("--cases", type=Path, default=Path(".rematch/oracle"), help="where the small clusters go")
    parser.add_argument("--cautious", action="store_true", help="shrink unnamed cautious differences, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
