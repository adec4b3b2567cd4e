"""Tasks in the answers of relays, which pass on words, members and whole answers of the maker behind them.

Each protocol reads the members of its own maker first. Facts that these do not state are looked up here, by the tables
of words (`knowledge/task_words.py`) and of members (`knowledge/task_members.py`).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from umg_grpc.errors import UmgError
from umg_grpc.knowledge.task_members import EACH, Path, Role, paths_of
from umg_grpc.knowledge.task_words import Meaning, meaning_of
from umg_grpc.wire.core.media import decode_base64, is_data_url, parse_data_url
from umg_grpc.wire.errors.provider_errors import as_error, unreadable
from umg_grpc.wire.video.provider_task import ProviderResult
from umg_grpc.wire.video.providers.response_decoding import Text, number

MAX_DEPTH = 3
"""Number of wrappers around a task that are opened: that of a relay, of a relay behind it, and of the maker."""
OK_CODES = frozenset({"", "0", "200", "success", "ok"})
"""Codes of an envelope that mean success, in lower case (tigerowo/infinite-canvas, handler/video_task.go)."""
VIDEO = "video/mp4"
ERROR = ("error",)
_NEEDS_KEY = re.compile(r"/videos/[^/?#]+/content(?:[?#]|$)")
"""Pattern of a URL at a relay that only its key can read (tigerowo/infinite-canvas#39)."""
_HTTP = re.compile(r"https?://[^\s/]", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayedTask:
    """Task as an answer of any shape states it; "" and None for facts that it does not state."""

    id: str = ""
    word: str = ""
    meaning: Meaning | None = None
    progress: float | None = None
    """In percent."""
    reason: str = ""
    code: str = ""
    has_error: bool = False
    """Whether the answer states an error, or a code other than success."""
    files: Sequence[ProviderResult] = ()


def read_relayed(body: bytes, protocol: str, task_id: str = "") -> RelayedTask:
    """Return the task in an answer of any shape. `task_id`: selects one task of a list; "" for the first.

    Raise UmgError(UPSTREAM_FAILED) for a body that is not JSON.
    """
    try:
        value: object = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        raise unreadable() from None
    places = _places(value, protocol, task_id)
    place, stated = _stated(places, protocol)
    word, _, after = stated.partition(":")  # `failed: the reason`
    nearest = [place, *(other for other in places if other is not place)]
    code = next(_codes(nearest, protocol), "")
    return RelayedTask(
        id=next(_texts(places, paths_of("id", protocol)), ""),
        word=word,
        meaning=meaning_of(word, protocol),
        progress=percent_of(next(_numbers(nearest, paths_of("progress", protocol)), None)),
        reason=after.strip() or next(_reasons(nearest, protocol), ""),
        code=code,
        has_error=bool(code) or any(_values(places, [ERROR])),
        files=_files(nearest, protocol),
    )


def percent_of(written: Text) -> float | None:
    """Return a progress in percent, written as a number, as text with `%`, or as a fraction below 1; None for none."""
    found = number(written.strip().removesuffix("%") if isinstance(written, str) else written)
    return found * 100 if found is not None and 0 < found < 1 else found


def is_ok(code: object) -> bool:
    """Return whether the code of an envelope means success, or is absent."""
    return code is None or str(code).strip().lower() in OK_CODES


def _places(value: object, protocol: str, task_id: str) -> list[object]:
    """Return the objects and lists in which the members of a task may be, from the outside in."""
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
            if isinstance(inner := each.get(name), dict | list)
        ]
    return found


def _selected(items: Sequence[object], protocol: str, task_id: str) -> object:
    """Return the item of a list of tasks with the id, else the first item."""
    paths = paths_of("id", protocol)
    return next((item for item in items if task_id and task_id in _texts([item], paths)), items[0])


def _stated(places: Sequence[object], protocol: str) -> tuple[object, str]:
    """Return (object with the members of the task, word for its state). An envelope may have a word of its own, for the
    query: of several words, the outermost beside an id is that of the task, else the innermost.
    """
    paths = paths_of("status", protocol)
    found = [(place, word) for place in places if (word := _word([place], paths, protocol))]
    ids = paths_of("id", protocol)
    beside_id = [(place, word) for place, word in found if next(_texts([place], ids), "")]
    return (beside_id or found[-1:] or [(places[0], "")])[0]


def _word(places: Sequence[object], paths: Sequence[Path], protocol: str) -> str:
    """Return the first word of a known meaning, else the first word."""
    words = [value for value in _values(places, paths) if isinstance(value, str) and value.strip()]
    return next((word for word in words if meaning_of(word.partition(":")[0], protocol)), next(iter(words), ""))


def _reasons(places: Sequence[object], protocol: str) -> Iterator[str]:
    """Yield the texts that may be the reason of a failure, without those of an envelope that mean success."""
    for value in _values(places, paths_of("reason", protocol)):
        text = _unpacked(value) if isinstance(value, str) else as_error(value).message
        if text and not is_ok(text) and meaning_of(text, protocol) != "done":
            yield text


def _unpacked(text: str) -> str:
    """Return the message in a text that is an error in JSON, as relays of relays write it; other texts unchanged."""
    text = text.strip()
    if text[:1] != "{":
        return text
    try:
        value: object = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return text
    return as_error(value.get("error", value) if isinstance(value, dict) else value).message or text


def _codes(places: Sequence[object], protocol: str) -> Iterator[str]:
    for value in _values(places, paths_of("code", protocol)):
        if isinstance(value, str | int) and not isinstance(value, bool) and not is_ok(value):
            yield str(value).strip()


def _files(places: Sequence[object], protocol: str) -> list[ProviderResult]:
    """Return the files at the first path that has any, in the place nearest to the task."""
    seconds = number(next(_numbers(places, paths_of("seconds", protocol)), None))
    roles: Sequence[tuple[Role, Callable[[str, float | None], ProviderResult | None]]] = (
        ("file", _file_at),
        ("bytes", _file_of),
    )
    for place in places:
        for role, read_file in roles:
            for path in paths_of(role, protocol):
                texts = list(_texts([place], [path]))
                if found := [file for text in texts if (file := read_file(text, seconds)) is not None]:
                    return found
    return []


def _file_at(address: str, seconds: float | None) -> ProviderResult | None:
    """Return the file at an address; None for a text that is none. A path is that of the relay's own host."""
    if is_data_url(address):
        try:
            mime_type, data = parse_data_url(address, "url")
        except UmgError:
            return None
        return ProviderResult(data=data, mime_type=mime_type or VIDEO, duration_seconds=seconds)
    if (address[:1] == "/" and address[:2] != "//") or (_HTTP.match(address) and _NEEDS_KEY.search(address)):
        return ProviderResult(needs_key=address, duration_seconds=seconds)
    return ProviderResult(url=address, duration_seconds=seconds) if _HTTP.match(address) else None


def _file_of(text: str, seconds: float | None) -> ProviderResult | None:
    try:
        return ProviderResult(data=decode_base64(text, "url"), duration_seconds=seconds)
    except UmgError:
        return None


def _texts(places: Sequence[object], paths: Sequence[Path]) -> Iterator[str]:
    """Yield the non-empty texts at paths, and whole numbers as text. Paths are the outer order, places the inner."""
    for path in paths:
        for value in _values(places, [path]):
            if isinstance(value, str | int) and not isinstance(value, bool) and (text := str(value).strip()):
                yield text


def _numbers(places: Sequence[object], paths: Sequence[Path]) -> Iterator[Text]:
    for value in _values(places, paths):
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            yield value


def _values(places: Sequence[object], paths: Sequence[Path]) -> Iterator[object]:
    for place in places:
        for path in paths:
            yield from _at(place, path)


def _at(value: object, path: Path) -> Iterator[object]:
    """Yield the values at a path; none for a path that the value does not have."""
    if not path:
        if value is not None:
            yield value
    elif path[0] == EACH:
        for item in value if isinstance(value, list) else ():
            yield from _at(item, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _at(value[path[0]], path[1:])
