"""Types of the check files (YAML), and their reader, which reports the first mistake in a file with its line."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import yaml
from msgspec import UNSET, Meta, UnsetType

from umg_conformance import event_order, response_paths

CHECKS_FOLDER = Path(__file__).with_name("checks")

Severity = Literal["required", "recommended"]
TypeName = Literal["string", "integer", "number", "boolean", "object", "array", "null"]
Auth = Literal["bearer", "x-api-key", "x-goog-api-key", "query", "none", "wrong"]
Name = Annotated[str, Meta(pattern=r"^[a-z0-9_.-]+$")]


class Expectation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Expectation of a response: one subject, which selects values, and the predicates for each value. The subject is
    `path`, `header` (short for `path: headers.NAME`), `order`, `each_line` or `no_line`; all other fields are
    predicates.
    """

    path: str | UnsetType = UNSET
    header: str | UnsetType = UNSET
    order: list[object] | UnsetType = UNSET  # names of events, see event_order
    each_line: str | UnsetType = UNSET  # pattern that each whole line of the body matches
    no_line: str | UnsetType = UNSET  # pattern that no line of the body matches

    optional: bool = False  # whether the value may be absent
    absent: bool | UnsetType = UNSET  # true: there is no value at the path
    type: TypeName | list[TypeName] | UnsetType = UNSET
    equals: object = UNSET
    not_equals: object = UNSET
    one_of: list[object] | UnsetType = UNSET
    matches: str | UnsetType = UNSET
    not_matches: str | UnsetType = UNSET
    at_least: float | str | UnsetType = UNSET  # a number, or a text that is a variable
    at_most: float | str | UnsetType = UNSET
    length: int | UnsetType = UNSET
    min_length: int | UnsetType = UNSET
    contains: object = UNSET  # text in a text, or item of an array
    keys: list[str] | UnsetType = UNSET  # members that an object has, among others
    only_keys: list[str] | UnsetType = UNSET  # the members that an object may have
    json: TypeName | UnsetType = UNSET  # type of the JSON in a text
    base64_multiple: int | UnsetType = UNSET  # base64 whose bytes are a multiple of this number
    same_as: str | UnsetType = UNSET  # path of equal values
    sum_of: list[str] | UnsetType = UNSET  # paths of numbers, of which absent ones count 0
    at_least_sum_of: list[str] | UnsetType = UNSET
    count: int | UnsetType = UNSET  # number of values
    min_count: int | UnsetType = UNSET
    sorted: Literal["ascending", "descending"] | UnsetType = UNSET
    unique: bool | UnsetType = UNSET
    all_equal: bool | UnsetType = UNSET
    counts_from: int | UnsetType = UNSET  # the values are this number and the following ones, without gaps
    joined: object = UNSET  # the texts, one after the other
    joined_matches: str | UnsetType = UNSET
    joined_same_as: str | UnsetType = UNSET  # path of texts whose join is the same


