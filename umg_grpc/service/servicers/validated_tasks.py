"""Servicer of `umg.v1.TaskService`: the class in `task_administration.py`, with the registration of gRPC."""

from umg_grpc.service.pipeline.request_validation import validate
from umg_grpc.service.servicers.task_administration import TaskAdministration
from umg_grpc.service.video_tasks.callback_redelivery import CallbackRedelivery
from umg_grpc.store import Store
from umg_grpc.v1 import rpc


class TaskServicer(TaskAdministration, rpc.TaskServiceServicer):
    """Servicer of `umg.v1.TaskService`: video tasks of all keys."""

    def __init__(self, store: Store, redelivery: CallbackRedelivery) -> None:
        super().__init__(store, redelivery, validate)
