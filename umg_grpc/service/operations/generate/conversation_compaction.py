"""Compaction of a conversation: the model itself writes the summary. The gateway encrypts the summary for the caller's
key, and decrypts it when the caller sends it back.
"""

from collections.abc import Iterable

import msgspec

from umg_grpc.access.conversation_summary_seals import SummarySeals
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.service.operations.generate.conversation_truncation import (
    CUT_NOTICE,
    Truncation,
    replace_oldest,
    user_turn,
)
from umg_grpc.v1 import pb
from umg_grpc.wire.core.request_usage_sums import add_usage
from umg_grpc.wire.core.sealed_summaries import SEALED_PREFIX, summary_text
from umg_grpc.wire.facts_beside_request import RequestNotes

COMPACTION_REQUEST = (
    "The context of this conversation is nearly full, and it will be continued from a summary alone. Write that "
    "summary now, as a hand-off to another assistant that takes over the work: the task and all requirements and "
    "preferences of the user; what was done, found and decided, with the names of files, commands, identifiers and "
    "values that matter; what is left to do, and the next step. Be complete and exact. Answer with the text of the "
    "summary alone, and call no tools."
)
"""Text of the user's turn that requests the summary."""
ENDED_EARLY = "[The summary ends here, because it reached the maximum length of an answer.]"
"""End of a summary that was cut, for the model that reads it."""
CUT_SHORT = frozenset({pb.FINISH_REASON_LENGTH, pb.FINISH_REASON_CONTEXT_FULL})
STOPPED_REASONS = frozenset({pb.FINISH_REASON_CONTENT_FILTER, pb.FINISH_REASON_REFUSAL, pb.FINISH_REASON_RECITATION})
"""Ends of a response whose text is not the summary: a refusal, or the beginning of one that was blocked."""


class Summary(msgspec.Struct, eq=False):
    """Request for a summary of the conversation of one call, which is changed after refusals. The caller's tools stay
    in it: some providers refuse tool calls in a conversation without tools, and prompts with the same beginning are
    cached. If the model calls a tool, the request is sent once more with tools forbidden.
    """

    _truncation: Truncation  # of the conversation, for the gateway's own request
    instructions: str = ""
    """Text of the caller about the summary, which is added to the request for it."""
    _forbids_tools: bool = False
    _used: pb.Usage | None = None  # by earlier responses that were no summary
    _unable: frozenset[str] = frozenset()  # channels whose providers refused to compact the conversation themselves

    def is_made_by(self, channel: str) -> bool:
        """Return whether the channel's provider compacts conversations itself, and has not refused this one."""
        return channel not in self._unable

    def request(self) -> pb.GenerateRequest:
        """Return the request that is sent to the model in place of the caller's."""
        request = pb.GenerateRequest()
        request.CopyFrom(self._truncation.conversation)
        _remove_form(request)
        if self.is_cut:
            replace_oldest(request, self._truncation.begin, user_turn(CUT_NOTICE))
        request.messages.append(
            user_turn(f"{COMPACTION_REQUEST}\n\n{self.instructions}" if self.instructions else COMPACTION_REQUEST)
        )
        if self._forbids_tools:
            own = [tool for tool in request.tools if tool.HasField("function") or tool.HasField("custom")]
            request.ClearField("tools")
            request.tools.extend(own)
            request.tool_choice.Clear()
            if own:
                request.tool_choice.mode = pb.TOOL_CHOICE_MODE_NONE
        if request.tool_choice.mode != pb.TOOL_CHOICE_MODE_NONE:
            request.ClearField("tool_choice")  # no call may be forced
        return request

    def recovers_from(self, channel: str, error: UmgError, *, is_own: bool) -> bool:
        """Return whether the channel may accept another form of the request, which `request` then returns. If the
        provider refused to compact, it is the gateway's own request; after an overflow, one without the oldest turns;
        after a tool call, one with tools forbidden. `is_own`: whether the failed request was the gateway's own.
        """
        if not is_own:
            if error.refusal is not None and channel not in self._unable:
                self._unable |= {channel}
                return True
            return False
        if self._truncation.recovers_from(error):
            return True
        if error.failure is Failure.MODEL and self._truncation.conversation.tools and not self._forbids_tools:
            self._forbids_tools = True
            return True
        return False

    def complete(self, response: pb.GenerateResponse, owner: str, seals: SummarySeals) -> pb.Usage:
        """Replace the content of the model's response by one sealed summary, and add the usage of earlier responses
        without a summary. Return the usage of this response alone. Raise UmgError(UPSTREAM_FAILED) for a response
        without a summary. `owner`: id of the caller's key.
        """
        usage, text = self.read(response)
        response.ClearField("candidates")
        sealed = response.candidates.add(finish_reason=pb.FINISH_REASON_STOP).message
        sealed.role = pb.ROLE_ASSISTANT
        sealed.parts.add().compaction.encrypted_content = SEALED_PREFIX + seals.seal(owner, text)
        return usage

    def read(self, response: pb.GenerateResponse) -> tuple[pb.Usage, str]:
        """Return the usage of a response, and the summary in it. Then add the usage of earlier responses without a
        summary to the response. Raise UmgError(UPSTREAM_FAILED) for a response without a summary.
        """
        usage = pb.Usage()
        usage.CopyFrom(response.usage)
        if self._used is not None:
            add_usage(response.usage, self._used)
        candidate = response.candidates[0] if response.candidates else pb.Candidate()
        parts = [] if candidate.finish_reason in STOPPED_REASONS else candidate.message.parts
        text = "\n\n".join(part.text.text for part in parts if part.HasField("text") and not part.thought).strip()
        if not text:
            self._used = response.usage
            message = "the model wrote no summary of the conversation; try again"
            raise UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).with_failure(Failure.MODEL).with_usage(usage)
        if candidate.finish_reason in CUT_SHORT:
            text = f"{text}\n\n{ENDED_EARLY}"
        return usage, text

    @property
    def is_cut(self) -> bool:
        """Whether the request leaves out the oldest turns of the conversation."""
        return self._truncation.begin > 0


