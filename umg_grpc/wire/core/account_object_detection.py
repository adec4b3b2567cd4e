"""Detection of the members of a caller's body that name an object in the provider's account: a file, a prompt, a cache.

Each format lists the members that contain the caller's own text and the members that name objects. Any other member is
checked by its name (`knowledge_id`, `data_sources`) and by its value (`gs://...`, `projects/...`, `file-abc123`). So a
member newer than this build passes unless it looks like the name of an object.

The decoders here take the last value of a repeated member of a JSON object, while a provider may take its first. So
every value of a repeated member is checked, and no exemption applies to its object.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from typing import NamedTuple, TypeAlias, assert_never
from urllib.parse import unquote, urlsplit

import msgspec

UNKNOWN_OBJECT = "?"
"""Id that is reported for JSON that cannot be decoded."""

Members: TypeAlias = Mapping[str, object]


class NamedObject(NamedTuple):
    """Object in a provider's account (a file, for example) that a request names: its id, and the path of the member."""

    path: str
    """Path of the member in the caller's body; the canonical path if there is no body (gRPC)."""
    id: str


class _Kind(Enum):
    """Rule by which the value of a member is checked for the id of an object. The member's name selects the rule."""

    FREE = auto()  # the caller's own JSON: not checked
    WORDS = auto()  # a string is the caller's own text; objects and lists are checked
    VALUE = auto()  # a string is checked by its value
    ADDRESS = auto()  # a string names an object unless it is a public address
    REFERENCE = auto()  # a string names an object; objects and lists are checked
    STORE = auto()  # every string in it names an object


_ID_WORDS = frozenset({"id", "ids", "uuid", "uuids", "guid", "guids", "arn", "arns"})
_ADDRESS_WORDS = frozenset({"uri", "uris", "file", "files"})

LABEL_WORDS = frozenset(
    {
        *("user", "session", "chat", "customer", "tenant", "client", "device", "workspace", "profile", "installation"),
        *("trace", "span", "request", "correlation", "run", "turn", "experiment", "continuation"),
        *("call", "use", "tool", "caller", "token", "tab", "download", "cell", "speaker"),
    }
)
"""Words before `id` in names of labels, that is, of users, calls, traces, and parts of the request itself."""

