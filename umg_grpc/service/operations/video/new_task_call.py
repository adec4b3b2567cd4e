"""Call that submits a video task, with the data that the steps of the pipeline add to it."""

from collections.abc import Sequence

from umg_grpc.routing import Target
from umg_grpc.service.pipeline.base_pipeline import Admitted
from umg_grpc.store.table_definitions import MediaTask
from umg_grpc.v1 import pb


class NewTask(Admitted[pb.CreateVideoTaskRequest], kw_only=True):
    """Call that submits a video task."""

    source: MediaTask | None = None
    """Finished task whose video is changed (a remix), or whose draft becomes a video (step `validate`); else None."""
    body_hash: str = ""
    """Fingerprint of the request, by which a repetition is found, set by the step `repeat`."""
    known: MediaTask | None = None
    """Existing task that this submission repeats, set by the step `repeat`; None for a new task."""
    targets: Sequence[Target] = ()
    """Channels to try, best first, set by the step `price`."""
    row: MediaTask = None  # type: ignore[assignment]  # set by the step `plan`
    """Database row of the task; after the step `attempts` that of the task which the caller gets."""
    strict: bool = False
    """Whether to fail if a field would be dropped, set by the step `plan`."""

    @property
    def draft_task_id(self) -> str:
        """Id of the task whose draft the call makes into a video; "" if the call names no draft."""
        return self.request.parameters.draft_task_id

    @property
    def source_task_id(self) -> str | None:
        """Id of the task that a remix changes; None for a new video."""
        return None

    @property
    def kind(self) -> "pb.VideoTaskKind.ValueType":
        """Kind of the task."""
        return self.request.kind


class NewRemix(NewTask, kw_only=True):
    """Call that submits a remix."""

    given: pb.RemixVideoTaskRequest
    """Request of the caller, from which the step `validate` makes that of the task."""

    @property
    def source_task_id(self) -> str | None:
        return None if self.source is None else self.source.task_id

    @property
    def kind(self) -> "pb.VideoTaskKind.ValueType":
        return pb.VIDEO_TASK_KIND_REMIX
