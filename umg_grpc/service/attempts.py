"""The channels of one call, best first, each with the request as it goes there."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from umg_grpc.errors import UmgError
from umg_grpc.routing import Target
from umg_grpc.service import states
from umg_grpc.service.accounts import AccountObject, account_objects, refuse_unknown
from umg_grpc.service.admission import Admitted
from umg_grpc.service.call import Call
from umg_grpc.service.channels import Channels
from umg_grpc.service.choice import Choice, nearest_first
from umg_grpc.service.conversations import Continued
from umg_grpc.service.vault import Vault
from umg_grpc.upstream.text import TextCall
from umg_grpc.v1 import pb
from umg_grpc.wire import FORMATS

# What providers say of an id that they no longer know.
FORGOTTEN = frozenset({"previous_response_not_found"})


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


class Attempts(Choice[Attempt]):
    """Hands out the channels of a text request, that first which made what the request goes on from."""

    def __init__(
        self,
        call: Call,
        admitted: Admitted,
        channels: Channels,
        reasoning: Vault | None,
        *,
        continued: Continued | None = None,
        stream: bool,
    ) -> None:
        targets, model = channels.router.channels(admitted.resolved.model.id), admitted.resolved.model.id
        spoken = admitted.request.source.format
        wire_path = FORMATS[spoken].wire_path if spoken else None
        super().__init__(call, model, nearest_first(targets, spoken), wire_path)
        self._admitted = admitted
        self._continued = continued
        self._reasoning = reasoning
        self._stream = stream
        self._upstreams = channels.text  # which a reload may replace meanwhile
        self._begun = self._only
        self._forgotten = False  # whether the provider of the continued response no longer knows it
        self._makers: Mapping[str, str] = {}  # of the reasoning states that the caller sent, the channels

    async def next(self) -> Attempt | None:
        """See `Choice`."""
        if not self._begun:
            self._begun = True
            await self._prefer_the_maker()
        return await super().next()

    def again(self, attempt: Attempt, error: UmgError) -> bool:
        """Whether `next` will try the attempt's channel once more, since all that failed was that its provider has
        forgotten the response that is continued: it is then told the whole conversation.
        """
        if not attempt.request.previous_response_id or self._continued is None:
            return False
        if error.metadata.get("upstream_status") != "404" and error.metadata.get("upstream_code") not in FORGOTTEN:
            return False
        self._forgotten = True
        self._targets.appendleft(attempt.target)
        return True

    async def _prefer_the_maker(self) -> None:
        """Puts the channel first whose account made what the conversation goes on from: it alone can read its state."""
        request, made = self._admitted.request, ""
        if self._continued is not None:
            made = self._continued.place.channel
        elif self._reasoning is not None and states.needs(request):
            known = await self._reasoning.restore(self._call.caller.key_id, request)
            self._makers, made = states.makers(known), states.pinned_channel(known)
        if made:
            self._targets = deque(sorted(self._targets, key=lambda target: target.channel.name != made))

    async def _attempt(self, target: Target) -> Attempt:
        """The request as it goes to the channel. Raises UmgError, also where the caller wants all of it said."""
        request = await self._request(target)
        try:
            return await self._prepared(request, target)
        except UmgError as error:
            place = error.metadata.get("field", "")
            if (written := self._admitted.request.source.opaque_paths.get(place)) is None:
                raise
            message = error.message.replace(place, written)
            raise UmgError(error.reason, message, **{**error.metadata, "field": written}) from None

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
        call = self._upstreams[channel.name].prepare(request, target.model, stream=self._stream)
        if request is not given:
            call.report.drop("state")
        attempt = Attempt(target, request, call, self._only)
        if channel.shared_objects:
            return attempt, ()
        known = {"previous_response_id"} if self._continued is not None else set[str]()
        known.update(call.report.dropped)
        return attempt, [named for named in account_objects(request) if named.field not in known]

    async def _request(self, target: Target) -> pb.GenerateRequest:
        """What to tell a channel. One of the caller's own format gets the caller's own words; one where the continued
        response lives, its id; any other the whole conversation, with what its models thought in it.
        """
        request, channel = self._admitted.request, target.channel
        same = request.source.format in channel.protocols
        if self._continued is not None:
            place = self._continued.place
            known = place.upstream_response_id and not self._forgotten
            if same and known and place.channel == channel.name:
                return self._continued.by_id(request)
            request = self._continued.request
        if self._reasoning is None or not (states.may_be_stripped(request) if same else states.needs(request)):
            return request
        restored = await self._reasoning.restore(self._call.caller.key_id, request, channel.name)
        if same and restored is not request:
            restored.source.edited_fields.append(states.THOUGHTS)
        return restored
