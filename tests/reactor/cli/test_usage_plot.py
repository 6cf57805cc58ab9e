"""The forecast in the terminal's chart: a band per horizon beside what was measured, with its numbers below."""

from __future__ import annotations

import csv
import io

from reactor.cli.history_usage import as_csv
from reactor.cli.usage_plot import plot
from reactor.record.usage_reader import UsageAxis, UsageDocument, UsageForecast

START = 1_700_006_400.0
MADE = START + 7200.0
FORECAST = UsageForecast(MADE, (MADE + 300, MADE + 3600), (1.0, 2.0), (2.0, 4.0), ("calibrated", "uncalibrated"))
TIMES = tuple(START + 60.0 * minute for minute in range(120))
MEASURED = (1.0,) * len(TIMES)
DOCUMENT = UsageDocument(
    "pod",
    "shop/web-1",
    60,
    TIMES,
    (UsageAxis("cpu", "cores", MEASURED, MEASURED, FORECAST), UsageAxis("memory", "bytes", MEASURED, MEASURED)),
)


def test_the_band_is_beside_the_chart_and_no_line_is_longer() -> None:
    cpu, memory, legend = plot(DOCUMENT, 80).split("\n\n")[1:]
    lines = cpu.splitlines()
    assert [line.partition("┊")[2] for line in lines[1:7]] == [
        "     ░░░",
        "     ░░░",
        "     ░░░",
        " ░░░ ███",
        " ▄▄▄ ███",
        " ███ ███",
    ]
    assert lines[1].split()[0] == "4", "the scale has room for the peaks"
    assert lines[7].endswith("  5m  1h")
    assert lines[8] == "forecast: in 5m 1 (at most 2, calibrated); in 1h 2 (at most 4, uncalibrated)"
    assert max(map(len, lines[:8])) <= 80
    assert "┊" not in memory
    for sign in ("· maximum", "░ up to the peak", "uncalibrated: "):
        assert sign in legend
    assert "lower bound" not in legend


def test_a_line_per_horizon_in_csv() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(DOCUMENT))))
    assert len(rows) == 122
    assert (rows[0]["cpu_mean"], rows[0]["cpu_forecast"]) == ("1.0", "")
    last = rows[-1]
    assert last["time"] == "2023-11-15T03:00:00Z"
    assert (last["cpu_mean"], last["cpu_forecast"], last["cpu_peak"], last["cpu_trust"]) == (
        "",
        "2.0",
        "4.0",
        "uncalibrated",
    )
    assert last["memory_forecast"] == ""
