"""Reads the config for a command: the file that was named, or the built-in one."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import typer

from umg_grpc.config import Config, ConfigError, built_in, parse


def read(path: Path | None, environment: Mapping[str, str]) -> Config:
    """The config. Raises ConfigError, and OSError for a file that cannot be read."""
    if path is None:
        return built_in()
    return parse(path.read_text(encoding="utf-8"), str(path), environment)


def load(path: Path | None) -> Config:
    """The config; a command that cannot have it ends with 2 and says why on standard error."""
    try:
        return read(path, os.environ)
    except ConfigError as error:
        print(error, file=sys.stderr)
    except (OSError, UnicodeDecodeError) as error:
        print(f"{path}: cannot be read: {error}", file=sys.stderr)
    raise typer.Exit(2)
