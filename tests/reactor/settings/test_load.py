from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from reactor.errors import SettingsError
from reactor.settings.load import dump_settings, parse_settings
from reactor.settings.model import (
    Decision,
    Execution,
    Happiness,
    Managed,
    Metrics,
    Mode,
    Planner,
    Prometheus,
    Queries,
    Scope,
    Settings,
    Triggers,
)


def problems(text: str) -> dict[str, str]:
    with pytest.raises(SettingsError) as caught:
        parse_settings(text, "s.yaml")
    assert str(caught.value).startswith("s.yaml: ")
    return dict(caught.value.problems)


@pytest.mark.parametrize("text", ["", "\n", "---\n", "# nothing yet\n", "{}", "null"])
def test_an_empty_document_means_the_defaults(text: str) -> None:
    assert parse_settings(text, "s.yaml") == Settings()


def test_a_key_with_nothing_after_it_is_unset() -> None:
    text = "happiness:\n  threshold:\nplanner:\n  maxMoves: null\nmanaged:\n"
    assert parse_settings(text, "s.yaml") == Settings()


YAML = """
apiVersion: rematch/v1alpha1
kind: Settings
mode: act
happiness:
  threshold: 0.5
  halfLife: 1h30m
"""
EXPECTED = Settings(mode=Mode.ACT, happiness=Happiness(threshold=0.5, half_life=5400.0))


@pytest.mark.parametrize(
    "text",
    [
        YAML,
        YAML.replace("\n", "\r\n"),
        "\ufeff" + YAML,
        '{"mode": "act", "happiness": {"threshold": 0.5, "halfLife": 5400}}',
        '{\n\t"mode":"act",\n\t"happiness":{"threshold":5e-1,"halfLife":"90m"}\n}\n',
        "kind: ConfigMap\napiVersion: v1\nmetadata: {name: rematch}\ndata:\n  settings.yaml: |"
        + YAML.replace("\n", "\n    "),
        json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "data": {"settings.yaml": YAML}}),
    ],
)
def test_yaml_json_and_the_manifest_of_a_config_map_are_read(text: str) -> None:
    assert parse_settings(text, "s.yaml") == EXPECTED


def test_every_error_is_found_with_its_path_and_what_to_write() -> None:
    text = """
apiVersion: rematch/v2
mode: yes
happiness: {threshold: 3, goodwill: .nan, halfLife: .inf, namespaces: {Shop: 0.5, web: true}}
triggers: {evaluationInterval: 0, rematchInterval: soon}
planner: {headroom: 1, maxMoves: 0, scope: all}
execution: {maxMovesInFlight: 1.5, allowLocalData: "true", readyDeadline: 1:30}
managed: {namespaces: [ok, 7], labelSelector: "app in (web"}
metrics: {prometheus: {url: "localhost:9090", timeout: -1}}
history: 7
"""
    assert problems(text) == {
        "apiVersion": 'must be rematch/v1alpha1 (got "rematch/v2")',
        "mode": "must be one of observe, bind, act (got true); YAML reads on and yes as true",
        "happiness.threshold": "must be between 0 and 1 (got 3)",
        "happiness.goodwill": "must be a number of at least 0 (got NaN)",
        "happiness.halfLife": "must be a duration such as 30s or 1h30m, above 0 (got Infinity)",
        "happiness.namespaces.Shop": (
            "'Shop' is not a namespace name; write at most 63 lowercase letters, digits or '-'"
        ),
        "happiness.namespaces.web": "must be a number between 0 and 1 (got true)",
        "triggers.evaluationInterval": "must be above 0 (got 0)",
        "triggers.rematchInterval": "'soon' is not a duration; write e.g. 30s, 5m or 1h30m",
        "planner.headroom": "must be at least 0 and below 1 (got 1)",
        "planner.maxMoves": "must be at least 1 (got 0)",
        "planner.scope": 'must be one of cluster, affected, unhappy (got "all")',
        "execution.maxMovesInFlight": "must be a whole number of at least 1 (got 1.5)",
        "execution.allowLocalData": 'must be true or false (got "true")',
        "execution.readyDeadline": "'1:30' is not a duration; write e.g. 30s, 5m or 1h30m",
        "managed.namespaces[1]": "must be text (got 7)",
        "managed.labelSelector": (
            "'app in (web' is not a label selector: expected ')' but found the end; "
            "write e.g. app=web,tier in (a,b),!canary"
        ),
        "metrics.prometheus.url": "'localhost:9090' is not a URL; write http://HOST:PORT or https://HOST:PORT",
        "metrics.prometheus.timeout": "must be above 0 (got -1)",
        "history": "must be a mapping of keys to values (got 7)",
    }


