"""`--store`: a file, a URL, or a file with a URL; a password is never an argument."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from reactor.cli.commands import STORE_IN_POD, StoreType
from reactor.cli.main import cli
from storage.place import PostgresqlSchema

URL = "postgresql://me:secret@db/rematch"


@click.command()
@click.option("--store", type=StoreType(), envvar="REMATCH_STORE")
def show(store: object) -> None:
    password = store.url.password if isinstance(store, PostgresqlSchema) else ""
    click.echo(f"{store} {'with' if password else 'without'} a password")


@pytest.mark.parametrize("given", ["rematch.db", "sqlite:///rematch.db"])
def test_a_file(given: str) -> None:
    assert CliRunner().invoke(show, ["--store", given]).output == "rematch.db without a password\n"


def test_a_url_in_the_environment_or_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(f"{URL}\n")
    shown = "postgresql://me@db/rematch (schema rematch) with a password\n"
    assert CliRunner().invoke(show, env={"REMATCH_STORE": URL}).output == shown
    assert CliRunner().invoke(show, ["--store", f"@{file}"]).output == shown
    in_schema = CliRunner().invoke(show, ["--store", f"@{file}"], env={"REMATCH_STORE_SCHEMA": "rematch-1"})
    assert "(schema rematch-1)" in in_schema.output


def test_a_password_is_no_argument() -> None:
    done = CliRunner().invoke(show, ["--store", URL])
    assert done.exit_code == 2
    assert "is given by REMATCH_STORE or by @FILE" in done.output
    assert "secret" not in done.output
    assert CliRunner().invoke(show, ["--store", "postgresql://me@db/rematch"]).exit_code == 0


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = CliRunner().invoke(show, ["--store", f"@{tmp_path / 'none'}"])
    assert done.exit_code == 2
    assert "none, cannot be read: No such file or directory" in done.output


def test_a_store_that_is_not_there_may_be_in_a_pod(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["tune", "--store", str(tmp_path / "none.db")])
    assert done.exit_code == 2
    assert "none.db' does not exist" in done.output
    page = (Path(__file__).parents[3] / "docs" / "tune.md").read_text()
    commands = [line.strip() for line in STORE_IN_POD.splitlines()[1:]]
    assert all(command in done.output for command in commands)
    assert all(f"$ {command}\n" in page for command in commands)
