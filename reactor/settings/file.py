"""Reading a settings file."""

from __future__ import annotations

from pathlib import Path

from reactor.errors import SettingsError
from reactor.settings.document import MAX_CHARACTERS


def read_file(path: Path) -> str:
    """Raises SettingsError that names the file."""
    try:
        # A pipe or device could keep us waiting for ever.
        if path.exists() and not path.is_file():
            raise SettingsError([("", "is not a regular file")], str(path))
        with path.open("rb") as file:
            return file.read(4 * MAX_CHARACTERS + 1).decode()
    except UnicodeDecodeError as error:
        raise SettingsError([("", f"is not UTF-8 text (byte {error.start})")], str(path)) from None
    except OSError as error:
        raise SettingsError([("", f"cannot be read: {error.strerror or error}")], str(path)) from None
