"""Pipeline of the image operation: complete responses, and streams of drafts and images."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from msgspec.structs import replace

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.families.image_model_rules import family_row, has_images
from umg_grpc.operations.image_operation import IMAGE_GENERATION
from umg_grpc.routing import RoutePreferences, Target
from umg_grpc.service.guardrails.guard_driver import GuardRun
from umg_grpc.service.operations.image.admitted_image_call import AdmittedImages, complete
from umg_grpc.service.operations.image.image_delivery import ImageDelivery, are_bytes
from umg_grpc.service.operations.image.streamed_image_responses import (
    GuardedImageStream,
    StreamedImages,
    is_without_image,
)
from umg_grpc.service.pipeline import schema_validation
from umg_grpc.service.pipeline.base_pipeline import PipelineContext, RequestStep
from umg_grpc.service.pipeline.channel_attempt import Attempt, RequestEncoder, UnmendedRequests, finish_report
from umg_grpc.service.pipeline.failover import FailoverLoop
from umg_grpc.service.pipeline.request_decoding import read_source
from umg_grpc.service.pipeline.response_pipeline import ResponseStep, checked_message
from umg_grpc.service.pipeline.step_order import COMPLETE, INPUTS, RULES, SETTLE, Step
from umg_grpc.service.pipeline.stream_pipeline import StreamedResponse, StreamPipeline
from umg_grpc.upstream.upstream_interfaces import ImageCall, ImageUpstream
from umg_grpc.v1 import pb
from umg_grpc.wire.image_format_interface import ImageFormat
from umg_grpc.wire.images import check_inputs
from umg_grpc.wire.images.image_request_checks import check

ImageStep: TypeAlias = ResponseStep[AdmittedImages, Attempt[ImageCall], pb.GenerateImageResponse]


class ImagePipeline(
    StreamPipeline[
        pb.GenerateImageRequest,
        pb.GenerateImageResponse,
        AdmittedImages,
        Attempt[ImageCall],
        pb.StreamGenerateImageResponse,
    ]
):
    """Pipeline that the calls for images go through: admission, attempts at channels, and delivery of the images."""

    def __init__(self, context: PipelineContext, formats: Mapping[str, ImageFormat], delivery: ImageDelivery) -> None:
        """Create the pipeline. `formats`: image format by name. `delivery`: converts images to the requested form."""
        super().__init__(context, IMAGE_GENERATION.value, pb.GenerateImageResponse, AdmittedImages)
        self._formats = formats
        self._delivery = delivery

    # --- steps before the attempts

    def _request_steps(self) -> Mapping[Step, RequestStep[AdmittedImages]]:
        return {**super()._request_steps(), RULES: self._apply_rules, INPUTS: self._take_files}

    async def _decode_body(self, admitted: AdmittedImages) -> None:
        given = admitted.request
        admitted.request, admitted.notes = await read_source(
            given.source,
            self._formats,
            lambda codec, body, headers: codec.decode_request(body, headers, given.model),
            none="no format to make images in",
            limit=self._context.body_limit,
        )

    def _validate(self, admitted: AdmittedImages) -> Awaitable[None] | None:
        if admitted.is_canonical and _has_files(admitted.request):
            return asyncio.to_thread(schema_validation.check, checked_message(admitted))
        return super()._validate(admitted)

    def _apply_rules(self, admitted: AdmittedImages) -> Awaitable[None] | None:
        """Check the request by the rules of the model's family and of the gateway. Raise UmgError if it breaks one."""
        request, model = admitted.request, admitted.model
        admitted.rules = family_row(model.id, model.family)
        is_read = admitted.call.arrival.notes is not None or not admitted.is_canonical
        if not is_read and _has_files(request):
            return self._check_files(admitted)
        self._check_request(admitted)
        return None

    async def _check_files(self, admitted: AdmittedImages) -> None:
        await asyncio.to_thread(check_inputs, admitted.request)  # which no codec has checked
        self._check_request(admitted)

    def _check_request(self, admitted: AdmittedImages) -> None:
        check(admitted.request, admitted.rules, admitted.notes.family)
        self._delivery.check_addresses(admitted.request)

    def _take_files(self, admitted: AdmittedImages) -> None:
        """Drop the files of the caller's body unless they can be sent to the provider unchanged."""
        request, notes, model = admitted.request, admitted.notes, admitted.model
        needs_bytes = admitted.access.guards is not None and admitted.access.guards.reads_content
        if notes.files is not None and (
            needs_bytes or self._may_cache(admitted) or not are_bytes(request, admitted.rules)
        ):
            notes = replace(notes, files=None)
        admitted.notes = replace(notes, model_family=model.family)

    # --- plan and completion

    async def _plan(self, admitted: AdmittedImages) -> tuple[RoutePreferences, RequestEncoder[Attempt[ImageCall]]]:
        face, context = self._formats.get(admitted.request.source.format), self._context
        preferences = RoutePreferences(
            protocol=face.name if face is not None else "",
            pins=admitted.call.caller.channel_rules,
            is_healthy=context.shared.is_healthy,
        )
        return preferences, ImageEncoder(admitted, face, context.channels.images)

    def _response_steps(self) -> Mapping[Step, ImageStep]:
        return {COMPLETE: self._complete, SETTLE: self._settle}

    def _complete(
        self, admitted: AdmittedImages, attempt: Attempt[ImageCall], response: pb.GenerateImageResponse
    ) -> Awaitable[None] | None:
        """Convert the images to the requested form. Raise UmgError for a response without images."""
        if response.HasField("source"):
            return None
        if not response.result.images:
            message = "the provider's response has no image"
            raise UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).with_failure(Failure.AMBIGUOUS)
        return self._delivery.deliver(admitted, attempt.target.channel, response.result)

    def _settle(
        self, admitted: AdmittedImages, attempt: Attempt[ImageCall], response: pb.GenerateImageResponse
    ) -> None:
        result = response.result
        complete(admitted, result, len(result.images) or max(1, result.usage.image_count))
        admitted.call.list_dropped(response)

    def _charge_refused(
        self, admitted: AdmittedImages, attempt: Attempt[ImageCall], response: pb.GenerateImageResponse
    ) -> None:
        self._settle(admitted, attempt, response)

    # --- streams

    def _output_check(self, admitted: AdmittedImages) -> Callable[[pb.StreamGenerateImageResponse], bool]:
        return is_without_image

    def _streamed(
        self, admitted: AdmittedImages, attempts: FailoverLoop[Attempt[ImageCall]]
    ) -> StreamedResponse[pb.StreamGenerateImageResponse]:
        streamed = StreamedImages(admitted, attempts.attempt.target.channel, self._delivery)
        if (guards := admitted.access.guards) is None or not guards.response:
            return streamed
        run = GuardRun(guards, admitted.call, admitted.model.id, "response")
        return GuardedImageStream(streamed, run, guards.reads_content)


def _has_files(request: pb.GenerateImageRequest) -> bool:
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
        admitted, upstream = self._admitted, self._upstreams[target.channel.name]
        request, notes = admitted.request, admitted.notes
        if _has_files(request) or upstream.is_slow(len(request.source.body) or request.ByteSize()):
            prepared = await asyncio.to_thread(upstream.prepare, request, target.model, notes)
        else:
            prepared = upstream.prepare(request, target.model, notes)
        finish_report(admitted.call, prepared.report, self._wire_path, notes.uncarried)
        return Attempt(target.channel.name, target, prepared)
