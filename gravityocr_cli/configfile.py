"""Flags, environment, configuration file and defaults -> Settings, with the place that each value comes from.

A flag wins over `GRAVITYOCR_*`, the environment over the file given with `--config`, the file over the default. Keys
that nobody knows are errors everywhere: a misspelt one would be a setting silently ignored. No file is looked for
unasked, because one beside a stranger's PDF would be the stranger's.
"""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gravityocr_cli.errors import ConfigError, InputError, UsageError, reason_of
from gravityocr_cli.settings import NAMES, Settings, flag_of, read_value

PREFIX = "GRAVITYOCR_"
DEFAULT = "default"


@dataclass(frozen=True)
class Resolved:
    """The settings, and for each field where its value comes from: a flag, a variable, a file or `default`."""

    settings: Settings
    origins: Mapping[str, str]


def resolve(flags: Mapping[str, Any], environment: Mapping[str, str], config: Path | None = None) -> Resolved:
    """Merges the three places.

    flags: by field name, without those not given. Raises UsageError for a flag, ConfigError for anything else.
    """
    config = config or (Path(environment[f"{PREFIX}CONFIG"]) if environment.get(f"{PREFIX}CONFIG") else None)
    values: dict[str, Any] = {}
    origins = dict.fromkeys(NAMES, DEFAULT)
    layers = [_of_file(config) if config else {}, _of_environment(environment)]
    for layer in layers:
        for name, (origin, value) in layer.items():
            try:
                values[name], origins[name] = read_value(name, value), origin
            except ValueError as error:
                raise ConfigError(f"{origin}: {error}") from None
    for name, value in flags.items():
        try:
            values[name], origins[name] = read_value(name, value), flag_of(name)
        except ValueError as error:
            raise UsageError(f"{flag_of(name)}: {error}") from None
    settings = Settings(**values)
    if settings.password_file is not None and _rank(origins["password"]) <= _rank(origins["password_file"]):
        settings = replace(settings, password=_first_line(settings.password_file))
        origins["password"] = str(settings.password_file)
    return Resolved(settings, origins)


def _rank(origin: str) -> int:
    """Which of two places wins: a password file named by a flag counts over a password in the environment."""
    if origin == DEFAULT:
        return 0
    return 3 if origin.startswith("--") else 2 if origin.startswith(PREFIX) else 1


def _of_environment(environment: Mapping[str, str]) -> dict[str, tuple[str, Any]]:
    known = {f"{PREFIX}{name.upper()}": name for name in NAMES} | {f"{PREFIX}CONFIG": ""}
    found = {}
    for variable, value in environment.items():
        if variable.startswith(PREFIX) and variable not in known:
            raise ConfigError(f"{variable}: no such setting{_meant(variable, known)}")
        if known.get(variable) and value:  # an empty variable is one that is not set
            found[known[variable]] = (variable, value)
    return found


def _of_file(path: Path) -> dict[str, tuple[str, Any]]:
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({reason_of(error)})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not a TOML file ({error})") from error
    known = {name.replace("_", "-"): name for name in NAMES}
    found = {}
    for key, value in table.items():
        if key not in known:
            raise ConfigError(f"{path}: {key}: no such setting{_meant(key, known)}")
        if isinstance(value, list | dict):
            raise ConfigError(f"{path}: {key}: must be one value")
        found[known[key]] = (f"{path}: {key}", value)
    return found


def _meant(word: str, known: Mapping[str, str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _first_line(path: Path) -> str:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        raise InputError(f"{path}: the password cannot be read ({reason})") from error
    if not lines:
        raise InputError(f"{path}: the password file is empty")
    return lines[0]
