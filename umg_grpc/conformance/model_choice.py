"""Choice of a model for each kind, from the model list or by option."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import yaml

from umg_grpc.conformance.check_files import Request
from umg_grpc.conformance.http_calls import HttpCaller

KINDS_FILE = Path(__file__).with_name("kinds.yaml")


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Patterns of the ids of one kind of models."""

    prefer: list[str]
    avoid: list[str] = []


class KeyRefusedError(Exception):
    """Error of a model list that refuses the key."""


def kinds() -> dict[str, Kind]:
    """Return the kinds of models."""
    return msgspec.convert(yaml.safe_load(KINDS_FILE.read_text(encoding="utf-8")), dict[str, Kind])


def parse_options(options: Sequence[str]) -> dict[str, str]:
    """Return the models of `--model ID` (text and reasoning) and `--model KIND=ID` by their kinds."""
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
    """Return a model of each kind that has one; `chosen` are those of options."""
    found: dict[str, str] = {}
    for name, kind in kinds().items():
        candidates = [model for model in listed if not any(re.search(pattern, model) for pattern in kind.avoid)]
        preferred = (model for pattern in kind.prefer for model in candidates if re.search(pattern, model))
        model = next(preferred, candidates[0] if kind.avoid and candidates else None)
        if model is not None:
            found[name] = model
    return {**found, **chosen}


async def list_models(caller: HttpCaller) -> list[str]:
    """Return the ids of the model list; none where there is no list. Raise KeyRefusedError if it refuses the key."""
    answer = await caller.call(Request(method="GET", path="/v1/models"))
    if answer.status in {401, 403}:
        raise KeyRefusedError(f"the key is refused: {answer.status}, {answer.message}")
    rows = answer.body.get("data") if isinstance(answer.body, dict) else None
    return [str(row["id"]) for row in rows if isinstance(row, dict) and "id" in row] if isinstance(rows, list) else []
