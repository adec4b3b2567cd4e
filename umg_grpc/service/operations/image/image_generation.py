"""Pipeline of the image operation: complete responses, and streams of drafts and images."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing

from google.protobuf.message import Message
from msgspec.structs import replace

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.families.image import family_row, has_images
from umg_grpc.routing import MAKE_IMAGE, RoutePreferences, Target
from umg_grpc.service.operations.image.image_call import AdmittedImages, complete
from umg_grpc.service.operations.image.image_delivery import ImageDelivery, are_bytes
from umg_grpc.service.operations.image.streamed_images import StreamedImages, is_without_image
from umg_grpc.service.pipeline import schema_validation
from umg_grpc.service.pipeline.attempt import Attempt, RequestEncoder, UnmendedRequests, finish_report
from umg_grpc.service.pipeline.base_pipeline import Pipeline, PipelineContext
from umg_grpc.service.pipeline.call import current
from umg_grpc.service.pipeline.hedged_requests import first_stream
from umg_grpc.service.pipeline.request_decoding import read_source
from umg_grpc.upstream.upstream_interfaces import ImageCall, ImageUpstream
from umg_grpc.v1 import pb
from umg_grpc.wire.core.gateway_headers import CACHE
from umg_grpc.wire.image_format import ImageFormat
from umg_grpc.wire.images import check_inputs
from umg_grpc.wire.images.image_request_checks import check
from umg_grpc.wire.request_notes import DecodedRequest

HOLD_SECONDS = 60.0
"""Maximum seconds for which the start of a stream is held back in wait of its first draft or image: most failures occur
before, and another channel can then be tried.
"""


class ImagePipeline(
    Pipeline[pb.GenerateImageRequest, pb.GenerateImageResponse, AdmittedImages, Attempt[ImageCall]],
):
    """Pipeline that the calls for images go through: admission, attempts at channels, and delivery of the images."""

    def __init__(self, context: PipelineContext, formats: Mapping[str, ImageFormat], delivery: ImageDelivery) -> None:
        """Create the pipeline. `formats`: image format by name. `delivery`: converts images to the requested form."""
        super().__init__(context, MAKE_IMAGE, pb.GenerateImageResponse)
        self._formats = formats
        self._delivery = delivery

    async def admit(self, message: Message, request: pb.GenerateImageRequest) -> AdmittedImages:
        """Validate and admit the request. `message`: gRPC message that contains `request`, on which the rules of the
        schema are checked. Raise UmgError if a rule of the schema or of the model's family is broken, or if a limit of
        the key is exceeded.
        """
        call = current()
        request, notes, access = await self.read(call, message, request)
        model = access.resolved.model
        rules = family_row(model.id, model.family)
        is_read = call.arrival.notes is not None or request.HasField("source")
        if not is_read and _has_files(request):  # no codec has checked the files
            await asyncio.to_thread(check_inputs, request)
        check(request, rules, notes.family)
        self._delivery.check_addresses(request)
        await self.count_and_reserve(call, access, request, notes)
        if notes.files is not None and (model.cache or CACHE in call.arrival.metadata or not are_bytes(request, rules)):
            notes = replace(notes, files=None)
        notes = replace(notes, model_family=model.family)
        return AdmittedImages(call=call, request=request, notes=notes, access=access, model=model, rules=rules)

    async def stream(self, admitted: AdmittedImages) -> AsyncGenerator[pb.StreamGenerateImageResponse, None]:
        """Yield the stream of the first channel that answers. After the first message no other channel is tried. Raise
        UmgError if all channels fail, or if the stream breaks off.
        """
        attempts = await self.attempts(admitted, stream=True)
        while True:
            async with attempts:
                early, messages = await first_stream(attempts, admitted.model.hedge, is_without_image, HOLD_SECONDS)
                streamed = StreamedImages(admitted, attempts.attempt.target.channel, self._delivery)
                async with aclosing(messages):
                    for message in early:
                        await streamed.feed(message)
                        attempts.output_sent = True
                        yield message
                    async for message in messages:
                        await streamed.feed(message)
                        attempts.output_sent = True
                        yield message
                streamed.close()
                return

    async def _validate(self, message: Message) -> None:
        request = message.request if isinstance(message, pb.StreamGenerateImageRequest) else message
        if isinstance(request, pb.GenerateImageRequest) and _has_files(request):
            await asyncio.to_thread(schema_validation.check, message)
        else:
            schema_validation.check(message)

    async def _decode(
        self, given: pb.GenerateImageRequest, *, counted: bool
    ) -> DecodedRequest[pb.GenerateImageRequest]:
        def decode(
            codec: ImageFormat, body: bytes, headers: Mapping[str, str]
        ) -> DecodedRequest[pb.GenerateImageRequest]:
            return codec.decode_request(body, headers, given.model)

        limit = self._context.body_limit
        return await read_source(given.source, self._formats, decode, none="no format to make images in", limit=limit)

    async def _plan(
        self, admitted: AdmittedImages, *, stream: bool
    ) -> tuple[RoutePreferences, RequestEncoder[Attempt[ImageCall]]]:
        face, context = self._formats.get(admitted.request.source.format), self._context
        preferences = RoutePreferences(
            protocol=face.name if face is not None else "",
            pins=admitted.call.caller.channels,
            is_healthy=context.shared.is_healthy,
        )
        return preferences, ImageEncoder(admitted, face, context.channels.images)

    async def _settle(
        self, admitted: AdmittedImages, attempt: Attempt[ImageCall], response: pb.GenerateImageResponse
    ) -> pb.GenerateImageResponse:
        result, passed = response.result, response.HasField("source")
        if not result.images and not passed:
            message = "the provider's answer has no image"
            raise UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).with_failure(Failure.AMBIGUOUS)
        if not passed:
            await self._delivery.deliver(admitted, attempt.target.channel, result)
        complete(admitted, result, len(result.images) or max(1, result.usage.image_count))
        admitted.call.list_dropped(response)
        return response


def _has_files(request: pb.GenerateImageRequest) -> bool:
    """Return whether a request has input images. If so, it is processed in a thread: each access to an image of 20 MB
    takes milliseconds, and its size is not known before.
    """
    return has_images(request, with_mask=True)


class ImageEncoder(UnmendedRequests):
    """Encoder of one image request for each channel at which the call is tried."""

    def __init__(
        self, admitted: AdmittedImages, face: ImageFormat | None, upstreams: Mapping[str, ImageUpstream]
    ) -> None:
        self._admitted = admitted
        self._wire_path: Callable[[str], str] | None = face.wire_path if face is not None else None
        self._upstreams = upstreams

    async def encode(self, target: Target) -> Attempt[ImageCall]:
        """Encode the request for the channel. Raise UmgError if the channel cannot be sent the request or, in strict
        mode, if a field would be dropped.
        """
        admitted, upstream = self._admitted, self._upstreams[target.channel.name]
        request, notes = admitted.request, admitted.notes
        if _has_files(request) or upstream.is_slow(request, len(request.source.body) or request.ByteSize()):
            prepared = await asyncio.to_thread(upstream.prepare, request, target.model, notes)
        else:
            prepared = upstream.prepare(request, target.model, notes)
        finish_report(admitted.call, prepared.report, self._wire_path, notes.uncarried)
        return Attempt(target.channel.name, target, prepared)

    def can_repair(self, attempt: object, error: Exception) -> bool:
        """Return False: encoding an image request again repairs no failure."""
        return False