def sealed_messages(request: pb.GenerateRequest) -> list[int]:
    """Return the indexes of a request's messages that contain a sealed summary."""
    return [
        index
        for index, message in enumerate(request.messages)
        if any(part.HasField("compaction") for part in message.parts)
    ]


def opened(
    given: pb.GenerateRequest, indexes: Iterable[int], notes: RequestNotes, owner: str, seals: SummarySeals
) -> pb.GenerateRequest:
    """Return the request with its sealed summaries, in the messages at `indexes`, replaced by texts of the user. Raise
    UmgError(INVALID_FIELD) for a summary that was changed, or that was not sealed for the key with the id `owner`.
    """
    request = pb.GenerateRequest()
    request.CopyFrom(given)
    for index in indexes:
        message = request.messages[index]
        message.role = pb.ROLE_USER
        for position, part in enumerate(message.parts):
            if not part.HasField("compaction"):
                continue
            sealed = part.compaction.encrypted_content
            summary = (
                seals.open(owner, sealed.removeprefix(SEALED_PREFIX)) if sealed.startswith(SEALED_PREFIX) else None
            )
            if summary is None:
                at = f"messages[{index}].parts[{position}]"
                raise _unreadable(notes.opaque_paths.get(at, f"{at}.compaction"))
            part.text.text = summary_text(summary)
    return request


def _remove_form(request: pb.GenerateRequest) -> None:
    """Remove fields that a request for a summary must not have: form of the response, earlier conversation, body."""
    request.ClearField("compaction")
    request.ClearField("response_format")
    request.ClearField("candidate_count")
    request.ClearField("stop_sequences")
    request.ClearField("logprobs")
    request.ClearField("top_logprobs")
    request.ClearField("output_modalities")
    request.ClearField("image_output")
    request.ClearField("audio_output")
    request.ClearField("prediction")
    request.ClearField("search")
    request.ClearField("include")
    request.ClearField("face_hints")
    request.ClearField("previous_response_id")
    request.ClearField("thread")
    request.source.Clear()  # it stays present, so that unanswered calls are completed as for any caller with a body
    request.source.SetInParent()


def _unreadable(at: str) -> UmgError:
    field = f"{at}.encrypted_content"
    message = (
        f"`{field}` cannot be opened: it was changed, or was made for another key or by another gateway; "
        "leave the item out, and send the conversation itself"
    )
    return UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=field)
