"""Image calls of providers whose model only takes tasks: one call creates the task, others query it until its end."""

import asyncio

from umg_grpc.errors import Failure, UmgError
from umg_grpc.upstream.http.image_exchange import CallEnd, ImageExchanges
from umg_grpc.v1 import pb
from umg_grpc.wire.images.provider_protocol import ImageTasks
from umg_grpc.wire.request_notes import RequestNotes
from umg_grpc.wire.text_format import UpstreamRequest

MAX_FAILED_QUERIES = 5
"""Failed queries in a row after which a task is given up."""
MAX_MODELS = 1000
"""Maximum number of models that are remembered: the ids of a pattern are the callers' own."""
PERMANENT = frozenset({Failure.CALLER, Failure.CONTEXT, Failure.DOWN})


class TaskRunner:
    """Runner of the tasks of one channel. It remembers the models that only accept tasks."""

    def __init__(self, exchanges: ImageExchanges, tasks: ImageTasks) -> None:
        self._exchanges = exchanges
        self._tasks = tasks
        self._models: set[str] = set()

    def is_required(self, error: UmgError) -> bool:
        """Return whether the refusal of a synchronous call demands a task."""
        return self._tasks.is_required(error)

    def is_known(self, model: str) -> bool:
        """Return whether a synchronous call of the model was refused before."""
        return model in self._models

    def encode(self, request: pb.GenerateImageRequest, model: str, notes: RequestNotes) -> UpstreamRequest | None:
        """Return the call that creates a task; None for a request that a task cannot express."""
        return self._tasks.encode_create(request, model, notes)

    async def run(
        self, request: pb.GenerateImageRequest, model: str, encoded: UpstreamRequest, end: CallEnd
    ) -> pb.GenerateImageResponse:
        """Create a task and return its result. `encoded`: the call that creates it. Raise UmgError."""
        task_id, key_id = await self._exchanges.fetch(encoded, self._tasks.decode_created, end)
        if len(self._models) < MAX_MODELS:
            self._models.add(model)
        query, failed = self._tasks.encode_query(task_id), 0
        while True:
            await asyncio.sleep(min(self._tasks.poll_seconds, end.left))
            try:
                found, _ = await self._exchanges.fetch(
                    query, lambda body: self._status(body, request), end, key_id=key_id
                )
            except UmgError as error:
                failed += 1
                if failed > MAX_FAILED_QUERIES or error.failure is None:
                    raise
                if error.failure in PERMANENT:  # of the query: the task itself may be finished, and billed
                    raise error.with_failure(Failure.AMBIGUOUS) from None
                continue
            if isinstance(found, UmgError):
                raise found
            if found is not None:
                return found
            failed = 0

    def _status(self, body: bytes, request: pb.GenerateImageRequest) -> pb.GenerateImageResponse | UmgError | None:
        """Return the state of the task; its error as a value, since it is not one of the query. Raise UmgError for a
        body that cannot be decoded.
        """
        try:
            return self._tasks.decode_status(body, request)
        except UmgError as error:
            if error.failure is Failure.AMBIGUOUS:
                raise
            return error
