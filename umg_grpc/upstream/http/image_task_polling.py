"""Image calls at providers that only offer tasks: one request creates a task, others query it until the task ends."""

import asyncio

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.upstream.http.image_request_sender import CallEnd, ImageExchanges
from umg_grpc.v1 import pb
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.images.provider_protocol_interface import ImageTasks
from umg_grpc.wire.text_format_interface import UpstreamRequest

MAX_FAILED_QUERIES = 5
"""Failed queries in a row after which a task is given up."""
MAX_MODELS = 1000
"""Maximum number of models remembered as accepting only tasks, since callers may choose arbitrary model ids."""
PERMANENT_FAILURES = frozenset({Failure.CALLER, Failure.CONTEXT, Failure.DOWN})


class TaskRunner:
    """Runner of image tasks of a channel: creates and polls them. It remembers models that accept only tasks."""

    def __init__(self, exchanges: ImageExchanges, tasks: ImageTasks) -> None:
        self._exchanges = exchanges
        self._tasks = tasks
        self._models: set[str] = set()

    def is_required(self, error: UmgError) -> bool:
        """Return whether a provider's error for a synchronous call means that the model accepts only tasks."""
        return self._tasks.is_required(error)

    def is_known(self, model: str) -> bool:
        """Return whether the model accepts only tasks: by its name, or as an earlier call has shown."""
        return model in self._models or self._tasks.is_known(model)

    def encode(self, request: pb.GenerateImageRequest, model: str, notes: RequestNotes) -> UpstreamRequest | None:
        """Return the request that creates a task; None if a task cannot express the caller's request."""
        return self._tasks.encode_create(request, model, notes)

    async def run(
        self, request: pb.GenerateImageRequest, model: str, encoded: UpstreamRequest, end: CallEnd
    ) -> pb.GenerateImageResponse:
        """Create a task, query it until it ends, and return its images. Raise UmgError if it fails or is late."""
        task_id, key_id = await self._exchanges.fetch(encoded, self._tasks.decode_created, end)
        if len(self._models) < MAX_MODELS:
            self._models.add(model)
        query, failed, waits = self._tasks.encode_query(task_id), 0, 0.0
        while True:
            pause = self._tasks.poll_seconds * 2**failed
            await asyncio.sleep(min(max(pause, waits), end.left))
            try:
                found, _ = await self._exchanges.fetch(
                    query, lambda body: self._status(body, request), end, key_id=key_id
                )
            except UmgError as error:
                failed, waits = failed + 1, error.retry_after or 0
                if error.failure is None:
                    raise
                if error.failure in PERMANENT_FAILURES and (failed > MAX_FAILED_QUERIES or not _is_unknown(error)):
                    raise error.with_failure(Failure.AMBIGUOUS) from None  # the task may be finished, and billed
                if failed > MAX_FAILED_QUERIES:
                    raise
                continue
            if isinstance(found, UmgError):
                raise found
            if found is not None:
                return found
            failed, waits = 0, 0.0

    def _status(self, body: bytes, request: pb.GenerateImageRequest) -> pb.GenerateImageResponse | UmgError | None:
        """Return a finished task's images, a failed one's error, or None while it runs. `body`: of a query."""
        try:
            return self._tasks.decode_status(body, request)
        except UmgError as error:
            if error.failure is Failure.AMBIGUOUS:
                raise
            return error


def _is_unknown(error: UmgError) -> bool:
    return error.metadata.get("upstream_status") == "404"
