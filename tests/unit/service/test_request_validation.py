"""The first message of a type is checked beside other calls, in a thread; later ones at once."""

import threading

import pytest
from google.protobuf.message import Message

from umg_grpc.base.errors import UmgError
from umg_grpc.service.pipeline import request_validation
from umg_grpc.v1 import pb


@pytest.mark.asyncio
async def test_only_the_first_message_of_a_type_is_checked_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, check = list[threading.Thread](), request_validation.check

    def noted(message: Message) -> None:
        threads.append(threading.current_thread())
        check(message)

    monkeypatch.setattr(request_validation, "check", noted)
    monkeypatch.setattr(request_validation, "_COMPILED_KINDS", set())
    for _ in range(2):
        with pytest.raises(UmgError, match="model: must be at least 1 characters") as caught:
            await request_validation.validate(pb.GetModelRequest())
        assert caught.value.metadata["field"] == "model"
    await request_validation.validate(pb.GetModelRequest(model="m"))
    await request_validation.validate(pb.ListModelsRequest())
    assert [each is threading.main_thread() for each in threads] == [False, True, True, False]