def test_an_unknown_key_gets_the_nearest_known_one() -> None:
    assert problems("hapiness: {}\nhappiness: {treshold: 1, half_life: 1s, zzz: 1}\nplanner: {name: stabel}\n") == {
        "hapiness": "unknown key; did you mean happiness?",
        "happiness.treshold": "unknown key; did you mean threshold?",
        "happiness.half_life": "unknown key; did you mean halfLife?",
        "happiness.zzz": (
            "unknown key; known here: annotationBounds, goodwill, halfLife, halfLifeProbes, namespaces, threshold,"
            " trustEvents"
        ),
        "planner.name": "no planner 'stabel' is installed; did you mean stable?",
    }


def test_an_unknown_key_with_nothing_after_it_is_not_overlooked() -> None:
    assert problems("hapiness:\n") == {"hapiness": "unknown key; did you mean happiness?"}


def test_a_planner_that_is_not_installed_is_named() -> None:
    assert problems("planner: {name: stabel}") == {
        "planner.name": "no planner 'stabel' is installed; did you mean stable?"
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mode: act\nmode: observe", {"mode": "occurs twice, in lines 1 and 2; remove one"}),
        (
            '{"happiness": {"threshold": 1,\n"threshold": 0}}',
            {"happiness.threshold": "occurs twice, in lines 1 and 2; remove one"},
        ),
        ("happiness:\n\tthreshold: 1", {"": "line 2, column 1: a tab cannot be used here; indent with spaces"}),
        (
            "mode: act\nmanaged:\n    namespaces: [a]\n  labelSelector: b",
            {"": "line 4: indented differently from the keys above"},
        ),
        (
            "mode: off",
            {
                "mode": "must be one of observe, bind, act (got false); YAML reads off and no as false; to stop moves"
                " write observe or bind"
            },
        ),
        ("execution: {windows: [{schedule: 0 2 * * *}]}", {"execution.windows[0].duration": "is missing"}),
        ("mode: act: x", {"": "line 1, column 10: mapping values are not allowed here"}),
        ("a: &x 1\nb: *x", {"": "line 2, column 6: aliases (*name) are not supported; write the value out"}),
        (
            "mode: act\n---\nmode: act",
            {"": "line 3, column 1: there is more than one document; give each its own file"},
        ),
        ("mode: a\0ct", {"": "line 1: the character U+0000 is not allowed"}),
        ("- mode", {"": "must be a mapping of keys to values, such as `mode: observe`"}),
        ("act", {"": "must be a mapping of keys to values, such as `mode: observe`"}),
        ("? [mode]\n: act", {"": "line 1: a key must be plain text"}),
        ("mode: !!python/name:os.system", {"mode": "line 1: '' cannot be read as python/name:os.system"}),
        ("planner: {maxMoves: !!int many}", {"planner.maxMoves": "line 1: 'many' cannot be read as int"}),
        ("a: " + "[" * 400, {"": "is nested too deeply; this is not a settings file"}),
        ("#" * 300_000, {"": "the text is longer than 262144 characters; this is not a settings file"}),
        (
            "kind: ConfigMap\ndata: {config.yaml: x}",
            {"data": "the ConfigMap has no text under the key settings.yaml; put the settings there"},
        ),
        (
            "kind: ConfigMap\ndata:\n  settings.yaml: |\n    mode: act: x",
            {"data.settings.yaml": "line 1, column 10: mapping values are not allowed here"},
        ),
    ],
)
def test_broken_text_is_refused_with_the_position(text: str, expected: dict[str, str]) -> None:
    assert problems(text) == expected


