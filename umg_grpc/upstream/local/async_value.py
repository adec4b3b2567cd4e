"""Changing value for which tasks can wait, for example the current address of the local model."""

import asyncio
from typing import Generic, TypeVar

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb

Value = TypeVar("Value")


class AsyncValue(Generic[Value]):
    """Value that changes and may be None, for example a model's address. Tasks of one event loop wait for it."""

    def __init__(self, model: str) -> None:
        self.value: Value | None = None
        self._model = model
        self._next = asyncio.Event()  # set, and replaced, when a value is published

    def publish(self, value: Value | None) -> None:
        """Set the value, None while there is none, and wake all waiting tasks."""
        self.value = value
        if value is not None:
            self._next.set()
            self._next = asyncio.Event()

    async def wait(self, seconds: float, *, after: object = None) -> Value:
        """Return the value once it is neither None nor `after`, which failed. Raise UmgError after `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                while self.value is None or self.value == after:
                    await self._next.wait()
                return self.value
        except TimeoutError:
            message = f"{self._model} is being started; try again in a few seconds"
            raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message).with_failure(Failure.NOT_SENT) from None
