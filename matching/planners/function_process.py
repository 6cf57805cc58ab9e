"""Calls a user's function in a process of its own, which is killed when it takes too long.

`call_in_process` is for the planner; this module is also the program of that process.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

from matching.parameters import ParameterError
from matching.planners.function_records import Allocate, KseNode, KsePod
from matching.problem import ProblemError

LARGEST_ANSWER = 16 * 1024 * 1024
_CHUNK = 64 * 1024


def call_in_process(path: str, pods: list[KsePod], nodes: list[KseNode], seconds: float) -> object:
    """What the function returned: a mapping of text to text, or the name of another type's. Raises ParameterError when
    it cannot be loaded, and ProblemError when it fails, hangs, ends its process or answers too much."""
    request = {
        "path": path,
        "sys.path": sys.path,
        "pods": [asdict(pod) for pod in pods],
        "nodes": [asdict(node) for node in nodes],
    }
    with subprocess.Popen(
        [sys.executable, "-m", __spec__.name if __spec__ is not None else __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as process:
        try:
            sender = threading.Thread(target=_send, args=(process, json.dumps(request).encode()), daemon=True)
            sender.start()
            return _answer(path, _receive(process, path, seconds), process)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _send(process: subprocess.Popen[bytes], request: bytes) -> None:
    """In a thread: a process that does not read must not hold us."""
    assert process.stdin is not None
    with contextlib.suppress(OSError, ValueError), process.stdin:
        process.stdin.write(request)


def _receive(process: subprocess.Popen[bytes], path: str, seconds: float) -> bytes:
    assert process.stdout is not None
    end, received = time.monotonic() + seconds, bytearray()
    while True:
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            raise ProblemError(f"{path} did not answer within {seconds:g} s and was killed")
        chunk = os.read(process.stdout.fileno(), _CHUNK)
        if not chunk:
            return bytes(received)
        received += chunk
        if len(received) > LARGEST_ANSWER:
            raise ProblemError(f"{path} answered more than {LARGEST_ANSWER >> 20} MiB and was killed")


def _answer(path: str, received: bytes, process: subprocess.Popen[bytes]) -> object:
    try:
        kind, value = json.loads(received)
    except ValueError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1.0)
        raise ProblemError(f"{path} ended its process without an answer (exit code {process.poll()})") from None
    if kind == "not loaded":
        raise ParameterError("path", f"{path!r} {value}")
    if kind == "failed":
        raise ProblemError(f"{path} failed with {value}")
    return value


def load_function(path: str) -> Allocate:
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ParameterError("path", f"cannot be loaded: {error}") from error
    if not callable(found):
        raise ParameterError("path", "is not a function")
    return cast(Allocate, found)


def _called(request: dict[str, Any]) -> tuple[str, object]:
    sys.path[:] = request["sys.path"]
    pods = [KsePod(**pod) for pod in request["pods"]]
    nodes = [KseNode(**{**node, "pods": tuple(KsePod(**pod) for pod in node["pods"])}) for node in request["nodes"]]
    try:
        function = load_function(request["path"])
    except ParameterError as error:
        return "not loaded", error.what
    try:
        answer: object = function(pods, nodes)
    except Exception as error:  # noqa: BLE001 - the planner raises it
        return "failed", f"{type(error).__name__}: {error}"
    if not isinstance(answer, Mapping):
        return "failed", f"an answer of type {type(answer).__name__}; it must be a mapping of pods to nodes"
    return "answer", {str(pod): node if isinstance(node, str) else repr(node) for pod, node in answer.items()}


def main() -> None:
    """What the function prints goes to standard error: standard output is for the answer."""
    answers = os.dup(1)
    os.dup2(2, 1)
    answer = _called(json.loads(sys.stdin.buffer.read()))
    with os.fdopen(answers, "wb") as pipe:
        pipe.write(json.dumps(answer).encode())


if __name__ == "__main__":
    main()
