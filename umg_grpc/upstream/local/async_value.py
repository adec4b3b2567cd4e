"""A value that changes, for those who wait for it."""

import asyncio
from typing import Generic, TypeVar

from umg_grpc.errors import Failure, UmgError
from umg_grpc.v1 import pb

Value = TypeVar("Value")


class Latest(Generic[Value]):
    """Where a model can be called now, None while it cannot. For one event loop."""

    def __init__(self, model: str) -> None:
        self.value: Value | None = None
        self._model = model
        self._next = asyncio.Event()  # set, and replaced, when there is another value

    def publish(self, value: Value | None) -> None:
        """Replaces the value; who waits for one is woken."""
        self.value = value
        if value is not None:
            self._next.set()
            self._next = asyncio.Event()

    async def wait(self, seconds: float, *, after: object = None) -> Value:
        """The value, as soon as there is one, and another than `after`. Raises UmgError(UNAVAILABLE) after
        `seconds`.
        """
        try:
            async with asyncio.timeout(seconds):
                while self.value is None or self.value == after:
                    await self._next.wait()
                return self.value
        except TimeoutError:
            message = f"{self._model} is being started; try again in a few seconds"
            raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message).of(Failure.NOT_SENT) from None
