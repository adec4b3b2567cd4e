"""Choice of models for the checks: one of each kind (text, reasoning and others), by options or the model list."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import yaml

from umg_conformance.check_files import Request
from umg_conformance.http_client import HttpCaller

KINDS_FILE = Path(__file__).with_name("kinds.yaml")


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Regular expressions that select a kind's model from the model list: preferred ids, and ids to avoid."""

    prefer: list[str]
    avoid: list[str] = []


class KeyRefusedError(Exception):
    """Error for an API key that the server's model list rejects with 401 or 403."""


def kinds() -> dict[str, Kind]:
    """Return the kinds of models by name, from `kinds.yaml`."""
    return msgspec.convert(yaml.safe_load(KINDS_FILE.read_text(encoding="utf-8")), dict[str, Kind])


def parse_options(options: Sequence[str]) -> dict[str, str]:
    """Parse values of `--model`: `ID` (for text and reasoning) or `KIND=ID`. Return the model of each kind."""
    chosen: dict[str, str] = {}
    for option in options:
        kind, separator, model = option.partition("=")
        if separator and kind in kinds():
            chosen[kind] = model
        else:
            chosen["text"] = option
            chosen.setdefault("reasoning", option)
    return chosen


def choose(listed: Sequence[str], chosen: Mapping[str, str]) -> dict[str, str]:
    """Return kind -> model, for kinds with one, from the options (`chosen`) or else the server's list (`listed`)."""
    found: dict[str, str] = {}
    for name, kind in kinds().items():
        candidates = [model for model in listed if not any(re.search(pattern, model) for pattern in kind.avoid)]
        preferred = (model for pattern in kind.prefer for model in candidates if re.search(pattern, model))
        model = next(preferred, candidates[0] if kind.avoid and candidates else None)
        if model is not None:
            found[name] = model
    return {**found, **chosen}


async def list_models(caller: HttpCaller) -> list[str]:
    """Return the ids of the server's model list; empty without one. Raise KeyRefusedError for a rejected key."""
    response = await caller.call(Request(method="GET", path="/v1/models"))
    if response.status in {401, 403}:
        raise KeyRefusedError(f"the key is refused: {response.status}, {response.message}")
    rows = response.body.get("data") if isinstance(response.body, dict) else None
    return [str(row["id"]) for row in rows if isinstance(row, dict) and "id" in row] if isinstance(rows, list) else []
