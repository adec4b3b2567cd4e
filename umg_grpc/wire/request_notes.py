"""Notes about a decoded request: facts that codecs and service pass to one another beside the canonical request."""

from typing import Generic, NamedTuple, TypeVar

import msgspec

from umg_grpc.wire.core.base64_files import EncodedFiles
from umg_grpc.wire.dropped_fields_report import Report

Request = TypeVar("Request")


class RequestNotes(msgspec.Struct, eq=False):
    """Notes about one request. A decoder fills them; after that they are only read. A changed request has new notes."""

    uncarried: list[str] = []
    """Known fields of the body that have no canonical form, by their paths there; an upstream of another format reports
    them as dropped.
    """
    indispensable: list[str] = []
    """Known fields without a canonical form that carry state or change the meaning (`mcp_servers`), and all top-level
    fields of a text request that are unknown to the gateway. An upstream of another format refuses the call with
    UNTRANSLATABLE.
    """
    family: list[str] = []
    """Fields of the body that only models of some family accept, or that a family accepts only in another place, by
    their paths there. The family's rules check them (text document, chat rules 2, 3 and 5).
    """
    opaque_paths: dict[str, str] = {}
    """Canonical path (`messages[1].parts[0]`) -> path in the body of parts of unknown kinds, where the two cannot be
    derived from each other. For error messages only.
    """

    edited: tuple[str, ...] = ()
    """Canonical fields that differ from the source document: a family's rules changed them, or the conversation is
    longer. An upstream of the caller's own format encodes them again.
    """
    files: EncodedFiles | None = None
    """Place for files of the answer that may stay in the provider's base64; None if their bytes are due."""

    def with_edited(self, *fields: str) -> "RequestNotes":
        """Return notes in which these canonical fields are also recorded as changed after decoding."""
        return msgspec.structs.replace(self, edited=tuple(dict.fromkeys([*self.edited, *fields])))

    def report_uncarried(self, report: Report) -> None:
        """Report the fields of an embedding or rerank request without a canonical form (`uncarried`) as dropped, for a
        provider of another format.
        """
        for path in self.uncarried:
            report.drop(path)


NO_NOTES = RequestNotes()
"""Notes of a request without a source document."""


class DecodedRequest(NamedTuple, Generic[Request]):
    """Canonical request decoded from a caller's body, with the notes of its decoding."""

    canonical: Request  # with its source document
    notes: RequestNotes
