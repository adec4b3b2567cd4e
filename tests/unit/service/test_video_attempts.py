"""Attempts of a submission: each has a call with a report of its own, which is filled when the call is sent."""

from tests.support import fake_video_upstream
from tests.support.fake_video_upstream import FakeVideos
from tests.support.video_calls import MODEL, request
from umg_grpc.config import parse
from umg_grpc.routing import Router, Target
from umg_grpc.service.operations.video.video_submission_attempts import VideoEncoder
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.video.provider_task_types import ProviderTask, Submission


class DroppingVideos(FakeVideos):
    """Upstream that cannot express one field of each submission."""

    async def submit(self, submission: Submission, seconds: float) -> tuple[ProviderTask, Report]:
        task, report = await super().submit(submission, seconds)
        report.drop("parameters.seed")
        return task, report


async def test_each_attempt_has_a_report_of_its_own_once_it_is_sent() -> None:
    router = Router(parse(fake_video_upstream.config(MODEL, channels=["one", "two"]), "umg.yaml", {}))
    channels = Channels(router, videos={"one": DroppingVideos(), "two": FakeVideos()})

    def submission(target: Target) -> Submission:
        return Submission(task_id="task_1", model=target.model, request=request())

    encoder = VideoEncoder(channels, submission)
    first, second = [await encoder.encode(target) for target in router.channels(MODEL, pb.MODEL_OPERATION_CREATE_VIDEO)]
    assert (first.lost_fields, second.lost_fields) == (0, 0)
    assert first.call.report is not second.call.report
    await first.call.send()
    await second.call.send()
    assert {each.channel: each.lost_fields for each in (first, second)} == {"one": 1, "two": 0}
