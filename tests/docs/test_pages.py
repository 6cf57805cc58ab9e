"""The pages are true: links lead somewhere, examples run, and commands print what the pages show."""

from __future__ import annotations

import dataclasses
import re
import shlex
from pathlib import Path

import click
import pytest
from pydantic.alias_generators import to_camel

from matching.registry import known_planners, planner_class
from reactor.cli.commands import plan
from reactor.cli.main import cli
from tests.support.command import command

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/*.md")])
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")
PACKAGES = ("matching", "predictors", "storage", "reactor", "loadtests")
FOLDERS = "|".join((*PACKAGES, "tests", "deploy", "docs"))
PATH = re.compile(rf"(?<![\w./-])((?:{FOLDERS})/[\w./-]*\w)")
OUTSIDE = re.compile(r"(?<![\w./])\.\./\w")
COMMAND = re.compile(
    r"(?:^[$#] (?:sudo )?|`)(?:PYTHONPATH=\. )?(?:\.venv/bin/)?(rematch|make|python -m) ([^#`\n|&]*)", re.MULTILINE
)
SETTING = re.compile(r"^\| `([\w.]+)` \|", re.MULTILINE)
PLAN = re.compile(r"\$ (?:PYTHONPATH=\. )?rematch (plan -f docs/examples/[^#]*)")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def blocks(page: Path, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def examples() -> list[tuple[str, str, str]]:
    """Page, arguments and shown output of every plan that can be made from the repository's own files."""
    found = []
    for page in PAGES:
        for block in blocks(page, "console"):
            for step in re.split(r"^(?=\$ )", block, flags=re.MULTILINE):
                line, _, output = step.partition("\n")
                if (shown := PLAN.match(line)) and output.strip():
                    found.append((name_of(page), shown[1].strip(), output))
    return found


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for path, anchor in LINK.findall(page.read_text()):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name_of(page)} links to {path}"
        assert target.is_relative_to(ROOT), f"{name_of(page)} links to {path}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{name_of(page)} links to {path}#{anchor}"


def sources() -> list[Path]:
    return [path for package in (*PACKAGES, "tests") for path in (ROOT / package).rglob("*.py")]


def test_every_image_is_shown_on_a_page() -> None:
    text = "".join(page.read_text() for page in PAGES)
    assert [image.name for image in (ROOT / "docs" / "images").iterdir() if f"images/{image.name})" not in text] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=name_of)
def test_named_files_and_settings_exist(page: Path) -> None:
    assert [path for path in PATH.findall(page.read_text()) if not (ROOT / path).exists()] == []
    settings = SETTING.findall((ROOT / "docs" / "settings.md").read_text())
    groups = "|".join({name.partition(".")[0] for name in settings if "." in name})
    for name in re.findall(rf"`((?:{groups})\.[a-zA-Z.]*[a-zA-Z])[`:]", page.read_text()):
        assert any(f"{each}.".startswith(f"{name}.") for each in settings), f"{name_of(page)}: {name} is no setting"


def test_nothing_needs_a_folder_outside_the_repository() -> None:
    shown = [(page, block) for page in PAGES for block in blocks(page, "console")]
    code = [(path, path.read_text()) for path in (ROOT / "Makefile", *sources())]
    assert [name_of(path) for path, text in (*shown, *code) if OUTSIDE.search(text)] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=name_of)
def test_commands_exist(page: Path) -> None:
    """Of `rematch` also the options; nothing is run."""
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for program, arguments in COMMAND.findall(page.read_text()):
        words = arguments.replace("...", "").split()
        if program == "make":
            assert words[0] in targets, f"{name_of(page)}: make {words[0]}"
        elif program == "python -m":
            module = ROOT / words[0].replace(".", "/")
            assert module.is_dir() or module.with_suffix(".py").exists(), f"{name_of(page)}: python -m {words[0]}"
        else:
            assert unknown_options(words) == [], f"{name_of(page)}: rematch {arguments}"


def unknown_options(words: list[str]) -> list[str]:
    command: click.Command = cli
    for word in words:
        context = click.Context(command)
        if not isinstance(command, click.Group) or word.startswith("-"):
            break
        command = command.get_command(context, word) or pytest.fail(f"rematch {' '.join(words)}: no command {word}")
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    return [word for word in words if word.startswith("-") and word not in {*known, "-", "-h", "--help"}]


@pytest.mark.parametrize("planner", known_planners())
def test_every_planner_has_a_page_with_its_parameters_and_defaults(planner: str) -> None:
    page = (ROOT / "docs" / "planners" / f"{planner}.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", page, re.MULTILINE))
    for field in dataclasses.fields(planner_class(planner)):  # type: ignore[arg-type]
        name = to_camel(field.name)
        assert name in rows, f"{planner}.md does not explain {name}"
        if isinstance(field.default, int | float | str) and field.default != "":
            default = field.default if isinstance(field.default, str) else f"{field.default:g}"
            shown = str(field.default).lower() if isinstance(field.default, bool) else default
            assert rows[name].strip("`") == shown, f"{planner}.md shows another default of {name}"


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name_of)
def test_python_examples_run(page: Path) -> None:
    for block in blocks(page, "python"):
        names: dict[str, object] = {}
        exec(compile(block, name_of(page), "exec"), names)
        assert names.keys() - {"__builtins__"}, "the example defines nothing"


@pytest.mark.parametrize(("page", "arguments", "shown"), examples())
def test_plans_print_what_the_page_shows(
    page: str,
    arguments: str,
    shown: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """`...` stands for the rest of a line, or for lines. Times differ, and with them the width of columns."""
    for block in blocks(ROOT / page, "python"):
        (tmp_path / "my_plan.py").write_text(block)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(ROOT)
    result = command(monkeypatch, capsys)(*shlex.split(arguments))
    assert result.code == 0, result.err
    assert re.fullmatch(pattern(shown), spaced(result.out)), f"{page} shows something else; now it is:\n{result.out}"


def pattern(shown: str) -> str:
    lines = spaced(shown).split("\n")
    return "\n".join("(?s:.*?)" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") for line in lines)


def spaced(text: str) -> str:
    return "\n".join(
        re.sub(r"\b\d+ ms\b", "N ms", re.sub(r"\s+", " ", line)).strip() for line in text.strip().split("\n")
    )


def test_the_help_of_plan_names_the_same_objects_as_the_readme() -> None:
    """Who leaves some out gets a plan that does not know their constraints."""
    wanted = re.compile(r"kubectl get (nodes,pods,\S+) -A -o json > dump.json")
    assert wanted.findall(plan.help or "") == wanted.findall((ROOT / "README.md").read_text())
