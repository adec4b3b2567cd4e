"""Notes about a decoded request: facts that codecs and the service exchange beside the canonical request."""

from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar

import msgspec

from umg_grpc.wire.core.context_management_edits import ContextEdit
from umg_grpc.wire.core.undecoded_base64_files import EncodedFiles
from umg_grpc.wire.dropped_fields_report import Report

Request = TypeVar("Request")


class RequestNotes(msgspec.Struct, eq=False):
    """Facts about a decoded request that has no field for them. The decoder sets them; a changed one gets new notes."""

    uncarried: list[str] = []
    """Body paths of known fields without a canonical form: reported as dropped for a provider of another format."""
    indispensable: list[str] = []
    """Body paths of known fields without a canonical form that change the meaning (`mcp_servers`), and of unknown
    top-level fields of a text request. A call of a provider of another format fails with UNTRANSLATABLE.
    """
    family: list[str] = []
    """Body paths of fields that models of one family alone accept, or accept elsewhere; its rules check them."""
    model_family: str = ""
    """Family of the model by config or id, for the defaults of encoders; "" without a family. The service sets it."""
    opaque_paths: dict[str, str] = {}
    """Canonical path (`messages[1].parts[0]`) of a part of unknown kind -> its body path, if different. For errors."""

    compactions: list[int] = []  # indexes of the messages with a sealed summary that the gateway has to open
    context_edits: tuple[ContextEdit, ...] | None = None
    """Edits of the conversation that the caller requests. The gateway makes them if the provider has no edits."""
    cache_key: str = ""
    """Prompt cache key that the gateway made for a caller whose format has none; "" without one."""
    conversation: str = ""
    """Name that the gateway made for the conversation, for providers that read one from a header; "" without one."""
    client_headers: Mapping[str, str] = {}
    """Headers of the request by lower-case names. A provider may be sent the headers that its own clients send."""
    edited: tuple[str, ...] = ()
    """Names of the canonical fields that differ from the source document: the rules of a family changed them, or
    stored messages were added. They are encoded again for a provider of the caller's own format.
    """
    reads_stream: bool = False
    """Whether guards read the texts of a streamed response. Then the provider's events are not passed through."""
    is_streamed: bool = False
    """Whether the provider is sent a request for a stream, for an operation with one request. The service sets it."""
    files: EncodedFiles | None = None
    """Store for a response's images that may stay in the provider's base64; None if the response must have bytes."""

    def with_cache_key(self, key: str) -> "RequestNotes":
        """Return a copy of the notes with a prompt cache key."""
        return msgspec.structs.replace(self, cache_key=key)

    def with_conversation(self, name: str) -> "RequestNotes":
        """Return a copy of the notes with a name for the conversation."""
        return msgspec.structs.replace(self, conversation=name)

    def with_client_headers(self, headers: Mapping[str, str]) -> "RequestNotes":
        """Return a copy of the notes with the headers of the request."""
        return msgspec.structs.replace(self, client_headers=headers)

    def with_edited(self, *fields: str) -> "RequestNotes":
        """Return a copy of the notes in which `fields` (canonical names) are also recorded in `edited`."""
        return msgspec.structs.replace(self, edited=tuple(dict.fromkeys([*self.edited, *fields])))

    def report_uncarried(self, report: Report) -> None:
        """Report the fields in `uncarried` as dropped, for a provider of another embedding or rerank format."""
        for path in self.uncarried:
            report.drop(path)


NO_NOTES = RequestNotes()  # for a request that was not decoded from a caller's body (gRPC)


class DecodedRequest(NamedTuple, Generic[Request]):
    """Canonical request decoded from a caller's body, with the notes of its decoding."""

    canonical: Request  # with its source document
    notes: RequestNotes
