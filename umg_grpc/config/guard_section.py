"""Guards, which check requests and responses: reads and checks the config section `guards`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec

from umg_grpc.config.config_values import GuardRow
from umg_grpc.config.fallback_section import problem_of_model
from umg_grpc.config.file_sections import ConfigEntry, Seconds
from umg_grpc.config.model_index import ModelIndex
from umg_grpc.config.typed_sections_from_yaml import any_of, read_entry
from umg_grpc.config.value_parsers import url
from umg_grpc.config.yaml_document import Path, YamlDocument
from umg_grpc.knowledge.sensitive_text_patterns import (
    GUARDED_PATTERNS,
    MAX_BLANKS,
    PATTERN_SETS,
    WORDS_SET,
    GuardedPattern,
    folded,
)
from umg_grpc.operations import OPERATION_ROWS

GUARD_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
PATTERN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}")
GUARD_TARGET = re.compile(r"[^\s/:@]+:[0-9]{1,5}|\[[0-9a-fA-F:]+\]:[0-9]{1,5}|unix:.+")
WORD_BLANKS = r"[\s\pZ]+"
"""White space between the words of a phrase."""
PUNCTUATION_MARK = re.compile(r"[!-/:-@\[-`{-~]")
MAX_WORDS = 5000  # compile within a second
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
GUARDED_OPERATIONS = tuple(dict.fromkeys(row.scope for row in OPERATION_ROWS))
"""Operations that guards may be restricted to."""


class Windows(ConfigEntry, frozen=True):
    """Windows in which the text of a streamed response is checked, in characters."""

    window: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = GuardRow.window
    """New characters that are checked together. A stream is checked as a whole by a window that is longer than it."""
    hold_back: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = GuardRow.hold_back
    """Last characters of a window that the caller does not get before they were checked with the next window, too."""


class GuardEntry(ConfigEntry, frozen=True, kw_only=True):
    """Keys that every kind of guard has."""

    name: str
    """Name in headers, records and metrics: lower-case letters, digits, `-` and `_`."""
    on: Annotated[tuple[Literal["request", "response"], ...], msgspec.Meta(min_length=1)] = GuardRow.phases
    """Parts of a call that it checks."""
    models: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] = GuardRow.models
    """Ids of the models whose calls it checks, in which `*` matches any characters."""
    operations: tuple[str, ...] = ()
    """Operations that it checks; empty for all."""
    keys: tuple[str, ...] = ()
    """Names of the API keys whose calls it checks, in which `*` matches any characters; empty for all."""
    stream: Windows = Windows()


class PatternGuardEntry(GuardEntry, frozen=True, kw_only=True, tag="patterns", tag_field="kind"):
    """Guard by regular expressions, which runs in the gateway itself."""

    sets: tuple[str, ...] = ()
    """Sets of shipped patterns: `secrets`, `cards`, `emails`."""
    words: Annotated[
        tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=200)], ...], msgspec.Meta(max_length=MAX_WORDS)
    ] = ()
    """Words and phrases, found in upper and lower case, and with any white space between the words."""
    patterns: dict[str, str] = msgspec.field(default_factory=dict)
    """Name -> regular expression in the syntax of RE2. The name is a part of the mask."""
    action: Literal["mask", "refuse"] = "mask"
    """Whether a found text is masked, or the request or response refused."""


class RemoteGuardEntry(GuardEntry, frozen=True, kw_only=True):
    """Keys of guards outside the gateway, which the gateway calls."""

    headers: dict[str, str] = msgspec.field(default_factory=dict)
    """Headers, or metadata of gRPC, of each call, for example with a key."""
    timeout: Seconds = GuardRow.timeout
    """Most seconds of a check."""
    on_failure: Literal["open", "closed"] = GuardRow.on_failure
    """Whether the content passes (`open`) or the call fails (`closed`) if the guard fails or is too slow."""
    content: bool = False
    """Whether it also gets the whole message of a request or response, with its media."""
    replaces: bool = True
    """Whether it may change texts. Neighbours in the list that may not (`false`) decide at the same time."""


class WebhookGuardEntry(RemoteGuardEntry, frozen=True, kw_only=True, tag="webhook", tag_field="kind"):
    """Guard at a URL, which gets the messages of `umg.v1.GuardService` as JSON."""

    url: str
    """URL to which each check is posted."""


class GrpcGuardEntry(RemoteGuardEntry, frozen=True, kw_only=True, tag="grpc", tag_field="kind"):
    """Guard that serves `umg.v1.GuardService`."""

    target: str
    """Address, HOST:PORT or unix:PATH."""
    tls: bool = False
    """Whether the connection uses TLS, by the system's authorities."""


GUARD_KINDS: Mapping[str, type[GuardEntry]] = {
    str(kind.__struct_config__.tag): kind for kind in (PatternGuardEntry, WebhookGuardEntry, GrpcGuardEntry)
}
"""Value of the key `kind` -> the other keys of a guard."""


