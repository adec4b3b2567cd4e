"""Video and image tasks in responses of relays, which forward words, members and whole responses of providers. The
protocol's own members are read first, others by the tables in `knowledge/task_state_words.py` and
`task_response_members.py`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from umg_grpc.knowledge.task_response_members import EACH_ITEM, Path, paths_of
from umg_grpc.knowledge.task_state_words import Meaning, meaning_of
from umg_grpc.wire.core.base64_media import is_data_url
from umg_grpc.wire.core.split_character_repair import decode
from umg_grpc.wire.errors.provider_errors import as_error, is_ok, unreadable

Written: TypeAlias = str | int | float | None  # as a provider writes a number; None if absent
MAX_DEPTH = 3  # wrappers around a task: of a relay, of a relay behind it, of the provider
ERROR_PATH = ("error",)
_HTTP = re.compile(r"https?://[^\s/]", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayedTask:
    """Task as stated in a response of any shape. A fact that it does not state is "" or None."""

    id: str = ""
    request_id: str = ""  # the task's id if the response has no other id and no error
    word: str = ""
    meaning: Meaning | None = None
    progress: Written = None
    seconds: Written = None  # length of the video
    reason: str = ""
    code: str = ""
    has_error: bool = False  # whether the response states an error, or a code other than success
    addresses: Sequence[str] = ()  # URLs, data URLs, or paths at the relay
    encoded: Sequence[str] = ()  # files in base64, if there are no addresses


_ANY = msgspec.json.Decoder()


def read_relayed(body: bytes, protocol: str, task_id: str = "") -> RelayedTask:
    """Return the task with `task_id` ("": the first). Raise UmgError(UPSTREAM_FAILED) for a body that is not JSON."""
    try:
        value: object = decode(_ANY, bytes(body))
    except (ValueError, RecursionError):
        raise unreadable() from None
    places = _places(value, protocol, task_id)
    place, stated = _stated(places, protocol)
    word, _, after = stated.partition(":")  # `failed: the reason`
    nearest = [place, *(other for other in places if other is not place)]
    addresses = _first(nearest, paths_of("file", protocol), is_address)
    code = next(_codes(nearest, protocol), "")
    return RelayedTask(
        id=next(_texts(places, paths_of("id", protocol)), ""),
        request_id=next(_texts(places, paths_of("request_id", protocol)), ""),
        word=word,
        meaning=meaning_of(word, protocol),
        progress=next(_numbers(nearest, paths_of("progress", protocol)), None),
        seconds=next(_numbers(nearest, paths_of("seconds", protocol)), None),
        reason=after.strip() or next(_reasons(nearest, protocol), ""),
        code=code,
        has_error=bool(code) or any(_values(places, [ERROR_PATH])),
        addresses=addresses,
        encoded=() if addresses else _first(nearest, paths_of("bytes", protocol)),
    )


def _places(value: object, protocol: str, task_id: str) -> list[object]:
    """Return the objects and lists that may contain the members of a task, the outermost first."""
    names = [path[0] for path in paths_of("wrapper", protocol)]
    found, level = list[object](), [value]
    for _ in range(MAX_DEPTH + 1):
        level += [_selected(each, protocol, task_id) for each in level if isinstance(each, list) and each]
        found += level
        level = [
            inner
            for each in level
            if isinstance(each, dict)
            for name in names
            if isinstance(inner := _opened(each.get(name)), dict | list)
        ]
    return found


def _opened(value: object) -> object:
    """Return the object in a text that is JSON, since some relays send results as text; other values unchanged."""
    if not isinstance(value, str) or value[:1] != "{":
        return value
    try:
        found: object = msgspec.json.decode(value)
    except (ValueError, RecursionError):
        return value
    return found


def _selected(items: Sequence[object], protocol: str, task_id: str) -> object:
    paths = paths_of("id", protocol)
    return next((item for item in items if task_id and task_id in _texts([item], paths)), items[0])


def _stated(places: Sequence[object], protocol: str) -> tuple[object, str]:
    paths = paths_of("status", protocol)
    found = [(place, word) for place in places if (word := _word([place], paths, protocol))]
    ids = paths_of("id", protocol)
    beside_id = [(place, word) for place, word in found if next(_texts([place], ids), "")]
    return (beside_id or found[-1:] or [(places[0], "")])[0]


def _word(places: Sequence[object], paths: Sequence[Path], protocol: str) -> str:
    words = [value for value in _values(places, paths) if isinstance(value, str) and value.strip()]
    return next((word for word in words if meaning_of(word.partition(":")[0], protocol)), next(iter(words), ""))


def _reasons(places: Sequence[object], protocol: str) -> Iterator[str]:
    for value in _values(places, paths_of("reason", protocol)):
        text = _unpacked(value) if isinstance(value, str) else as_error(value).message
        if text and not is_ok(text) and meaning_of(text, protocol) != "done":
            yield text


def _unpacked(text: str) -> str:
    value = _opened(text.strip())
    if not isinstance(value, dict):
        return text.strip()
    return as_error(value.get("error", value)).message or text.strip()


def _codes(places: Sequence[object], protocol: str) -> Iterator[str]:
    for value in _values(places, paths_of("code", protocol)):
        if isinstance(value, str | int) and not isinstance(value, bool) and not is_ok(value):
            yield str(value).strip()


def _first(
    places: Sequence[object], paths: Sequence[Path], is_valid: Callable[[str], bool] = lambda _: True
) -> list[str]:
    found = ([text for text in _texts([place], [path]) if is_valid(text)] for place in places for path in paths)
    return next(filter(None, found), [])


def is_address(text: str) -> bool:
    """Return whether a text is the address of a file: a URL, a data URL, or a path at the relay."""
    is_path = text[:1] == "/" and text[:2] != "//"
    return is_path or is_data_url(text) or _HTTP.match(text) is not None


def _texts(places: Sequence[object], paths: Sequence[Path]) -> Iterator[str]:
    for path in paths:
        for value in _values(places, [path]):
            if isinstance(value, str | int) and not isinstance(value, bool) and (text := str(value).strip()):
                yield text


def _numbers(places: Sequence[object], paths: Sequence[Path]) -> Iterator[Written]:
    for value in _values(places, paths):
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            yield value


def _values(places: Sequence[object], paths: Sequence[Path]) -> Iterator[object]:
    for place in places:
        for path in paths:
            yield from _at(place, path)


def _at(value: object, path: Path) -> Iterator[object]:
    if not path:
        if value is not None:
            yield value
    elif path[0] == EACH_ITEM:
        for item in value if isinstance(value, list) else ():
            yield from _at(item, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _at(value[path[0]], path[1:])
