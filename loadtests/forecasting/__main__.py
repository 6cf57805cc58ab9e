"""Forecasts on real series against the bars: python -m loadtests.forecasting --data FOLDER [--folder OUT] [--only SET]

Takes about 15 minutes of CPU. Writes forecasts.json, forecasts.csv and forecasts.html, and prints the tables of
docs/forecasting.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from loadtests.forecasting.evaluation import evaluate
from loadtests.forecasting.report import markdown, write_files
from loadtests.forecasting.series_sets import SETS, read_recordings
from loadtests.forecasting.speed import measure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the series of docs/forecasting.md")
    parser.add_argument("--folder", type=Path, default=Path(".rematch/forecasting"), help="for the results")
    parser.add_argument("--only", choices=[each.name for each in SETS], action="append", help="leave out the others")
    parser.add_argument("--no-speed", action="store_true", help="leave out the measurement of speed")
    arguments = parser.parse_args()
    files = [f"{each.file}.csv.gz" for each in SETS]
    missing = [name for name in files if not (arguments.data / name).is_file()]
    if missing:
        parser.error(f"{arguments.data} has no {', '.join(missing)}; docs/forecasting.md names the origins")
    started = time.monotonic()

    def progress(text: str) -> None:
        print(f"{time.monotonic() - started:4.0f} s: {text}", file=sys.stderr, flush=True)

    # First, because the memory of the rest would count as its own.
    speed = None if arguments.no_speed else measure()
    recordings = {each.name: read_recordings(arguments.data, each) for each in SETS}
    evaluations = []
    for which in SETS:
        for refitted in (True, False):
            if arguments.only and which.name not in arguments.only:
                continue
            progress(f"{which.name}, trained on {'its own past' if refitted else 'the other sets'}")
            evaluations.append(evaluate(which, recordings, refitted=refitted))
            write_files(arguments.folder, evaluations, speed)
    progress(f"done, files in {arguments.folder}")
    print(markdown(evaluations, speed))


if __name__ == "__main__":
    main()