_STORES = frozenset(
    {
        *("datastore", "datastores", "data_store", "data_stores", "datasource", "datasources", "data_source"),
        *("data_sources", "vector_store", "vector_stores", "search_stores", "store_names", "stores"),
        *("knowledge", "knowledge_base", "knowledge_bases", "corpus", "corpora", "dataset", "datasets"),
        *("bucket", "buckets", "collection", "collections", "collection_name", "collection_names"),
        *("index_name", "index_names", "connector", "connectors", "notebook", "notebooks"),
    }
)
"""Last words of member names that name a store."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PUBLIC = ("http", "https", "ws", "wss")
_ADDRESS = re.compile(r"\s*([A-Za-z][A-Za-z0-9+._-]{1,40}):(?:/|(?<=urn:)|(?<=arn:))")  # `C:/` is a drive
_RESOURCE = re.compile(
    r"/{0,2}(?:projects|locations|files|cachedContents|fileSearchStores|ragCorpora|corpora|tunedModels|batches|"
    r"collections|dataStores|reasoningEngines|organizations|folders|operations|generatedFiles|"
    r"interactions)/[\w/.:@%~-]+"
)
_PATH_NAMES = re.compile(r"files/(?![a-z0-9-]{1,64}$)")  # a path in a file tree, not a file at the provider
_PREFIXED = re.compile(
    r"\s*(?:file|asst|vs|vsf|cntr|cfile|container|conv|resp|msg|rs|ig|pmpt|skill|batch|thread|"
    r"agent|sesn|env|memstore|vlt|msgbatch|ftjob|ft|eval|ckpt|upload|run|wf|video)"
    r"[-_](?=[a-z0-9]*\d)[a-z0-9]{6,}\s*",
    re.IGNORECASE,
)
_PROVIDER_FILE = re.compile(r"(?:^|/)v\d\w*/+(?:files|cachedContents|fileSearchStores)/", re.IGNORECASE)
_PROVIDER_HOSTS = (".googleapis.com", ".cloud.google.com")
_OPEN_HOSTS = frozenset({"storage.googleapis.com"})  # hosts of files that are public
_MAX_NAME_CHARACTERS = 2048  # characters of an object's name; texts, media and addresses may be longer
_MAX_KINDS = 4096
_NUMBERS = (int, float)
_CHECKED_TYPES = (str, dict, list, *_NUMBERS)
_UNCHECKED = {  # types whose values name no object, by the kind of the member; most members are among them
    _Kind.FREE: (object,),
    _Kind.WORDS: (str, *_NUMBERS),
    _Kind.VALUE: _NUMBERS,
}


_MAX_PLAIN_BYTES = 65_536  # a longer body is seldom plain, and a test for nothing would take longer than it saves


class _PlainMessage(msgspec.Struct, forbid_unknown_fields=True):
    """Message whose role and content are strings, in which no member can name an object of an account."""

    role: str
    content: str


PLAIN_TEXTS = (
    *((name, str) for name in ("model", "instructions", "system")),
    ("input", str | list[_PlainMessage]),
    ("stop", str | list[str]),
)
PLAIN_OTHERS = (
    ("messages", list[_PlainMessage]),
    *((name, int) for name in ("max_tokens", "max_completion_tokens", "max_output_tokens", "n", "seed")),
    *((name, float) for name in ("temperature", "top_p")),
    ("stream", bool),
    ("stream_options", dict[str, bool]),
)


class RepeatedMembers(dict[str, object]):
    """JSON object that repeats a member: a mapping member -> last value, with all (name, value) pairs in `every`."""

    def __init__(self, every: list[tuple[str, object]]) -> None:
        super().__init__(every)
        self.every = every
        """Each (name, value) pair in the order of the text, repetitions included."""


def decode_every(body: bytes | str) -> object:
    """Return the value of a JSON text; each object in it that repeats a member is a `RepeatedMembers`, which has all
    values. Raise ValueError or RecursionError for a text that cannot be decoded.
    """
    text = body.encode() if isinstance(body, str) else body
    value: object = msgspec.json.decode(text)
    # Each member has a colon, and decoding drops the colons of repeated members: so nearly all bodies are decoded once.
    if b"\\u003" not in text and text.count(b":") == msgspec.json.encode(value).count(b":"):
        return value
    repeating: object = json.loads(text, object_pairs_hook=_object, parse_int=float)
    return repeating


def _object(every: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(every)
    return members if len(members) == len(every) else RepeatedMembers(every)


def _items(members: Members) -> Iterable[tuple[str, object]]:
    return members.every if isinstance(members, RepeatedMembers) else members.items()


def is_public(address: str) -> bool:
    """Return whether an address is public HTTP or a data URL; False for hosts of providers' stores of files."""
    if address[:5].lower() == "data:":
        return True
    try:
        parts = urlsplit(address.strip())
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return False
    if parts.scheme.lower() not in ("http", "https") or not host:
        return False
    if f".{host}".endswith(_PROVIDER_HOSTS) and host not in _OPEN_HOSTS:
        return False
    return _PROVIDER_FILE.search(unquote(parts.path)) is None


def looks_like_object(text: str) -> bool:
    """Return whether a string looks like the id or address of an object in a provider's account (`file-...`)."""
    if (address := _ADDRESS.match(text)) is not None:
        return address[1].lower() not in _PUBLIC or (address[1][:4].lower() == "http" and not is_public(text))
    if len(text) > _MAX_NAME_CHARACTERS:
        return False
    if _RESOURCE.fullmatch(text) is not None:
        return _PATH_NAMES.match(text) is None
    return _PREFIXED.fullmatch(text) is not None


