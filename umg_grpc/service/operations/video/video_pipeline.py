"""Pipelines of the operations that submit video tasks: a new video, and the change of a finished one (remix)."""

import time
from abc import abstractmethod
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from typing import Generic, TypeVar

from umg_grpc.access.key_limits import TokenEstimate
from umg_grpc.access.limit_errors import model_unpriced
from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.conditional_price_rates import Terms, highest_prices
from umg_grpc.operations.video_operation import VIDEO_CREATION, VIDEO_REMIX
from umg_grpc.routing import ModelOperation, RoutePreferences, has_costs, is_priced
from umg_grpc.service.guardrails.guard_driver import Checked
from umg_grpc.service.operations.video.new_task_call import NewRemix, NewTask
from umg_grpc.service.operations.video.repeated_submission_search import RepeatedSubmissions
from umg_grpc.service.operations.video.video_submission import Submissions
from umg_grpc.service.pipeline.base_pipeline import REPEATED_STEPS, Pipeline, PipelineContext, RequestStep
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.service.pipeline.limits_and_budget import acquire_limits, reserve_budget
from umg_grpc.service.pipeline.request_validation import validate
from umg_grpc.service.pipeline.step_order import ATTEMPTS, BUDGET, LIMITS, PLAN, PRICE, REPEAT, RESOLVE, VALIDATE, Step
from umg_grpc.service.video_tasks.existing_task_requests import check_draft, check_remix, remix_request
from umg_grpc.service.video_tasks.shared_task_objects import TaskContext
from umg_grpc.service.video_tasks.task_costs import max_cost
from umg_grpc.service.video_tasks.task_lookup import TaskLookup
from umg_grpc.store.table_definitions import MediaTask
from umg_grpc.upstream.caller_url_fetch import Fetcher
from umg_grpc.v1 import pb
from umg_grpc.wire.facts_beside_request import NO_NOTES
from umg_grpc.wire.video import video_request_checks

NewTaskT = TypeVar("NewTaskT", bound=NewTask)


class TaskPipeline(Pipeline[NewTaskT], Generic[NewTaskT]):
    """Pipeline of an operation that submits a video task, its response. The caller is charged when the task ends."""

    _repeated_steps = REPEATED_STEPS | {VALIDATE}  # which completes the request by the defaults of the model

    def __init__(
        self, context: PipelineContext, operation: ModelOperation, tasks: TaskContext, submissions: Submissions
    ) -> None:
        self._repeated = RepeatedSubmissions(tasks)
        self._submissions = submissions
        super().__init__(context, operation)

    def _request_steps(self) -> Mapping[Step, RequestStep[NewTaskT]]:
        return {
            VALIDATE: self._validate,
            RESOLVE: self._resolve,
            REPEAT: self._repeated.find,
            PRICE: self._find_channels,
            LIMITS: self._count,
            BUDGET: self._reserve,
            PLAN: self._submissions.plan,
            ATTEMPTS: self._submissions.submit,
        }

    async def _submit(self, new: NewTaskT) -> MediaTask:
        """Return the existing task that the call repeats; if there is none, a new task, submitted exactly once."""
        steps = self._entrance if self._context.channels.guards is None else self._guarded_entrance
        while True:
            try:
                for step in steps:
                    if (waiting := step(new)) is not None:
                        await waiting
                    if new.known is not None:
                        return new.known
            except UmgError as error:
                if new.fallbacks is None:
                    raise
                new.request = self._next_request(new.call, new.fallbacks, error)
                steps = (*self._entrance_again, self._submissions.plan, self._submissions.submit)
            else:
                return new.row

    def _take_request(self, admitted: NewTaskT, checked: Checked[pb.CreateVideoTaskRequest]) -> None:
        admitted.request = admitted.message = checked.message

    @abstractmethod
    def _validate(self, new: NewTaskT) -> Awaitable[None] | None:
        """Check the caller's message, and set the request of the task from it. Raise UmgError if it is invalid."""

    def _find_channels(self, new: NewTaskT) -> None:
        """Find the channels that serve the model and support the operation, best first: for a key with a budget only
        those with a price, for a task with a source task only the channel of the source. Raise UmgError if there are
        none.
        """
        caller, model, channels = new.access.caller, new.model, self._context.channels
        preferences = RoutePreferences(pins=caller.channel_rules, is_healthy=self._context.shared.is_healthy)
        found = channels.router.channels(model.id, self._operation, preferences)
        served = [target for target in found if target.channel.name in channels.videos]
        if not served:
            message = f"no channel of the model `{model.id}` makes videos here; use another model"
            raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message)
        if not (priced := [target for target in served if is_priced(target.prices, self._operation)]):
            self._context.note_unpriced(model.id)
        if caller.has_hard_budget and not priced:
            raise model_unpriced(model.id)
        new.targets = priced if caller.has_hard_budget else served
        if new.source is not None:
            new.targets = [target for target in new.targets if target.channel.name == new.source.channel][:1]
        if not new.targets:
            message = "the channel that made this task is not available any more; submit a new task"
            raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message)

    def _count(self, new: NewTaskT) -> Awaitable[None]:
        new.call.facts.model = new.model.id
        return acquire_limits(new.call, self._context.limits, new.model, TokenEstimate(0, 0))

    def _reserve(self, new: NewTaskT) -> Awaitable[object] | None:
        """Reserve the maximum cost of the task at any of its channels. Raise UmgError(QUOTA_EXHAUSTED)."""
        has_price = any(has_costs(target.prices) for target in new.targets)
        if not (new.access.caller.budgets and has_price):
            return None
        parameters, terms = new.request.parameters, Terms(seconds=time.time())
        highest = [(highest_prices(target.prices, terms), target.model) for target in new.targets]
        most = max(max_cost(parameters, prices, model) for prices, model in highest)
        return reserve_budget(new.call, self._context.usage, most)


