"""Background work on alerts: one process for all evaluates the rules, and each reports its open circuit breakers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from sqlalchemy.exc import SQLAlchemyError

from umg_grpc.config.alert_settings import AlertSettings
from umg_grpc.service.alerts.alert_evaluation import RuleEvaluation
from umg_grpc.service.alerts.alert_messages import alert_message, notification
from umg_grpc.service.alerts.alert_sender import AlertSender
from umg_grpc.service.alerts.alert_transitions import AlertTransition, transitions
from umg_grpc.service.resilience.circuit_breaker_snapshots import BreakerState, CircuitState
from umg_grpc.store.alert_facts import AlertFacts, ChannelOutage
from umg_grpc.store.alert_table import AlertTable, NewDelivery, new_notification_id
from umg_grpc.store.repeated_background_tasks import Background

REPORT_SECONDS = 15.0
"""Seconds between two reports of the circuit breakers of this process that are not closed."""
LEAST_LEASE_SECONDS, LEASE_INTERVALS = 60.0, 3
"""A process that has not evaluated the rules for three intervals, at least a minute, is replaced by another one."""
SWEEP_SECONDS = 3600.0
CLOSE_SECONDS = 5.0


class AlertWatch:
    """Evaluation of the rules from `start` to `aclose`, while the config has a receiver."""

    def __init__(
        self,
        settings: AlertSettings,
        table: AlertTable,
        evaluation: RuleEvaluation,
        sender: AlertSender,
        now: Callable[[], float],
    ) -> None:
        """Create the watch. `now`: Unix seconds, the same in all processes."""
        self.settings = settings
        self._table = table
        self._evaluation = evaluation
        self._sender = sender
        self._now = now
        self._background: list[Background] = []

    def configure(self, settings: AlertSettings) -> None:
        """Use the settings of another config from the next evaluation on."""
        self.settings = settings
        for each in self._background[:1]:
            each.every = settings.interval
            each.wake()

    def start(self) -> None:
        """Start the background work. It begins with an evaluation."""
        evaluation = Background("evaluating alerts", self.evaluate, every=self.settings.interval)
        evaluation.wake()
        self._background = [evaluation, Background("sweeping alerts", self._sweep, every=SWEEP_SECONDS)]
        self._sender.start()

    async def aclose(self) -> None:
        """Stop, and let another process evaluate the rules at once."""
        for each in self._background:
            await each.aclose(CLOSE_SECONDS)
        await self._sender.aclose()
        if self.settings.receivers:
            with suppress(SQLAlchemyError, OSError):
                await self._table.release()

    async def evaluate(self) -> None:
        """Evaluate all rules once, unless another process does so, and queue the notifications about changes."""
        settings = self.settings
        if not settings.receivers:
            return
        if not await self._table.lead(max(LEAST_LEASE_SECONDS, LEASE_INTERVALS * settings.interval)):
            return
        known = await self._table.open_alerts()
        found = await self._evaluation.findings(settings.rules)
        now = round(self._now() * 1e6)
        if changes := transitions(known, found, now, settings.remind_every):
            new = [each.state for each in changes if each.is_new]
            changed = [each.state for each in changes if not each.is_new]
            if await self._table.apply(new, changed, list(_deliveries(changes, settings, now))):
                self._sender.wake()

    async def _sweep(self) -> None:
        if self.settings.receivers:
            await self._table.sweep()


def _deliveries(changes: Sequence[AlertTransition], settings: AlertSettings, now: int) -> Iterator[NewDelivery]:
    for each in changes:
        if each.event is None:
            continue
        for receiver in settings.receivers_of(each.state.rule, each.state.threshold):
            notification_id = new_notification_id()
            sent = notification(notification_id, each.event, alert_message(each.state), now)
            yield NewDelivery(notification_id, each.state.alert_id, receiver, each.event, sent.SerializeToString())


class OutageReport:
    """Reports of the circuit breakers of this process that are not closed, from `start` to `aclose`."""

    def __init__(
        self,
        facts: AlertFacts,
        breakers: Callable[[], Sequence[BreakerState]],
        now: Callable[[], float],
    ) -> None:
        """Create the reports, which alerts and the details of channels read. `breakers`: those of this process."""
        self._facts = facts
        self._breakers = breakers
        self._now = now
        self._since: dict[tuple[str, str], int] = {}
        self._reported = False
        self._background: Background | None = None

    def start(self) -> None:
        """Start the background work."""
        self._background = Background("reporting open circuit breakers", self.report, every=REPORT_SECONDS)

    def wake(self) -> None:
        """Report as soon as possible."""
        if self._background is not None:
            self._background.wake()

    async def aclose(self) -> None:
        """Stop, and withdraw the reports."""
        if self._background is not None:
            await self._background.aclose(CLOSE_SECONDS)
        if self._reported:
            with suppress(SQLAlchemyError, OSError):
                await self._facts.report_outages([])

    async def report(self) -> None:
        """Write the breakers that are not closed, if there are any or were some at the last report."""
        now, known = round(self._now() * 1e6), self._since
        states = [(each.channel, each.model) for each in self._breakers() if each.state is not CircuitState.CLOSED]
        self._since = {place: known.get(place, now) for place in states}
        if self._since or self._reported:
            await self._facts.report_outages([ChannelOutage(*place, since) for place, since in self._since.items()])
            self._reported = bool(self._since)
