"""The channels of one call, best first, each with the request as it goes there."""

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from umg_grpc.errors import UmgError
from umg_grpc.routing import PublicModel, Target
from umg_grpc.service import states
from umg_grpc.service.accounts import AccountObject, account_objects, refuse_unknown
from umg_grpc.service.call import Call
from umg_grpc.service.conversations import Continued
from umg_grpc.service.course import Course
from umg_grpc.service.resilience import Resilience
from umg_grpc.service.threads import Thread
from umg_grpc.service.vault import Vault
from umg_grpc.upstream.text import TextCall, TextUpstream
from umg_grpc.v1 import pb
from umg_grpc.wire import FORMATS


class Asked(NamedTuple):
    """What is answered."""

    call: Call
    request: pb.GenerateRequest  # as its caller sent it
    model: PublicModel
    format: str  # the caller's own; "" where the caller filled the request in
    continued: Continued | Thread | None
    several: bool  # whether more than one channel serves the model
    beginning: bytes | None
    """Of its conversation, where it matters which channel has that in its cache."""

    @property
    def whole(self) -> pb.GenerateRequest:
        """The request with the whole conversation."""
        return self.request if self.continued is None else self.continued.request


class Attempt(NamedTuple):
    """A channel to try."""

    target: Target
    request: pb.GenerateRequest  # as the channel is told it: with the conversation that it continues
    call: TextCall
    alone: bool  # whether no other channel serves the model

    @property
    def channel(self) -> str:
        """Its name."""
        return self.target.channel.name


class Made(NamedTuple):
    """Who made what a conversation goes on from."""

    channel: str = ""  # the one whose account has it; "" where none is known
    makers: Mapping[str, str] = MappingProxyType({})  # of the reasoning states that the caller sent, the channels


NOBODY = Made()


async def made(asked: Asked, reasoning: Vault | None) -> Made:
    """Which channel's account can read the state of the request; it matters where there are several."""
    if asked.continued is not None and asked.continued.place.channel:
        return Made(asked.continued.place.channel)
    if not asked.several or reasoning is None or not states.needs(asked.request):
        return NOBODY
    known = await reasoning.restore(asked.call.caller.key_id, asked.request)
    return Made(states.pinned_channel(known), states.makers(known))


class Attempts(Course[Attempt]):
    """The attempts at a text request, first at the channel that made what the request goes on from."""

    def __init__(
        self,
        asked: Asked,
        targets: Sequence[Target],
        upstreams: Mapping[str, TextUpstream],
        shared: Resilience,
        reasoning: Vault | None,
        makers: Mapping[str, str],
        *,
        stream: bool,
    ) -> None:
        """`upstreams`: by channel, as they are when the call begins: a reload may replace them meanwhile. `makers`: see
        `Made`.
        """
        wire_path = FORMATS[asked.format].wire_path if asked.format else None
        super().__init__(asked.call, asked.model.id, targets, wire_path, shared, asked.request.model)
        self._asked = asked
        self._reasoning = reasoning
        self._makers = makers
        self._stream = stream
        self._upstreams = upstreams

    def _mended(self, attempt: Attempt, error: UmgError) -> bool:
        """Whether all that failed was that the provider has forgotten what is continued: it is then told the whole
        conversation.
        """
        match self._asked.continued:
            case Continued() as continued:
                mended = continued.mends(attempt.request, error)
            case Thread() as thread:
                mended = thread.mends(attempt.request, attempt.channel, error)
            case _:
                mended = False
        if mended:
            self._targets.insert(0, attempt.target)
        return mended

    async def _attempt(self, target: Target) -> Attempt:
        """The request as it goes to the channel. Raises UmgError, also where the caller wants all of it said."""
        request = await self._request(target)
        try:
            return await self._prepared(request, target)
        except UmgError as error:
            place = error.metadata.get("field", "")
            if (written := self._asked.request.source.opaque_paths.get(place)) is None:
                raise
            message = error.message.replace(place, written)
            raise error.saying(message, field=written) from None

    async def _prepared(self, request: pb.GenerateRequest, target: Target) -> Attempt:
        size = len(request.source.body) or request.ByteSize()
        if size < self._upstreams[target.channel.name].slow_bytes:
            attempt, objects = self._prepare(request, target)
        else:
            attempt, objects = await asyncio.to_thread(self._prepare, request, target)
        if objects:
            made = dict[str, str]()
            if self._reasoning is not None:
                made = await self._reasoning.channels_of(self._call.caller.key_id, [named.id for named in objects])
            refuse_unknown(objects, made, attempt.channel)
        self._tell(attempt.call.report)
        return attempt

    def _prepare(self, given: pb.GenerateRequest, target: Target) -> tuple[Attempt, Sequence[AccountObject]]:
        """The attempt, and what it names of the channel's account that another caller may keep there. What the channel
        is not told is nobody's secret, and the response that is continued is this caller's.
        """
        channel = target.channel
        request = states.without_states_of_others(given, channel.name, self._makers)
        upstream = self._upstreams[channel.name]
        call = upstream.prepare(request, target.model, stream=self._stream, quirks=target.quirks)
        if request is not given:
            call.report.drop("state")
        attempt = Attempt(target, request, call, self._only)
        if channel.shared_objects:
            return attempt, ()
        if not (objects := account_objects(request)):
            return attempt, ()
        known = {"previous_response_id"} if self._asked.continued is not None else set[str]()
        known.update(call.report.dropped)
        return attempt, [named for named in objects if named.field not in known]

    async def _request(self, target: Target) -> pb.GenerateRequest:
        """What to tell a channel. One of the caller's own format gets the caller's own words; one where the continued
        response lives, its id; any other the whole conversation, with what its models thought in it.
        """
        request, channel = self._asked.request, target.channel
        same = self._asked.format in channel.protocols
        match self._asked.continued:
            case Continued() as continued:
                request = continued.told_to(channel.name, same=same)
            case Thread() as thread:
                request = thread.told_to(channel.name, keeps=same and target.quirks.keeps_threads)
        goes_on = request.previous_response_id or request.thread.previous_response_id
        if goes_on and self._asked.continued is not None:
            return request  # the provider has the rest
        if self._reasoning is None or not (states.may_be_stripped(request) if same else states.needs(request)):
            return request
        spoken = self._asked.format if same else next((name for name in channel.protocols if name in FORMATS), "")
        thoughts = target.quirks.takes_thoughts(spoken)
        if same and not thoughts:
            return request
        restored = await self._reasoning.restore(self._call.caller.key_id, request, channel.name, thoughts=thoughts)
        if same and restored is not request:
            restored.source.edited_fields.append(states.THOUGHTS)
        return restored