class CreatePipeline(TaskPipeline[NewTask]):
    """Pipeline of new videos."""

    def __init__(
        self,
        context: PipelineContext,
        tasks: TaskContext,
        submissions: Submissions,
        lookup: TaskLookup,
        fetcher: Fetcher,
    ) -> None:
        """Create the pipeline. `fetcher`: checks the URLs that callers send."""
        super().__init__(context, VIDEO_CREATION.value, tasks, submissions)
        self._lookup = lookup
        self._fetcher = fetcher

    async def create(self, call: Call, request: pb.CreateVideoTaskRequest) -> MediaTask:
        """Submit a video task exactly once. Return the task. Raise UmgError if no provider has accepted it."""
        return await self._submit(NewTask(call=call, message=request, request=request, notes=NO_NOTES))

    async def _validate(self, new: NewTask) -> None:
        await validate(new.request)
        new.sent = new.sent or new.request
        family = upstream_model = ""
        with suppress(UmgError):
            router = self._context.channels.router
            found = router.resolve(new.request.model).model
            family, upstream_model = found.family, router.targets(found.id)[0].model
        new.request = video_request_checks.check(new.request, family, upstream_model)
        video_request_checks.read_urls(new.request, self._fetcher.check)
        new.message = new.request  # a submission goes on without its caller, whose message has the media once more
        if new.draft_task_id:
            new.source = await self._lookup.own(new.call.caller, new.draft_task_id)
            check_draft(new.source)
            new.is_pinned = True


class RemixPipeline(TaskPipeline[NewRemix]):
    """Pipeline of remixes: tasks that change the video of a finished task, at the channel that made it."""

    def __init__(
        self, context: PipelineContext, tasks: TaskContext, submissions: Submissions, lookup: TaskLookup
    ) -> None:
        super().__init__(context, VIDEO_REMIX.value, tasks, submissions)
        self._lookup = lookup

    async def remix(self, call: Call, given: pb.RemixVideoTaskRequest) -> MediaTask:
        """Submit a remix exactly once. Return its task. Raise UmgError if the provider has not accepted it."""
        request = pb.CreateVideoTaskRequest()
        return await self._submit(NewRemix(call=call, message=given, given=given, request=request, notes=NO_NOTES))

    async def _validate(self, new: NewRemix) -> None:
        await validate(new.given)
        new.source = await self._lookup.own(new.call.caller, new.given.task_id)
        check_remix(new.source, new.given)
        new.is_pinned = True
        new.request = remix_request(new.source, new.given)