def guards(
    document: YamlDocument, written: object, aliases: Mapping[str, str], served: ModelIndex | None
) -> Iterator[GuardRow]:
    """Yield the valid guards of the section, in their order, and report invalid ones.

    `aliases`: model id of each alias; `served`: index of the channels' models, None if a channel is unreadable.
    """
    if not isinstance(written, list):
        return
    names = set[str]()
    for position, value in enumerate(written):
        path: Path = ("guards", position)
        kind = value.get("kind") if isinstance(value, dict) else None
        if not isinstance(value, dict) or not isinstance(kind, str) or kind not in GUARD_KINDS:
            document.problem(path, f"expected a mapping with `kind`, {any_of(tuple(GUARD_KINDS))}")
            continue
        rest = {key: each for key, each in value.items() if key != "kind"}
        if (entry := read_entry(document, path, rest, GUARD_KINDS[kind])) is None:
            continue
        if not GUARD_NAME.fullmatch(entry.name):
            document.problem((*path, "name"), "expected lower-case letters, digits, `-` and `_`, at most 32")
        if entry.name in names:
            document.problem((*path, "name"), f"expected another name; `{entry.name}` stands before")
        names.add(entry.name)
        for at, model in enumerate(entry.models):
            if "*" not in model and (problem := problem_of_model(model, aliases, served)) is not None:
                document.problem((*path, "models", at), problem)
        for at, operation in enumerate(entry.operations):
            if operation not in GUARDED_OPERATIONS:
                document.problem((*path, "operations", at), f"expected {any_of(GUARDED_OPERATIONS)}")
        yield _guard(document, path, kind, entry)


def _guard(document: YamlDocument, path: Path, kind: str, entry: GuardEntry) -> GuardRow:
    guard = GuardRow(
        name=entry.name,
        kind=kind,  # type: ignore[arg-type]  # one of `GUARD_KINDS`
        phases=entry.on,
        models=entry.models,
        operations=entry.operations,
        keys=entry.keys,
        window=entry.stream.window,
        hold_back=entry.stream.hold_back,
    )
    if isinstance(entry, PatternGuardEntry):
        return replace(guard, patterns=tuple(_rows(document, path, entry)), action=entry.action)
    if not isinstance(entry, RemoteGuardEntry):
        return guard
    _check_headers(document, path, entry.headers)
    guard = replace(
        guard,
        headers=MappingProxyType(entry.headers),
        timeout=entry.timeout,
        on_failure=entry.on_failure,
        content=entry.content,
        replaces=entry.replaces,
    )
    if isinstance(entry, WebhookGuardEntry):
        return replace(guard, address=url(document, (*path, "url"), entry.url))
    if isinstance(entry, GrpcGuardEntry):
        if not GUARD_TARGET.fullmatch(entry.target):
            document.problem((*path, "target"), "expected HOST:PORT or unix:PATH")
        return replace(guard, address=entry.target, tls=entry.tls)
    return guard


def _rows(document: YamlDocument, path: Path, entry: PatternGuardEntry) -> Iterator[GuardedPattern]:
    if not (entry.sets or entry.words or entry.patterns):
        document.problem(path, "expected `sets`, `words` or `patterns`")
    for at, name in enumerate(entry.sets):
        if name not in PATTERN_SETS:
            document.problem((*path, "sets", at), f"expected {any_of(PATTERN_SETS)}")
    yield from (row for row in GUARDED_PATTERNS if row.set in entry.sets)
    for at, word in enumerate(entry.words):
        if word.strip():
            yield _word(word)
        else:
            document.problem((*path, "words", at), "expected a word")
    for name, pattern in entry.patterns.items():
        if not PATTERN_NAME.fullmatch(name):
            document.problem((*path, "patterns", name), "expected a name of letters, digits and `_`, at most 32")
        if (problem := _problem_of(pattern)) is not None:
            document.problem((*path, "patterns", name), problem)
        else:
            yield GuardedPattern(name=name, pattern=f"(?:{pattern})", most=max(1, entry.stream.hold_back))


def _word(word: str) -> GuardedPattern:
    """Return the pattern for a word, or for a phrase, whose words may be separated by any white space."""
    # a boundary of RE2 is one of ASCII words
    parts = word.split()
    before, after = (r"\b" if each.isascii() and each.isalnum() else "" for each in (parts[0][0], parts[-1][-1]))
    begin = " ".join(map(folded, parts))
    return GuardedPattern(
        name="word",
        set=WORDS_SET,
        pattern=before + WORD_BLANKS.join(PUNCTUATION_MARK.sub(r"\\\g<0>", part) for part in parts) + after,
        begins=(begin,),
        most=len(begin) + (len(parts) - 1) * MAX_BLANKS + 1,
        ignores_case=True,
    )


def _problem_of(pattern: str) -> str | None:
    """Return the problem of a regular expression that the operator wrote; None if it is valid."""
    import re2  # its library is slow to import, and few configs need it

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        stated = error.args[0].decode(errors="replace") if error.args and isinstance(error.args[0], bytes) else error
        return f"expected a regular expression of RE2, which has no look-around and no backreferences: {stated}"
    if compiled.groups:
        return "expected a regular expression without groups; write (?:...) in place of (...)"
    return "expected a regular expression that matches no empty text" if compiled.search("") is not None else None


def _check_headers(document: YamlDocument, path: Path, headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if not HEADER_NAME.fullmatch(name):
            document.problem((*path, "headers", name), "expected the name of a header")
        elif not value.isascii() or not value.isprintable():
            document.problem((*path, "headers", name), "expected printable ASCII on one line")
