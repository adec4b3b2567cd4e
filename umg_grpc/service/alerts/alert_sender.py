"""Delivery of notifications about alerts: each at least once, with a limited number of attempts. A receiver gets one at
a time from a process, so that a slow one delays no other.
"""

import asyncio
import random
from functools import partial

from sqlalchemy.exc import SQLAlchemyError

from umg_grpc.base.errors import place_of
from umg_grpc.base.lazy_logger import LazyLogger
from umg_grpc.service.alerts.alert_receiver_clients import ReceiverClients
from umg_grpc.service.alerts.alert_receiver_interface import ReceiverFailedError
from umg_grpc.store.alert_table import AlertTable, OutgoingAlert
from umg_grpc.store.repeated_background_tasks import Background, reason_of
from umg_grpc.v1 import pb

TICK_SECONDS = 5.0
"""Seconds between two searches for due notifications. Those of this process are sent without a wait."""
ATTEMPT_SECONDS = 120.0
"""Most seconds of an attempt, which limits the steps of a mail together."""
LEASE_SECONDS = 180.0
"""Seconds after which another process repeats an attempt whose result it does not know; longer than an attempt."""
CLOSE_SECONDS = 5.0
RETRY_PAUSES: tuple[float, ...] = (5.0, 30.0, 120.0, 600.0, 1800.0, 3600.0, 7200.0, 14_400.0)
"""Seconds after each failed attempt. After one more, eight hours after the first, the notification is given up."""

logger = LazyLogger(__name__)


class AlertSender:
    """Sender of the notifications about alerts, from `start` to `aclose`."""

    def __init__(self, table: AlertTable, clients: ReceiverClients) -> None:
        self._table = table
        self._clients = clients
        self._sending: dict[str, asyncio.Task[None]] = {}
        """Receiver -> its notification in flight."""
        self._background: Background | None = None

    def start(self) -> None:
        """Start to search for due notifications and to send them."""
        self._background = Background("notifying receivers of alerts", self.send_due, every=TICK_SECONDS)

    def wake(self) -> None:
        """Search for due notifications now."""
        if self._background is not None:
            self._background.wake()

    async def aclose(self) -> None:
        """Stop sending. A notification whose result is unknown may be sent again by another process."""
        if self._background is not None:
            await self._background.aclose(CLOSE_SECONDS)
        if self._sending:
            _, late = await asyncio.wait(self._sending.values(), timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def send_due(self) -> None:
        """Begin to send the due notifications, one for each receiver that gets none now."""
        if not await self._table.has_due():
            return
        for sent in await self._table.claim(LEASE_SECONDS, tuple(self._sending)):
            task = asyncio.create_task(self._send(sent), name="notifying a receiver of alerts")
            self._sending[sent.receiver] = task
            task.add_done_callback(partial(self._ended, sent.receiver))

    def _ended(self, receiver: str, _: asyncio.Task[None]) -> None:
        del self._sending[receiver]
        self.wake()

    async def _send(self, sent: OutgoingAlert) -> None:
        failure = await self._attempt(sent)
        try:
            await self._record(sent, failure)
        except (SQLAlchemyError, OSError) as error:  # the lease of the notification ends, and it is sent again
            logger.warning("the result of an alert is not recorded", receiver=sent.receiver, reason=reason_of(error))

    async def _attempt(self, sent: OutgoingAlert) -> ReceiverFailedError | None:
        """Send a notification. Return the failure; None if the receiver accepted it."""
        client = self._clients.find(sent.receiver)
        if client is None:
            return ReceiverFailedError("the config does not have the receiver any more", is_final=True)
        try:
            async with asyncio.timeout(ATTEMPT_SECONDS):
                await client.send(pb.AlertNotification.FromString(sent.body))
        except ReceiverFailedError as error:
            return error
        except TimeoutError:
            return ReceiverFailedError(f"no response in {ATTEMPT_SECONDS:g} s")
        except Exception as error:  # after any error the attempt has to be counted, so that there is a last one
            logger.warning("an alert cannot be sent", receiver=sent.receiver, place=place_of(error), exc_info=True)
            return ReceiverFailedError(f"it cannot be sent: {type(error).__name__}")
        return None

    async def _record(self, sent: OutgoingAlert, failure: ReceiverFailedError | None) -> None:
        """Record the result of an attempt: the notification is delivered, will be repeated, or is given up."""
        if failure is None:
            await self._table.delivered(sent)
            return
        facts = {"receiver": sent.receiver, "attempts": sent.attempts + 1, "reason": str(failure)}
        if failure.is_final or sent.attempts >= len(RETRY_PAUSES):
            logger.error("an alert was given up", **facts)
            await self._table.give_up(sent, str(failure))
            return
        if not sent.attempts:
            logger.warning("a receiver of alerts does not accept them; they are repeated", **facts)
        pause = RETRY_PAUSES[sent.attempts] * random.uniform(0.8, 1.2)  # noqa: S311  not for security
        await self._table.retry(sent, pause, str(failure))
