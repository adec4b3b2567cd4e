"""Config of a command: a given file, or the built-in config."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import typer

from umg_grpc.config import Config, ConfigError, built_in, parse


def read(path: Path | None, environment: Mapping[str, str]) -> Config:
    """Return the config. Raises ConfigError, and OSError for a file that cannot be read."""
    if path is None:
        return built_in()
    return parse(path.read_text(encoding="utf-8"), str(path), environment)


def load(path: Path | None) -> Config:
    """Return the config. If it is unusable, print the problems to standard error and exit with 2."""
    try:
        return read(path, os.environ)
    except ConfigError as error:
        print(error, file=sys.stderr)
    except (OSError, UnicodeDecodeError) as error:
        print(f"{path}: cannot be read: {error}", file=sys.stderr)
    raise typer.Exit(2)
