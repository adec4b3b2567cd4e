"""Reader of a submission's JSON body into a canonical request; it keeps each field's path in the body for errors."""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.families.video_model_rules import DOCUMENTED_MODELS
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.core.json_decoding import (
    INT64_MAX,
    NonEmpty,
    check_numbers,
    check_utf8,
    invalid,
    is_present,
    missing,
    parse,
    whole,
)
from umg_grpc.wire.video.input_media import decode_medium
from umg_grpc.wire.video.video_request_checks import check

Members: TypeAlias = dict[str, Raw]


class Member(NamedTuple):
    """Member of a JSON body: the canonical parameter that it sets, and the type of its value."""

    parameter: str
    kind: type
    """Type of the value: `str`, `bool`, `float`, or one of the types below."""


class WholeNumber:
    """Type marker for integer parameters, which a body may also write as `5.0`."""


class Seconds:
    """Type marker for lengths, which a body writes as an integer or as a string of digits (`"8"`)."""


class JsonText:
    """Type marker for parameters whose JSON is kept byte for byte."""


Fields: TypeAlias = Mapping[str, Member]


def members_of(kind: type, *same: str, **others: str) -> Fields:
    """Return members of one type: those in `same` have the names of their parameters; `others`: member -> parameter."""
    return {name: Member(parameter, kind) for name, parameter in {**{name: name for name in same}, **others}.items()}


LENGTH_MEMBER, MODEL_DECIDES = "duration", b"-1"
"""Field with the length, and the value with which a vendor's model selects the length itself."""


