"""Comparison of two configs: settings that a reload applies (`Service.reload`), and settings that need a restart."""

from dataclasses import dataclass, fields, is_dataclass

import msgspec

from umg_grpc.config.config_values import Config

RELOADED_KEYS = frozenset(
    {
        *("channels", "models", "aliases", "fallbacks", "guards", "retries", "breaker", "egress"),
        *("shipped_prices", "price_file", "public_prices", "unpriced", "discovery", "alerts"),
    }
)
"""Keys that a reload applies."""
RELOADED_OF_CHANNELS = frozenset({"overload.queue", "overload.wait"})
"""Keys that a reload applies to the queues of channels. The queue of the process needs a restart for them."""


@dataclass(frozen=True)
class Changes:
    """Changed settings of a reload, as `key` or `section.key`: the applied ones, and the ones that need a restart."""

    applied: tuple[str, ...]
    need_restart: tuple[str, ...]


def changes(started: Config, current: Config, new: Config) -> Changes:
    """Return the settings that differ in the new config, for the report of a reload. `started`: config at the start of
    the process, to which settings that need a restart are compared; `current`: config in effect.
    """
    reloaded = RELOADED_KEYS | RELOADED_OF_CHANNELS
    return Changes(
        applied=tuple(key for key in _changed(current, new) if key in reloaded),
        need_restart=tuple(key for key in _changed(started, new) if key not in RELOADED_KEYS),
    )


def _changed(old: Config, new: Config) -> list[str]:
    found = list[str]()
    for field in fields(Config):
        if not field.compare:
            continue
        before, after = getattr(old, field.name), getattr(new, field.name)
        if before == after:
            continue
        is_section = field.name not in RELOADED_KEYS and type(before) is type(after)
        inner = _names(before) if is_section else []
        found += [f"{field.name}.{name}" for name in inner if getattr(before, name) != getattr(after, name)]
        if not inner:
            found.append(field.name)
    return found


def _names(section: object) -> list[str]:
    if isinstance(section, msgspec.Struct):
        return [field.name for field in msgspec.structs.fields(section)]
    return [field.name for field in fields(section)] if is_dataclass(section) else []
