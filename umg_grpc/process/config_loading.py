"""Config of a command: of a file, of the environment, or built in. YAML is imported only if there is a file."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

if TYPE_CHECKING:
    from umg_grpc.config import Config, Storage


PRICE_FILE = "prices.json"


class FromEnvironment:
    """Marker in place of a config file: the config has a channel for each provider whose key is in the environment."""

    def __str__(self) -> str:
        return "environment"


FROM_ENVIRONMENT = FromEnvironment()
FoundT = TypeVar("FoundT")
ConfigSource = Path | FromEnvironment | None
"""File of a config, or the environment; None for the built-in config."""


def read(source: ConfigSource, environment: Mapping[str, str], data: Path) -> "Config":
    """Return the config from a file, from the environment, or the built-in one (None). Public prices come from the file
    that it names, or else from the file in the data directory. Raises ConfigError, also for an environment without a
    provider's key, and OSError for a file that cannot be read.
    """
    return with_price_file(_read(source, environment), data)


def with_price_file(config: "Config", data: Path) -> "Config":
    """Return the config with the prices in its price file. Raise ConfigError for a file without usable rows."""
    from umg_grpc.config import ConfigError, Problem

    path = price_file(config, data)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return config
    from umg_grpc.knowledge.operator_price_files import read_price_file

    try:
        return replace(config, public_prices=read_price_file(content))
    except ValueError as error:
        raise ConfigError([Problem(str(path), 1, "", f"{error}; write it again with `umg prices update`")]) from None


def price_file(config: "Config", data: Path) -> Path:
    """Return the path of the file with public prices, which need not exist."""
    return data / PRICE_FILE if config.price_file is None else Path(config.price_file)


def _read(source: ConfigSource, environment: Mapping[str, str]) -> "Config":
    from umg_grpc.config import ConfigError, Problem, built_in, parse
    from umg_grpc.config.importers.from_environment import config_text, found_providers
    from umg_grpc.process.channel_file_checks import installed_clouds

    if source is None:
        return built_in()
    if isinstance(source, FromEnvironment):
        clouds = installed_clouds()
        if not found_providers(environment, clouds):
            expected = "expected the key of a provider, for example OPENAI_API_KEY; `umg providers` lists all"
            raise ConfigError([Problem(str(source), 1, "", expected)])
        return parse(config_text(environment, clouds), str(source), environment)
    return parse(source.read_text(encoding="utf-8"), str(source), environment)


def flags(source: ConfigSource) -> tuple[str, ...]:
    """Return the flags of `umg serve` for a worker with this source of the config; empty for the built-in one."""
    if isinstance(source, FromEnvironment):
        return ("--from-env",)
    return ("--config", str(source)) if source is not None else ()


def load(source: ConfigSource, data: Path) -> "Config":
    """Return the config from a file, the environment, or the built-in one (None), with the public prices in the data
    directory. If it is invalid, print its problems to standard error and exit with 2.
    """
    return _usable(source, lambda: read(source, os.environ, data))


def load_without_prices(source: ConfigSource) -> "Config":
    """Return the config as `load` does, but without the prices in a file, which may be unusable."""
    return _usable(source, lambda: _read(source, os.environ))


def load_storage(file: Path | None) -> "Storage":
    """Return the storage settings of a config file, or of the built-in config. Print problems, and exit with 2."""
    if file is None:
        from umg_grpc.config.config_values import Storage

        return Storage()
    from umg_grpc.config import parse_storage

    return _usable(file, lambda: parse_storage(file.read_text(encoding="utf-8"), str(file), os.environ))


def _usable(source: ConfigSource, read_config: Callable[[], FoundT]) -> FoundT:
    from umg_grpc.config import ConfigError

    try:
        return read_config()
    except ConfigError as error:
        print(error, file=sys.stderr)
    except (OSError, UnicodeDecodeError) as error:
        print(f"{source}: cannot be read: {error}", file=sys.stderr)
    raise typer.Exit(2)