def _never_passes(name: str, members: Members, parent: str) -> bool:
    return False


_At: TypeAlias = "tuple[_At, str, int] | None"


OBJECT_WORDS = frozenset(
    {
        *("model", "type", "role", "name", "title", "display_name", "description", "filename", "status"),
        *("text", "content", "thinking", "refusal", "reasoning_content", "data", "file_data", "stop"),
        *("user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "service_tier", "task"),
        *("token", "signature", "authorization", "authorization_token", "encrypted_content"),
    }
)
"""Members, in several formats, whose strings are the caller's own text, settings or secrets."""


@dataclass(frozen=True)
class ObjectRules:
    """Rules of one format to find ids of objects in a provider's account in a body. A body with an object can be sent
    to that account only. Names of members are in snake case; names in bodies are converted before they are looked up.
    """

    free: frozenset[str] = frozenset()
    """Members with JSON of the caller: arguments, schemas, labels."""
    words: frozenset[str] = OBJECT_WORDS
    """Members whose strings are the caller's own text or settings."""
    maps: frozenset[str] = frozenset()
    """Members that are maps: the caller chooses the names in them, and the strings are the caller's own text."""
    references: frozenset[str] = frozenset()
    passes: Callable[[str, Members, str], bool] = _never_passes
    """Function of (name of a reference, sibling members, name of the parent member). It returns whether the id only
    labels the item that contains it, and does not name an object of an account.
    """
    is_output: Callable[[Members, bool], bool] | None = None
    """Function of (members, whether they are in a turn of the model): whether they are the output of a provider's own
    tool. An id in that output gives no access to the object. None for a format whose providers run no tools.
    """
    _kinds: dict[str, tuple[_Kind, str, tuple[type, ...]]] = field(default_factory=dict, compare=False, repr=False)

    def is_plain(self, body: bytes) -> bool:
        """Return whether a body has only texts and settings, so that it names no object of an account. This is a fast
        test for most bodies: False also for a long body, or if the test cannot exclude an object.
        """
        if len(body) > _MAX_PLAIN_BYTES:
            return False
        try:
            self._plain_decoder.decode(body)  # each value of a repeated member must have the type
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return False
        return True

    @cached_property
    def _plain_decoder(self) -> msgspec.json.Decoder[msgspec.Struct]:
        texts = [each for each in PLAIN_TEXTS if self._kind_of(each[0]) in (_Kind.WORDS, _Kind.FREE)]
        members = [(name, type_, None) for name, type_ in (*texts, *PLAIN_OTHERS)]
        return msgspec.json.Decoder(msgspec.defstruct("PlainBody", members, forbid_unknown_fields=True))

    def in_body(self, body: bytes, skipped: Collection[str] = ()) -> list[NamedObject]:
        """Return the objects of an account that a body names. A body that cannot be decoded gives one object with the
        id `UNKNOWN_OBJECT`. `skipped`: top-level members that are not checked, since they are not forwarded unchanged.
        """
        try:
            members = decode_every(body)
        except (ValueError, RecursionError):
            return [NamedObject("", UNKNOWN_OBJECT)]
        if not isinstance(members, dict):
            return [NamedObject("", UNKNOWN_OBJECT)]
        found = list[NamedObject]()
        self._members(members, "", None, found, False, skipped)
        return found

    def in_json(self, text: str, *, from_model: bool = False) -> list[NamedObject]:
        """Return the objects of an account that a JSON value within a body names. One object with the id
        `UNKNOWN_OBJECT` stands for a text that cannot be decoded. `from_model`: whether the value belongs to a message
        of the model.
        """
        try:
            value = decode_every(text)
        except (ValueError, RecursionError):
            return [NamedObject("", UNKNOWN_OBJECT)]
        found = list[NamedObject]()
        self._value(value, _Kind.VALUE, "", None, found, from_model)
        return found

    def _members(
        self,
        members: Members,
        parent: str,
        at: _At,
        found: list[NamedObject],
        from_model: bool,
        skipped: Collection[str] = (),
    ) -> None:
        repeats = isinstance(members, RepeatedMembers)
        if not repeats and self.is_output is not None and self.is_output(members, from_model):
            return
        from_model = from_model or (not repeats and members.get("role") == "assistant")
        kinds = self._kinds
        for name, value in _items(members):
            kind, plain, unchecked = kinds.get(name) or self._kind(name)
            if isinstance(value, unchecked) or name in skipped:
                continue
            if not (kind is _Kind.REFERENCE and not repeats and self.passes(plain, members, parent)):
                self._value(value, kind, plain, (at, name, -1), found, from_model)

    def _value(
        self, value: object, kind: _Kind, name: str, at: _At, found: list[NamedObject], from_model: bool
    ) -> None:
        if isinstance(value, str):
            if _names_object(value, kind):
                found.append(NamedObject(_path(at), value))
        elif isinstance(value, list):
            for index, each in enumerate(value):
                if isinstance(each, _CHECKED_TYPES):
                    self._value(each, kind, name, _element(at, index), found, from_model)
        elif isinstance(value, dict):
            if kind is _Kind.STORE or name in self.maps:
                inside = kind if kind is _Kind.STORE else _Kind.WORDS
                for inner, each in _items(value):
                    if inner != "type":
                        self._value(each, inside, "", (at, inner, -1), found, from_model)
            else:
                self._members(value, name, at, found, from_model)
        elif kind in (_Kind.REFERENCE, _Kind.STORE) and isinstance(value, int | float) and not isinstance(value, bool):
            found.append(NamedObject(_path(at), str(value)))  # some providers read a number as the string

    def _kind(self, name: str) -> tuple[_Kind, str, tuple[type, ...]]:
        """Return (rule, name in snake case, types of values that are not checked) for a member's name, cached."""
        plain = "_".join(word.lower() for word in _WORD.findall(name))
        if len(self._kinds) >= _MAX_KINDS:  # bounded, because callers choose the names
            self._kinds.clear()
        kind = self._kind_of(plain)
        found = self._kinds[name] = (kind, plain, _UNCHECKED.get(kind, (type(None),)))
        return found

    def _kind_of(self, name: str) -> _Kind:
        if name in self.free:
            return _Kind.FREE
        if name in self.words:
            return _Kind.WORDS
        if name in self.references or name == "id":
            return _Kind.REFERENCE
        words = name.split("_")
        if words[-1] in _ID_WORDS:
            return _Kind.WORDS if len(words) > 1 and words[-2] in LABEL_WORDS else _Kind.REFERENCE
        if words[-1] in _ADDRESS_WORDS:
            return _Kind.ADDRESS
        if any("_".join(words[-count:]) in _STORES for count in (1, 2)):
            return _Kind.STORE
        return _Kind.VALUE


def _names_object(text: str, kind: _Kind) -> bool:
    match kind:
        case _Kind.WORDS | _Kind.FREE:
            return False
        case _Kind.VALUE:
            return looks_like_object(text)
        case _Kind.ADDRESS:
            return bool(text) and not is_public(text)
        case _Kind.REFERENCE | _Kind.STORE:
            return bool(text)
        case unhandled:
            assert_never(unhandled)


def _element(at: _At, index: int) -> _At:
    if at is None or at[2] >= 0:
        return (at, "", index)
    return (at[0], at[1], index)


def _path(at: _At) -> str:
    pieces = list[str]()
    while at is not None:
        at, name, index = at
        pieces.append(name if index < 0 else f"{name}[{index}]")
        if at is not None and name:
            pieces.append(".")
    return "".join(reversed(pieces))
