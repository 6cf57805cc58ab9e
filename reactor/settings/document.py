"""YAML or JSON text to plain values. Duplicate keys are errors, and every error names its path or line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic.alias_generators import to_camel

from reactor.errors import FieldError, SettingsError

MAX_CHARACTERS = 256 * 1024
"""Far more than settings need, and few enough to be read without a noticeable pause."""

_OTHER_INDENTATION = {
    f"expected <block end>, but found {found!r}" for found in ("<block mapping start>", "<block sequence start>")
}
"""yaml's words for it."""

_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = {_TAG + name for name in ("str", "timestamp", "value", "merge")}


def nearest(word: str, known: Sequence[str]) -> str:
    """A hint: the most similar known word, else all known words."""
    close = difflib.get_close_matches(to_camel(word), known, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else f"known here: {', '.join(sorted(known))}"


def path_of(steps: Sequence[str | int]) -> str:
    """Such as `metrics.queries[0]`."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return path.removeprefix(".")


class _Loader(yaml.SafeLoader):
    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Aliases are refused: they can expand a small text to a huge one."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(
                problem="aliases (*name) are not supported; write the value out", problem_mark=self.get_mark()
            )
        return super().compose_node(parent, index)


class Writer(yaml.SafeDumper):
    """Quotes text that the loader would not read back as the same text."""


# In YAML 1.1 1e3 is text; in JSON and elsewhere it is a number.
for _side in (_Loader, Writer):
    _side.add_implicit_resolver(_TAG + "float", re.compile(r"^[-+]?\d+(\.\d+)?[eE][-+]?\d+$"), list("-+0123456789"))


def read_document(text: str) -> Any:
    """Mappings, lists and scalars; None for an empty document. Raises SettingsError."""
    if len(text) > MAX_CHARACTERS:
        raise SettingsError([("", f"the text is longer than {MAX_CHARACTERS} characters; this is not a settings file")])
    try:
        return _Reader(_as_yaml(text)).read()
    except yaml.MarkedYAMLError as error:
        raise SettingsError([("", _syntax_message(error))]) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SettingsError([("", f"line {line}: the character U+{error.character:04X} is not allowed")]) from None
    except RecursionError:
        raise SettingsError([("", "is nested too deeply; this is not a settings file")]) from None


def _as_yaml(text: str) -> str:
    """JSON is YAML except for tabs, which JSON allows between its tokens."""
    text = text.removeprefix("\ufeff")
    return text.replace("\t", " ") if text.lstrip().startswith(("{", "[")) else text


def _syntax_message(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    position = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    problem = error.problem or error.context or "is not YAML"
    if "'\\t'" in problem:
        problem = "a tab cannot be used here; indent with spaces"
    if mark and problem in _OTHER_INDENTATION:
        return f"line {mark.line + 1}: indented differently from the keys above"
    return position + problem


def _kind(node: yaml.Node) -> str:
    if not isinstance(node, yaml.MappingNode):
        return ""
    return next((str(value.value) for key, value in node.value if key.value == "kind"), "")


class _Reader:
    """Builds values from YAML nodes, so that keys stay text and no duplicate is silently overwritten."""

    def __init__(self, text: str) -> None:
        self._loader = _Loader(text)
        self._problems: list[FieldError] = []

    def read(self) -> Any:
        try:
            nodes = self._nodes()
            value = self._value(nodes[0], "") if nodes else None
        finally:
            self._loader.dispose()
        if self._problems:
            raise SettingsError(self._problems)
        return value

    def _nodes(self) -> list[yaml.Node]:
        """The only document, or the only ConfigMap of several, so that a file of manifests can be checked."""
        nodes: list[yaml.Node] = []
        while self._loader.check_node():
            node = self._loader.get_node()
            assert node is not None
            nodes.append(node)
        if len(nodes) < 2:
            return nodes
        config_maps = [node for node in nodes if _kind(node) == "ConfigMap"]
        if len(config_maps) == 1:
            return config_maps
        mark = nodes[1].start_mark
        message = "there is more than one document; give each its own file"
        raise SettingsError([("", f"line {mark.line + 1}, column {mark.column + 1}: {message}")])

    def _value(self, node: yaml.Node, path: str) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item, f"{path}[{index}]") for index, item in enumerate(node.value)]
        assert isinstance(node, yaml.ScalarNode)
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: str) -> dict[str, Any]:
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._problems.append(FieldError(path, f"line {line}: a key must be plain text"))
                continue
            key = key_node.value
            inner = f"{path}.{key}" if path else key
            if key in values:
                self._problems.append(FieldError(inner, f"occurs twice, in lines {lines[key]} and {line}; remove one"))
            lines[key] = line
            values[key] = self._value(value_node, inner)
        return values

    def _scalar(self, node: yaml.ScalarNode, path: str) -> Any:
        # YAML 1.1 reads 1:30 as 90; here it is text.
        if node.tag in _TEXT_TAGS or (node.tag != _TAG + "null" and ":" in node.value):
            return node.value
        reader = {
            _TAG + "null": self._loader.construct_yaml_null,
            _TAG + "bool": self._loader.construct_yaml_bool,
            _TAG + "int": self._loader.construct_yaml_int,
            _TAG + "float": self._loader.construct_yaml_float,
        }.get(node.tag)
        try:
            if reader is not None:
                return reader(node)
        except (ValueError, KeyError, IndexError):
            pass
        line = node.start_mark.line + 1
        self._problems.append(
            FieldError(path, f"line {line}: {node.value[:40]!r} cannot be read as {node.tag.removeprefix(_TAG)}")
        )
        return None


def read_file(path: Path) -> str:
    """The text of a settings file. Raises SettingsError that names the file."""
    try:
        # Reading a pipe or device could block for ever.
        if path.exists() and not path.is_file():
            raise SettingsError([("", "is not a regular file")], str(path))
        with path.open("rb") as file:
            return file.read(4 * MAX_CHARACTERS + 1).decode()
    except UnicodeDecodeError as error:
        raise SettingsError([("", f"is not UTF-8 text (byte {error.start})")], str(path)) from None
    except OSError as error:
        raise SettingsError([("", f"cannot be read: {error.strerror or error}")], str(path)) from None