shares = st.floats(0, 1)
numbers = st.floats(0, 1e6)
seconds = st.one_of(
    st.floats(0.001, 1e6), st.integers(1, 10**6).map(float), st.integers(1, 10**7).map(lambda n: n / 1000)
)
names = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
texts = st.text(
    alphabet=st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff\ufffe\uffff"), max_size=30
)

some_settings = st.builds(
    Settings,
    mode=st.sampled_from(Mode),
    scheduler_name=texts,
    managed=st.builds(
        Managed,
        namespaces=st.lists(names, max_size=3).map(tuple),
        label_selector=st.sampled_from(["", "app=web", "tier in (a,b),!canary"]),
        scheduler_name=st.none() | texts,
    ),
    happiness=st.builds(
        Happiness,
        threshold=shares,
        namespaces=st.dictionaries(names, shares, max_size=3),
        half_life=seconds,
        goodwill=numbers,
    ),
    triggers=st.builds(Triggers, evaluation_interval=seconds, rematch_interval=st.just(0.0) | seconds),
    decision=st.builds(
        Decision, minimum_failures=numbers, cooldown=seconds, node_pressure=shares, placement_probability=shares
    ),
    planner=st.builds(
        Planner,
        scope=st.sampled_from(Scope),
        inertia=numbers,
        headroom=st.floats(0, 1, exclude_max=True),
        max_moves=st.none() | st.integers(1, 10**6),
    ),
    execution=st.builds(Execution, max_moves_in_flight=st.integers(1, 100), allow_local_data=st.booleans()),
    metrics=st.builds(
        Metrics,
        prometheus=st.builds(Prometheus, timeout=seconds, queries=st.builds(Queries, pod_cpu=texts)),
        freshness=seconds,
    ),
)


@limits(deadline=None)
@given(some_settings)
def test_what_is_written_is_read_as_the_same(settings: Settings) -> None:
    assert parse_settings(dump_settings(settings), "s.yaml") == settings
    assert parse_settings(settings.model_dump_json(by_alias=True), "s.json") == settings


@limits(deadline=None)
@given(st.text(max_size=60) | st.text(alphabet="{}[]:,'\"&*!|>-? \n\tab1.#%", max_size=40))
def test_any_text_is_settings_or_a_settings_error(text: str) -> None:
    with contextlib.suppress(SettingsError):
        assert isinstance(parse_settings(text, "s.yaml"), Settings)


def test_of_several_manifests_the_only_config_map_counts() -> None:
    shipped = Path(__file__).parents[3] / "deploy" / "rematch.yaml"
    assert parse_settings(shipped.read_text(), "deploy") == Settings()


@pytest.mark.parametrize(
    ("text", "path", "flag"),
    [
        ("metrics: {prometheus: {tokenFile: /token}}", "metrics.prometheus.tokenFile", "--prometheus-token-file"),
        ("metrics: {prometheus: {caFile: /ca}}", "metrics.prometheus.caFile", "--prometheus-ca-file"),
        ("planner: {name: function, parameters: {path: 'os:system'}}", "planner.parameters.path", "--planner-function"),
    ],
)
def test_settings_name_no_file_and_no_code(text: str, path: str, flag: str) -> None:
    found = problems(text)
    assert list(found) == [path]
    assert flag in found[path]


@pytest.mark.parametrize("url", ["https://user:secret@prometheus", "https://a@b", "http://a\\@b", "http://a#@b"])
def test_a_url_holds_no_credentials(url: str) -> None:
    assert "is not a URL" in problems(json.dumps({"metrics": {"prometheus": {"url": url}}}))["metrics.prometheus.url"]


def test_settings_choose_the_planner_function_and_a_flag_says_which_it_is() -> None:
    text = "planner: {name: function}"
    assert parse_settings(text, "s.yaml").planner.parameters == {}
    assert parse_settings(text, "s.yaml", "mine:plan").planner.parameters == {"path": "mine:plan"}
    with pytest.raises(SettingsError, match=r"planner\.name: function needs a function.*--planner-function"):
        parse_settings(text, "s.yaml", "")