class Check(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Check of the response to a call: it passes if the response meets all its expectations."""

    id: Name
    reason: str
    expect: Annotated[list[Expectation], Meta(min_length=1)]
    source: str = ""  # default: that of the call
    severity: Severity | None = None  # default: that of the call


class FilePart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """File in a multipart form: file name, media type, and content in base64."""

    filename: str
    type: str
    base64: str


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Request that the kit sends: over HTTP by `method` and `path`, or over gRPC if `grpc` is set."""

    method: Literal["GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"] = "POST"
    path: str = ""
    query: dict[str, str] = {}
    headers: dict[str, str] = {}  # over gRPC the metadata
    auth: Auth = "bearer"
    body: object = UNSET  # sent as JSON
    text: str | UnsetType = UNSET  # sent as it is
    form: dict[str, str | FilePart] = {}  # sent as multipart/form-data
    envelopes: bool = False  # body and response have the envelopes of a Connect stream
    grpc: str = ""  # `package.Service/Method`, with `message` in its JSON form
    message: dict[str, object] = {}
    deadline: float | None = None  # seconds


class Poll(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Repetition of a call every `every` seconds until the value at `path` is one of `until`; it fails after `seconds`.
    Only the last response is checked.
    """

    path: str
    until: list[object]
    seconds: float = 300
    every: float = 0.5


class Call(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request with the checks of its response. Every call has a first check, of its `status`."""

    id: Name
    reason: str
    source: str
    request: Request
    status: int | str | list[int | str] = 200
    severity: Severity = "required"
    save: dict[str, str] = {}  # variable of later calls -> path
    poll: Poll | None = None
    checks: list[Check] = []


class CheckFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Content of a check file: the calls for one wire format with their checks, in the order in which they are made."""

    face: Name
    title: str
    calls: Annotated[list[Call], Meta(min_length=1)]
    models: dict[str, str] = {}  # variable -> kind of the model
    values: dict[str, object] = {}  # places of the YAML anchors, and variables with their defaults


class CheckFileError(Exception):
    """Error for an invalid check file. Its text begins with `FILE:LINE:`."""


CHECK_SUBJECTS = ("path", "header", "order", "each_line", "no_line")
PATTERN_KEYS = ("each_line", "no_line", "matches", "not_matches", "joined_matches")
PATH_KEYS = ("path", "same_as", "joined_same_as")
PATH_LISTS = ("sum_of", "at_least_sum_of")

YAML_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Loader of the files; the one in C, where it is installed, is ten times as fast."""

_PLACE = re.compile(r"(.*?)(?: - at `\$?(.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")
Position = tuple[str | int, ...]


def read_folder(folder: Path) -> list[CheckFile]:
    """Read all check files of a folder. Raise CheckFileError for the first mistake."""
    try:
        names = sorted(path for path in folder.iterdir() if path.suffix in {".yaml", ".yml", ".json"})
    except OSError as error:
        raise CheckFileError(f"{folder}: {error.strerror}") from None
    if not names:
        raise CheckFileError(f"{folder}: there is no .yaml, .yml or .json file")
    files: dict[str, CheckFile] = {}
    for path in names:
        made = read(path)
        if made.face in files:
            raise CheckFileError(f"{path}:1: another file of the folder has the face {made.face!r}")
        files[made.face] = made
    return list(files.values())


def read(path: Path) -> CheckFile:
    """Read one check file, in YAML or JSON. Raise CheckFileError for its first mistake."""
    try:
        loader = YAML_LOADER(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        value = loader.construct_document(node) if node is not None else None
    except (OSError, UnicodeDecodeError) as error:
        raise CheckFileError(f"{path}: cannot be read: {error}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise CheckFileError(f"{path}:{line}: expected YAML: {error.problem}") from None
    try:
        made = msgspec.convert(value, CheckFile)
    except msgspec.ValidationError as error:
        found = _PLACE.fullmatch(str(error))
        message, place = found.groups() if found is not None else (str(error), "")
        position = _position(place or "")
        raise CheckFileError(f"{path}:{_line(node, position)}: {_dotted(position)}{message}") from None
    for position, message in _mistakes(made):
        raise CheckFileError(f"{path}:{_line(node, position)}: {_dotted(position)}{message}")
    return made


def _mistakes(made: CheckFile) -> Iterator[tuple[Position, str]]:
    ids: set[str] = set()
    for number, call in enumerate(made.calls):
        here: Position = ("calls", number)
        if bool(call.request.path) == bool(call.request.grpc):
            yield (*here, "request"), "expected `path` (HTTP) or `grpc`, and not both"
        for name in [f"{call.id}.{name}" for name in ("status", *(check.id for check in call.checks))]:
            if name in ids:
                yield (*here, "id"), f"the id {name!r} is used twice"
            ids.add(name)
        for name, path in [*call.save.items(), *([("path", call.poll.path)] if call.poll else [])]:
            yield from _wrong((*here, "save", name), response_paths.parse, path)
        for index, check in enumerate(call.checks):
            for position, expectation in enumerate(check.expect):
                yield from _expectation((*here, "checks", index, "expect", position), expectation)


def _expectation(here: Position, expectation: Expectation) -> Iterator[tuple[Position, str]]:
    subjects = [name for name in CHECK_SUBJECTS if getattr(expectation, name) is not UNSET]
    if len(subjects) != 1:
        yield here, f"expected one of {', '.join(CHECK_SUBJECTS)}, got {' and '.join(subjects) or 'none'}"
    fields = {name: getattr(expectation, name) for name in expectation.__struct_fields__}
    for name in PATTERN_KEYS:
        if fields[name] is not UNSET:
            yield from _wrong((*here, name), re.compile, fields[name])
    for name in PATH_KEYS:
        if fields[name] is not UNSET:
            yield from _wrong((*here, name), response_paths.parse, fields[name])
    for name in PATH_LISTS:
        for path in fields[name] if fields[name] is not UNSET else ():
            yield from _wrong((*here, name), response_paths.parse, path)
    if expectation.order is not UNSET:
        yield from _wrong((*here, "order"), event_order.parse, expectation.order)
    if subjects in (["path"], ["header"]) and all(
        value is UNSET for name, value in fields.items() if name not in {*CHECK_SUBJECTS, "optional"}
    ):
        yield here, "expected a predicate, such as `type: string`"


def _wrong(place: Position, parser: Callable[..., object], value: object) -> Iterator[tuple[Position, str]]:
    try:
        parser(value)
    except (ValueError, re.error) as error:
        message = f"expected a pattern: {error}" if isinstance(error, re.error) else str(error)
        yield place, message


def _position(place: str) -> Position:
    return tuple(
        name or (0 if index == "..." else int(index)) for name, index in (m.groups() for m in _STEP.finditer(place))
    )


def _dotted(position: Sequence[str | int]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in position)
    return f"{text[1:]}: " if text else ""


def _line(node: yaml.Node | None, position: Position) -> int:
    """Return the line of the value at `position` (keys and indexes that lead to it), or of the nearest parent."""
    line = node.start_mark.line if node is not None else 0
    for step in position:
        child: yaml.Node | None = None
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == step:
                    child, line = value, key.start_mark.line
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            child = node.value[step]
            line = child.start_mark.line
        if child is None:
            break
        node = child
    return line + 1