class CreateBody:
    """Reader of a submission's body. Each method moves fields from the body to the request, or raises UmgError with the
    path of the field. Fields that no method takes are kept for the provider.
    """

    def __init__(self, entry: "pb.VideoEntry.ValueType", body: bytes, *, is_form: bool = False) -> None:
        """Decode the top level of a JSON body. `is_form`: it was a form, with strings for numbers and booleans."""
        self.request = pb.CreateVideoTaskRequest(entry=entry)
        self.given = parse(Members, check_utf8(body))
        """All members of the body, including null ones."""
        self._members = {name: raw for name, raw in self.given.items() if is_present(raw)}
        self._is_form = is_form
        self._paths: dict[str, str] = {"parameters.extra_json": ""}
        self._extra: Members = {}

    # --- members

    def take(self, name: str) -> Raw | None:
        """Remove a member from the body, and return its JSON; None if it is absent or null."""
        return self._members.pop(name, None)

    def text(self, name: str) -> str | None:
        """Remove a member that is a string from the body, and return it; None if it is absent or null."""
        raw = self.take(name)
        return None if raw is None else parse(str, raw, name)

    def model(self, name: str = "model") -> str:
        """Remove the model id from the body, set it in the request, and return it. Raise UmgError if it is missing."""
        raw = self.take(name)
        if raw is None:
            raise missing(name)
        self.request.model = parse(NonEmpty, raw, name)
        self._paths["model"] = name
        return self.request.model

    def nested(self, name: str) -> Members:
        """Remove an object, and return its members that are not null; {} if absent. In a form it is a JSON text."""
        raw = self.take(name)
        if raw is None:
            return {}
        if self._is_form and begins(raw, b'"'):
            raw = Raw(parse(str, raw, name).encode())
        if not begins(raw, b"{"):
            raise invalid(name, "expected an object; correct its type")
        return {key: value for key, value in parse(Members, raw, name).items() if is_present(value)}

    @property
    def members(self) -> Members:
        """Members of the body that were not removed yet."""
        return self._members

    # --- parameters

    def read(self, fields: Fields, members: Members | None = None, at: str = "") -> None:
        """Remove the members in `fields` from the object at `at` ("" for the top level), and set their parameters."""
        members = self._members if members is None else members
        for name in [name for name in members if name in fields]:
            parameter, kind = fields[name]
            path = f"{at}.{name}" if at else name
            self.set(parameter, self._value(kind, members.pop(name), path), path)

    def set(self, parameter: str, value: str | float | None, path: str) -> None:
        """Set a parameter. Raise UmgError(INVALID_FIELD) if another field of the body has set a different value."""
        parameters, key = self.request.parameters, f"parameters.{parameter}"
        if (before := self._paths.setdefault(key, path)) != path and getattr(parameters, parameter) != value:
            raise invalid(path, f"it contradicts `{before}`; send one of them")
        setattr(parameters, parameter, value)

    def callback(self, raw: Raw | None, path: str) -> None:
        """Set the URL to which the caller wants notifications, from the value at `path`; None is ignored."""
        if raw is not None:
            self.request.callback_url, self._paths["callback_url"] = parse(str, raw, path), path

    def external_id(self, raw: Raw | None, path: str) -> None:
        """Set the id that the caller chose for the task, from the value at `path`; None is ignored."""
        if raw is not None:
            self.request.external_task_id, self._paths["external_task_id"] = parse(str, raw, path), path

    def keep(self, members: Members, at: str = "") -> None:
        """Add members of the object `at` ("": the top level) without a canonical parameter to the additional fields."""
        self._extra |= members if not at else {at: Raw(msgspec.json.encode(members))} if members else {}

    def keep_open_length(self, members: Members) -> None:
        """Keep the length -1, by which vendors' models select the length, as additional field: no parameter has it."""
        if (chosen := members.get(LENGTH_MEMBER)) is not None and bytes(chosen) == MODEL_DECIDES:
            self.keep({LENGTH_MEMBER: members.pop(LENGTH_MEMBER)})

    def _value(self, kind: type, raw: Raw, path: str) -> str | float | None:
        if self._is_form and kind not in (str, Seconds) and begins(raw, b'"'):
            raw = Raw(parse(str, raw, path).strip().encode())
            try:
                msgspec.json.decode(raw)
            except ValueError:
                raise invalid(path, "expected a number, a boolean or JSON as text; correct its value") from None
        if kind is JsonText:
            return bytes(raw).decode()
        if kind is WholeNumber:
            return whole(parse(float, raw, path), path, INT64_MAX if path.endswith("seed") else MAX_COUNT)
        if kind is Seconds:
            given = parse(str | float, raw, path)  # type: ignore[arg-type]  # a union
            return whole_seconds(given, path)
        value: str | float = parse(kind, raw, path)
        return value

    # --- media

    def images(
        self, raw: Raw, path: str, role: "pb.VideoMediaRole.ValueType" = pb.VIDEO_MEDIA_ROLE_UNSPECIFIED
    ) -> None:
        """Add the image, or list of images, of a member (`path`: its path in the body) to the media."""
        many = begins(raw, b"[")
        texts = parse(list[str], raw, path) if many else [parse(str, raw, path)]
        for position, text in enumerate(texts):
            self.medium(text, f"{path}[{position}]" if many else path, pb.VIDEO_MEDIA_KIND_IMAGE, role)

    def medium(
        self,
        text: str,
        path: str,
        kind: "pb.VideoMediaKind.ValueType",
        role: "pb.VideoMediaRole.ValueType" = pb.VIDEO_MEDIA_ROLE_UNSPECIFIED,
    ) -> None:
        """Add a medium (a URL, data URL or base64) to the media. `path`: its path in the body."""
        media = self.request.parameters.media
        self._paths[f"parameters.media[{len(media)}]"] = path
        self._paths.setdefault("parameters.media", path.partition("[")[0])
        media.append(decode_medium(text, kind, role, path))

    # --- end

    def finish(self, required: Mapping[str, str] | None = None) -> pb.CreateVideoTaskRequest:
        """Return the request, checked by the documented rules of its model; remaining fields become additional fields.
        `required`: canonical field -> path in the body, for errors about missing fields.
        """
        self._extra = {**self._members, **self._extra}
        if self._extra:
            check_numbers(self._extra)
            self.request.parameters.extra_json = msgspec.json.encode(self._extra).decode()
        if self.request.model not in DOCUMENTED_MODELS:
            return self.request
        try:
            return check(self.request)
        except UmgError as error:
            field = error.metadata.get("field", "")
            path = self._paths.get(field) or (required or {}).get(field) or field.removeprefix("parameters.")
            message = error.message
            for named, renamed in ((f"`{field}`", f"`{path}`"), (field, path)):
                if message.startswith(named):
                    message = renamed + message.removeprefix(named)
            raise UmgError(error.reason, message, **{**error.metadata, "field": path}) from None


def begins(raw: Raw, character: bytes) -> bool:
    """Return whether a JSON value begins with a character, which shows its type (`{` for an object)."""
    return memoryview(raw)[:1] == character


def whole_seconds(given: str | float, path: str) -> int | None:
    """Return a length in seconds as an integer from a number or a string of digits. Raise UmgError(INVALID_FIELD) for a
    fraction and for any other text. `path`: path of the value in the body.
    """
    if isinstance(given, str):
        if not (given.isascii() and given.isdecimal() and len(given) < 10):
            raise invalid(path, 'expected whole seconds, such as 4 or "4"; correct its value')
        return int(given)
    return whole(given, path)
