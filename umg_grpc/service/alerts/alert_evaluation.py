"""Evaluation of the rules of alerts: reads the facts of each enabled rule, and returns the conditions that hold."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from umg_grpc.access.budget_sources import BudgetSource
from umg_grpc.base.errors import UmgError
from umg_grpc.config.alert_settings import AlertRules
from umg_grpc.routing import Router, is_unpriced
from umg_grpc.service.alerts.alert_findings import (
    Finding,
    budget_findings,
    cached_findings,
    dead_letter_findings,
    error_findings,
    healed_findings,
    outage_findings,
    spend_findings,
    unpriced_findings,
)
from umg_grpc.service.resilience.learned_quirks import LearnedQuirk
from umg_grpc.store.alert_facts import AlertFacts, CalledModel


class RuleEvaluation:
    """Evaluation of all rules. Its methods raise SQLAlchemyError."""

    def __init__(
        self,
        facts: AlertFacts,
        budgets: Sequence[BudgetSource],
        router: Callable[[], Router],
        learned: Callable[[], Iterable[LearnedQuirk]],
        now: Callable[[], float],
    ) -> None:
        """Create the evaluation. `budgets`: a source for each kind of holders; `router`: returns that of the current
        config; `learned`: returns the restrictions that refusals have shown, in any process; `now`: Unix seconds.
        """
        self._facts = facts
        self._budgets = budgets
        self._router = router
        self._learned = learned
        self._now = now

    async def findings(self, rules: AlertRules) -> list[Finding]:
        """Return the conditions that hold now, of all enabled rules."""
        facts, now = self._facts, self._now()
        found = list[Finding]()
        if rules.budget.enabled:
            least, time = min(rules.budget.thresholds), datetime.fromtimestamp(now, UTC)
            for source in self._budgets:
                found += budget_findings(rules.budget, await source.spent_budgets(least, time))
        if rules.spend_jump.enabled:
            found += spend_findings(rules.spend_jump, await facts.spent_hour())
        if rules.channel_down.enabled:
            found += outage_findings(rules.channel_down, await facts.outages(), round(now * 1e6))
        if rules.error_share.enabled:
            found += error_findings(rules.error_share, await facts.counted_calls(rules.error_share.minutes))
        if rules.unpriced_model.enabled:
            found += unpriced_findings([each for each in await facts.called_models() if self._is_unpriced(each)])
        if rules.healed_refusals.enabled:
            found += healed_findings(self._learned())
        if rules.cached_share.enabled:
            found += cached_findings(rules.cached_share, *await facts.cached_input())
        if rules.task_dead_letter.enabled:
            found += dead_letter_findings(await facts.given_up_callbacks())
        return found

    def _is_unpriced(self, called: CalledModel) -> bool:
        try:
            return is_unpriced(self._router(), called.model, ((called.channel,),))
        except UmgError:  # the config has the model no longer
            return False
