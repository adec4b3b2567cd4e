"""Judge of the results that the `scenarios` programs print.

A scenario's `expect` has a pattern for the result of a step, by the step's number. Only a step whose pattern has an
`error` may fail. A pattern is compared with a value as follows:

- an object: each of its members with the value's member of that name. The value may have others;
- a list: item by item, and the lengths must be equal;
- any other value: equal, where a number equals its decimal text (int64), and an absent member equals 0, false, "" or
  null, which protobuf omits;
- an object with one member `$RULE`: see `RULES`.

The result of a stream has further members: `text`, `reasoning` and `arguments` of all its events, `kinds` of its events
in their order, `size` of its chunks in bytes. The answer of a generation has `text` and `reasoning` too.

`UMG_SCENARIOS=clients/scenarios.json python -m tests.world.clients.judge < LINES` judges the output of a program.
"""

import base64
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

Json = dict[str, Any]

EMPTY = (None, "", 0, False, "0")
DELTAS = {"text": "textDelta", "reasoning": "reasoningDelta", "arguments": "argumentsDelta"}
PLACES = frozenset({"candidateIndex", "partIndex", "textIndex"})
"""Members of an event that are not its kind."""


def differences(scenario: Json, line: Json) -> list[str]:
    """Return each difference between the results of a scenario and its expectations, none if it passed."""
    expected, results = scenario.get("expect", {}), line["results"]
    if len(results) != len(scenario["steps"]):
        return [f"{len(results)} results of {len(scenario['steps'])} steps"]
    found = []
    for number, result in enumerate(results):
        pattern = expected.get(str(number), {})
        pattern = {"error": {"$absent": True}, "failure": {"$absent": True}, **pattern}
        found += compare(pattern, completed(result), f"step {number}")
    return found


def compare(pattern: Any, value: Any, path: str) -> list[str]:
    if isinstance(pattern, dict) and len(pattern) == 1 and next(iter(pattern)) in RULES:
        [(rule, operand)] = pattern.items()
        return RULES[rule](operand, value, path)
    if isinstance(pattern, dict):
        if not isinstance(value, dict):
            return [f"{path}: {shown(value)} is no object"] if pattern else []
        return [text for name, part in pattern.items() for text in compare(part, value.get(name), f"{path}.{name}")]
    if isinstance(pattern, list):
        items = value or []
        if not isinstance(items, list) or len(items) != len(pattern):
            return [f"{path}: {shown(value)} has not {len(pattern)} items"]
        return [text for n, part in enumerate(pattern) for text in compare(part, items[n], f"{path}.{n}")]
    if equal(pattern, value):
        return []
    return [f"{path}: {shown(value)} is not {shown(pattern)}"]


def equal(expected: Any, value: Any) -> bool:
    """Return whether two values are equal, apart from the ways in which protobuf writes the same value."""
    if expected in EMPTY and value in EMPTY:
        return True
    if isinstance(expected, bool) or isinstance(value, bool):
        return expected is value
    if isinstance(expected, int | float) and isinstance(value, str):
        return str(expected) == value
    return bool(expected == value)


def completed(result: Json) -> Json:
    """Return the result of a step with the members that are computed from its events or its response."""
    if isinstance(result.get("events"), list):
        messages = result["events"]
        events = [event for message in messages for event in message.get("events", [])]
        joined = {name: "".join(event.get(delta, "") for event in events) for name, delta in DELTAS.items()}
        kinds = [kind for event in events for kind in event if kind not in PLACES]
        size = sum(len(base64.b64decode(message.get("chunk", ""))) for message in messages)
        return {**result, **joined, "kinds": [kind for kind, _ in groupby(kinds)], "size": size}
    answer = result.get("answer")
    if isinstance(answer, dict) and answer.get("candidates"):
        parts = answer["candidates"][0].get("message", {}).get("parts", [])
        reasoning = "".join(text for part in parts for text in part.get("reasoning", {}).get("texts", []))
        text = "".join(part.get("text", {}).get("text", "") for part in parts)
        return {**result, "text": text, "reasoning": reasoning}
    return result


def shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}... ({len(text)} characters)"


def check(holds: bool, value: Any, path: str, wish: str) -> list[str]:
    return [] if holds else [f"{path}: {shown(value)} {wish}"]


def number(value: Any) -> float:
    """Return a number that protobuf may have written as text, or not at all."""
    try:
        return float(value or 0)
    except (TypeError, ValueError):
        return float("nan")


def some(pattern: Any, value: Any, path: str) -> list[str]:
    """Return no difference if an item of a list matches, else the differences of the last item."""
    found = [f"{path}: {shown(value)} is empty"]
    for position, item in enumerate(value or []):
        found = compare(pattern, item, f"{path}.{position}")
        if not found:
            break
    return found


def every(pattern: Any, value: Any, path: str) -> list[str]:
    """Return the differences of all items of a list, which must not be empty."""
    if not value:
        return [f"{path}: {shown(value)} is empty"]
    return [text for position, item in enumerate(value) for text in compare(pattern, item, f"{path}.{position}")]


def any_of(patterns: list[Any], value: Any, path: str) -> list[str]:
    """Return no difference if one of the patterns matches."""
    found = [compare(pattern, value, path) for pattern in patterns]
    return [] if [] in found else [text for texts in found for text in texts]


def decoded(pattern: Any, value: Any, path: str) -> list[str]:
    """Compare the number of bytes of a value in base64."""
    return compare(pattern, len(base64.b64decode(value or "")), f"{path} (bytes)")


def parsed(pattern: Any, value: Any, path: str) -> list[str]:
    """Compare the JSON value inside a text."""
    try:
        return compare(pattern, json.loads(value), f"{path} (JSON)")
    except (TypeError, ValueError) as error:
        return [f"{path}: {shown(value)} is no JSON: {error}"]


def near(operand: list[float], value: Any, path: str) -> list[str]:
    """Compare a number with [expected, tolerance]."""
    expected, tolerance = operand
    return check(abs(number(value) - expected) <= tolerance, value, path, f"is not {expected} ± {tolerance}")


RULES: Mapping[str, Callable[[Any, Any, str], list[str]]] = {
    "$absent": lambda operand, value, path: check((value in EMPTY or value in ([], {})) == operand, value, path, "is there" if operand else "is absent"),
    "$matches": lambda operand, value, path: check(isinstance(value, str) and re.search(operand, value) is not None, value, path, f"does not match {operand!r}"),
    "$at_least": lambda operand, value, path: check(number(value) >= operand, value, path, f"is less than {operand}"),
    "$at_most": lambda operand, value, path: check(number(value) <= operand, value, path, f"is more than {operand}"),
    "$near": near,
    "$contains": lambda operand, value, path: check(operand in (value or ()), value, path, f"does not contain {shown(operand)}"),
    "$length": lambda operand, value, path: compare(operand, len(value or ()), f"{path} (length)"),
    "$some": some,
    "$every": every,
    "$any_of": any_of,
    "$last": lambda operand, value, path: compare(operand, (value or [None])[-1], f"{path}.last"),
    "$bytes": decoded,
    "$json": parsed,
    "$all": lambda operand, value, path: [text for pattern in operand for text in compare(pattern, value, path)],
}  # fmt: skip


def main() -> int:
    """Print the differences of each scenario in the lines of standard input. Return the number of failed scenarios."""
    scenarios = json.loads(Path(os.environ["UMG_SCENARIOS"]).read_text())["scenarios"]
    lines = {line["name"]: line for line in map(json.loads, sys.stdin)}
    failed = 0
    only = os.environ.get("UMG_ONLY", "")
    for scenario in scenarios:
        line = lines.get(scenario["name"])
        if only and scenario["name"] not in only.split(","):
            continue
        found = differences(scenario, line) if line else ["it printed no line"]
        failed += bool(found)
        print("FAILED" if found else "passed", scenario["name"], *(f"\n    {text}" for text in found))  # noqa: T201
    return failed


if __name__ == "__main__":
    sys.exit(min(main(), 100))
