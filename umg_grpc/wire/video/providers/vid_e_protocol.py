"""Protocol `vidE`: the old and the new API of family `vidE`; the model of a task selects the API.

Both store the gateway's id of a task as external id, by which the task is found after a submission with an unknown
outcome. A query of the new API may contain several tasks.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from urllib.parse import quote

from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest, Statuses, VideoProtocol
from umg_grpc.wire.video.provider_task_types import ProviderTask, Submission
from umg_grpc.wire.video.providers.errors import failed_call
from umg_grpc.wire.video.providers.request_encoding import get_request, path_id
from umg_grpc.wire.video.providers.vid_e_apis import OLD_API, PROTOCOL_NAME, implied, is_new, old_path, rules_model
from umg_grpc.wire.video.providers.vid_e_old_requests import encode_old
from umg_grpc.wire.video.providers.vid_e_requests import encode_new
from umg_grpc.wire.video.providers.vid_e_responses import (
    ERROR_TABLE,
    created_task,
    found_task,
    statuses_of_list,
    statuses_of_task,
)

TASKS_PATH = "/tasks"
MAX_BATCH = 20
"""Maximum number of tasks in one query; the vendor does not document the limit."""
RESULT_SECONDS = 30 * 86_400


def encode_create(submission: Submission) -> ProviderRequest:
    """Encode a submission for the old or the new API, depending on its model."""
    return encode_new(submission) if is_new(submission.model) else encode_old(submission)


def decode_created(status: int, headers: Mapping[str, str], body: bytes, submission: Submission) -> ProviderTask:
    """Decode the response to a submission (`VideoProtocol.decode_created`). Old-API tasks store the path of queries."""
    facts = "" if is_new(submission.model) else old_path(submission)
    return created_task(status, headers, body, submission.model, facts)


def batch_of(task: ProviderTask) -> str:
    """Return the batch of a task (`VideoProtocol.batch_of`): one for all new-API tasks, one for each old-API task."""
    return f"{task.facts}/{task.id}" if task.facts else ""


def encode_query(tasks: Sequence[ProviderTask]) -> ProviderRequest:
    """Encode the query of several tasks of the new API, or of one task of the old API."""
    if tasks[0].facts:
        return get_request(f"{tasks[0].facts}/{path_id(tasks[0].id)}")
    ids = ",".join(path_id(task.id) for task in tasks)
    return get_request(f"{TASKS_PATH}?task_ids={ids}")


def decode_status(status: int, headers: Mapping[str, str], body: bytes, tasks: Sequence[ProviderTask]) -> Statuses:
    """Decode the response to a query (`VideoProtocol.decode_status`)."""
    if tasks[0].facts:
        return statuses_of_task(status, headers, body, tasks[0])
    return statuses_of_list(status, headers, body, tasks)


def encode_find(submission: Submission) -> ProviderRequest:
    """Encode the look-up of a task by this gateway's id of the task, which the provider stores as external id."""
    external_id = quote(submission.task_id, safe="")
    if is_new(submission.model):
        return get_request(f"{TASKS_PATH}?external_task_ids={external_id}")
    return get_request(f"{old_path(submission)}/{external_id}")


def decode_found(status: int, headers: Mapping[str, str], body: bytes, submission: Submission) -> ProviderTask | None:
    """Decode the response to a look-up by the gateway's id (`VideoProtocol.decode_found`)."""
    facts = "" if is_new(submission.model) else old_path(submission)
    return found_task(status, headers, body, submission, facts)


VID_E = VideoProtocol(
    name=PROTOCOL_NAME,
    encode_create=encode_create,
    decode_created=decode_created,
    encode_query=encode_query,
    decode_status=decode_status,
    decode_error=partial(failed_call, table=ERROR_TABLE),
    implied=implied,
    rules_model=rules_model,
    max_batch=MAX_BATCH,
    batch_of=batch_of,
    encode_find=encode_find,
    decode_found=decode_found,
    token_paths=OLD_API,
    result_seconds=RESULT_SECONDS,
    first_poll_seconds=5,
    poll_seconds=5,
    deadline_seconds=3600,
)
