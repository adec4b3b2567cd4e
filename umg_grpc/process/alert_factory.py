"""Factory of the parts of a process that work on alerts."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from umg_grpc.access.budget_sources import BudgetSource, KeyBudgetSource, ListedBudgetSource
from umg_grpc.config import Config
from umg_grpc.routing import Router
from umg_grpc.service.alerts.alert_evaluation import RuleEvaluation
from umg_grpc.service.alerts.alert_receiver_clients import ReceiverClients
from umg_grpc.service.alerts.alert_sender import AlertSender
from umg_grpc.service.alerts.alert_watch import AlertWatch, OutageReport
from umg_grpc.service.pipeline.request_validation import validate
from umg_grpc.service.resilience.channel_protection import Resilience
from umg_grpc.service.resilience.circuit_breaker_snapshots import BreakerState
from umg_grpc.service.servicers.validated_alerts import AlertServicer
from umg_grpc.store import Store
from umg_grpc.store.alert_facts import AlertFacts
from umg_grpc.store.alert_table import AlertTable
from umg_grpc.upstream.http1.client import Client


class AlertParts(NamedTuple):
    """Parts of a process that work on alerts."""

    clients: ReceiverClients
    watch: AlertWatch
    outages: OutageReport
    servicer: AlertServicer

    def start(self) -> None:
        """Start the background work."""
        self.watch.start()
        self.outages.start()

    def configure(self, config: Config) -> None:
        """Use the settings of another config."""
        self.clients.configure(config.alerts, config.proxies)
        self.watch.configure(config.alerts)

    async def aclose(self) -> None:
        """Stop the background work."""
        await self.outages.aclose()
        await self.watch.aclose()


def budget_sources(store: Store) -> Sequence[BudgetSource]:
    """Return the sources of all kinds of budgets."""
    return KeyBudgetSource(store), ListedBudgetSource(store)


def alert_parts(
    config: Config,
    store: Store,
    process: str,
    client: Client,
    shared: Resilience,
    router: Callable[[], Router],
    is_disabled: Callable[[str], bool],
) -> AlertParts:
    """Build the parts. `process`: unique name of this process; `client`: HTTP client of webhooks; `shared`: circuit
    breakers and learned restrictions of this process; `router`: returns that of the current config; `is_disabled`:
    returns whether a channel is disabled, which is no outage.
    """
    now = store.clock.now
    table, facts = AlertTable(store, process), AlertFacts(store, process)
    clients = ReceiverClients(client, config.alerts, config.proxies, now)
    evaluation = RuleEvaluation(facts, budget_sources(store), router, shared.learned.all, now)
    watch = AlertWatch(config.alerts, table, evaluation, AlertSender(table, clients), now)

    def breakers() -> Sequence[BreakerState]:
        return [each for each in shared.health.snapshot() if not is_disabled(each.channel)]

    outages = OutageReport(facts, breakers, now)
    return AlertParts(clients, watch, outages, AlertServicer(store, table, clients, validate, now))
