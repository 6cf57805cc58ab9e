"""Whatever a meter sends, it is a message that is believed or a reason why not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.signals.latency_messages import LONGEST, LatencyMessage, Refusal, encode_message, parse_message

GOOD: dict[str, Any] = {
    "namespace": "edge",
    "pod": "app-1",
    "uid": "u1",
    "timestamp": "2026-11-18T12:00:00.250Z",
    "rttSeconds": 0.2,
    "loss": 0.0,
    "requests": 5,
}


def encoded(**changes: Any) -> bytes:
    return msgspec.json.encode({**GOOD, **changes})


def test_what_is_encoded_is_parsed() -> None:
    message = LatencyMessage(namespace="edge", pod="a", uid="u", timestamp="2026-11-18T12:00:00Z", rtt_seconds=0.1)
    parsed = parse_message(encode_message(message))
    assert not isinstance(parsed, Refusal)
    assert parsed[0] == message


@pytest.mark.parametrize(
    ("payload", "refusal"),
    [
        (b"", Refusal.MALFORMED),
        (b"{", Refusal.MALFORMED),
        (b"[" * 3000, Refusal.MALFORMED),
        (b"\xff\xfe", Refusal.MALFORMED),
        (encoded(pod="x" * LONGEST), Refusal.MALFORMED),
        (encoded(timestamp="yesterday"), Refusal.MALFORMED),
        (encoded(timestamp="2026-11-18T12:00:00"), Refusal.MALFORMED),
        (encoded(uid=7), Refusal.MALFORMED),
        (encoded().replace(b"0.2", b"NaN"), Refusal.MALFORMED),
        (encoded(rttSeconds=-0.1), Refusal.OUT_OF_RANGE),
        (encoded(rttSeconds=0), Refusal.OUT_OF_RANGE),
        (encoded(rttSeconds=61), Refusal.OUT_OF_RANGE),
        (encoded(loss=1.5), Refusal.OUT_OF_RANGE),
        (encoded(jitterSeconds=-1), Refusal.OUT_OF_RANGE),
        (encoded(requests=-1), Refusal.OUT_OF_RANGE),
    ],
)
def test_nonsense_is_refused_with_a_reason(payload: bytes, refusal: Refusal) -> None:
    assert parse_message(payload) is refusal


@given(st.binary(max_size=600))
def test_any_bytes_are_refused_or_parsed(payload: bytes) -> None:
    parse_message(payload)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(sorted(GOOD)), _JSON))
def test_any_values_are_refused_or_in_range(changes: dict[str, Any]) -> None:
    parsed = parse_message(encoded(**changes))
    if not isinstance(parsed, Refusal):
        rtt = parsed[0].rtt_seconds
        assert rtt is None or 0 < rtt <= 60
        assert 0 <= parsed[0].loss <= 1
