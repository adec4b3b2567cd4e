"""Pages of channels: the list, worst first, and one channel with its check, its state and its settings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from http_facade.console import form_values
from http_facade.console.call_charts import (
    ChartTable,
    calls_chart,
    first_byte_chart,
    summary_charts,
    whole_call_chart,
)
from http_facade.console.call_outcomes import Mark
from http_facade.console.figure_texts import UNKNOWN_TEXT, count_text, milliseconds_text
from http_facade.console.page_interface import Done, Form, Shown, Visit, object_path
from http_facade.console.pages.audit_page import history_path
from http_facade.console.summary_figures import call_summary
from umg_grpc.base.errors import UmgError
from umg_grpc.base.printable_text import printable
from umg_grpc.v1 import pb

STATE_MARKS = {
    pb.CIRCUIT_STATE_CLOSED: Mark("good", "closed"),
    pb.CIRCUIT_STATE_OPEN: Mark("bad", "open"),
    pb.CIRCUIT_STATE_HALF_OPEN: Mark("info", "half_open"),
}
CHECK_MARKS = {
    pb.CHANNEL_CHECK_OUTCOME_SUCCEEDED: Mark("good", "works"),
    pb.CHANNEL_CHECK_OUTCOME_FAILED: Mark("bad", "failed"),
    pb.CHANNEL_CHECK_OUTCOME_NOT_CALLED: Mark("off", "not called"),
}
DISABLED_MARK = Mark("off", "disabled")
CONFIRMED_FIELD = "confirmed"
DISABLED_SETTING, WEIGHT_SETTING = "disabled", "weight"


@dataclass(frozen=True)
class ChannelLine:
    """Channel with its state, and the last failure of any of its models."""

    name: str
    path: str
    mark: Mark
    is_disabled: bool
    since: Timestamp | None
    """Since when a breaker of its is not closed; None if all are."""
    failures: str
    """Failures of the last hour by kind; "" for none."""
    calls: str
    failed: str
    last_words: str
    remedy: str
    keys: str
    weight: int
    priority: int
    seen: str
    """Version of the override that disables it, which the forms show that disable and enable it."""


@dataclass(frozen=True)
class ChannelTable:
    """Content of the list of channels."""

    rows: Sequence[ChannelLine]
    may_check: bool
    may_change: bool
    lost: Sequence[pb.ChannelOverride]
    """Changes of channels that the config does not have."""


@dataclass(frozen=True)
class ModelLine:
    """Model of a channel."""

    model: str
    upstream_model: str
    mark: Mark
    in_flight: int
    last_words: str
    remedy: str
    is_discovered: bool
    learned: Sequence[str]


@dataclass(frozen=True)
class ChannelView:
    """Content of the page of one channel."""

    line: ChannelLine
    details: pb.ChannelDetails
    models: Sequence[ModelLine]
    quirks: Sequence[pb.ChannelQuirk]
    overrides: Sequence[pb.ChannelOverride]
    charts: ChartTable | None
    may_check: bool
    may_change: bool
    seen: str
    """Version of the override of its weight, which the form shows."""
    history: str


@dataclass(frozen=True)
class CheckView:
    """Result of a check, shown once."""

    path: str
    check: pb.ChannelCheck
    mark: Mark
    milliseconds: str
    message: str
    words: str


@dataclass(frozen=True)
class DisableView:
    """Consequences of disabling a channel, to be confirmed."""

    path: str
    name: str
    note: str
    seen: str
    models: Sequence[pb.ModelWithoutChannel]
    calls: int


async def load_channels(visit: Visit) -> ChannelTable:
    """Return all channels, worst first."""
    response = await visit.calls.call(pb.ListChannelDetailsRequest(), pb.ListChannelDetailsResponse)
    return ChannelTable(
        rows=[_line(each) for each in response.channels],
        may_check=visit.rights.may(pb.PERMISSION_CHANNELS_CHECK),
        may_change=visit.rights.may(pb.PERMISSION_CHANNELS_WRITE),
        lost=list(response.overrides_without_channel),
    )


async def load_channel(visit: Visit) -> ChannelView:
    """Return one channel. Raise UmgError(OBJECT_NOT_FOUND)."""
    details = await _find(visit)
    quirks = {(each.name, each.value): each for model in details.models for each in model.quirks}
    return ChannelView(
        line=_line(details),
        details=details,
        models=[_model(each) for each in details.models],
        quirks=list(quirks.values()),
        overrides=list(details.overrides),
        charts=await _charts(visit, details.channel),
        may_check=visit.rights.may(pb.PERMISSION_CHANNELS_CHECK),
        may_change=visit.rights.may(pb.PERMISSION_CHANNELS_WRITE),
        seen=_version(details, WEIGHT_SETTING),
        history=history_path(visit, details.channel, "channel"),
    )


async def _charts(visit: Visit, channel: str) -> ChartTable | None:
    if not visit.rights.may(pb.PERMISSION_USAGE_READ):
        return None
    summary = await call_summary(visit, channels=[channel])
    charts = calls_chart(summary), first_byte_chart(summary), whole_call_chart(summary)
    return summary_charts(summary, charts, visit.calls_path(channel=channel), visit.now)


async def check_channel(visit: Visit, form: Form) -> Shown:
    """Call the provider of the channel once, and show the result."""
    request = pb.CheckChannelRequest(channel=visit.parameters["channel"], model=form_values.text(form, "model"))
    check = (await visit.calls.call(request, pb.CheckChannelResponse)).check
    content = CheckView(
        path=channel_path(check.channel),
        check=check,
        mark=CHECK_MARKS[check.outcome],
        milliseconds=milliseconds_text(check.duration),
        message=printable(check.message),
        words=printable(check.failure.message),
    )
    return Shown("channel_check", content)


async def disable_channel(visit: Visit, form: Form) -> Done | Shown:
    """Disable the channel once the form confirms the consequences, else show them."""
    await _check_seen(visit, form, DISABLED_SETTING)
    request = pb.UpdateChannelRequest(
        channel=visit.parameters["channel"],
        settings=pb.ChannelSettings(disabled=True),
        update_mask=FieldMask(paths=[DISABLED_SETTING]),
        note=form_values.text(form, "note"),
        dry_run=not form.get(CONFIRMED_FIELD),
    )
    response = await visit.calls.call(request, pb.UpdateChannelResponse)
    if not request.dry_run:
        return Done(channel_path(request.channel), "channel_disabled")
    content = DisableView(
        path=channel_path(request.channel),
        name=printable(request.channel),
        note=request.note,
        seen=form.get(form_values.SEEN_FIELD, ""),
        models=response.models_without_channel,
        calls=sum(each.calls for each in response.models_without_channel),
    )
    return Shown("disable_channel", content)


async def enable_channel(visit: Visit, form: Form) -> Done:
    """Enable the channel again."""
    await _check_seen(visit, form, DISABLED_SETTING)
    mask = FieldMask(paths=[DISABLED_SETTING])
    request = pb.UpdateChannelRequest(channel=visit.parameters["channel"], update_mask=mask)
    await visit.calls.call(request, pb.UpdateChannelResponse)
    return Done(channel_path(request.channel), "channel_enabled")


async def set_weight(visit: Visit, form: Form) -> Done:
    """Change the weight of the channel; an empty field goes back to the config."""
    weight = form_values.number(form, "weight")
    await _check_seen(visit, form, WEIGHT_SETTING)
    request = pb.UpdateChannelRequest(
        channel=visit.parameters["channel"],
        settings=pb.ChannelSettings(weight=weight),
        update_mask=FieldMask(paths=[WEIGHT_SETTING]),
        note=form_values.text(form, "note"),
    )
    await visit.calls.call(request, pb.UpdateChannelResponse)
    return Done(channel_path(request.channel), "channel_weighted")


def channel_path(name: str) -> str:
    """Return the path of the page of a channel."""
    return object_path("channels", name)


async def _check_seen(visit: Visit, form: Form, setting: str) -> None:
    """Raise UmgError(ALREADY_EXISTS) if a setting of the channel was changed since the form was shown."""
    if form_values.SEEN_FIELD in form:
        form_values.check_seen(form, *_overrides(await _find(visit), setting))


def _version(details: pb.ChannelDetails, setting: str) -> str:
    return form_values.version(*_overrides(details, setting))


def _overrides(details: pb.ChannelDetails, setting: str) -> list[pb.ChannelOverride]:
    return [each for each in details.overrides if each.setting == setting]


async def _find(visit: Visit) -> pb.ChannelDetails:
    name = visit.parameters["channel"]
    response = await visit.calls.call(pb.ListChannelDetailsRequest(channel=name), pb.ListChannelDetailsResponse)
    if not response.channels:
        raise UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, "there is no such channel", id=name[:100])
    return response.channels[0]


def _line(details: pb.ChannelDetails) -> ChannelLine:
    failed = max(
        (each for each in details.models if each.HasField("last_failure")),
        key=lambda each: each.last_failure.time.ToMicroseconds(),
        default=None,
    )
    activity = details.last_hour if details.HasField("last_hour") else None
    return ChannelLine(
        name=printable(details.channel),
        path=channel_path(details.channel),
        mark=DISABLED_MARK if details.settings.disabled else STATE_MARKS[details.state],
        is_disabled=details.settings.disabled,
        since=_since(details.models),
        failures="" if activity is None else _failures(activity.failures),
        calls=UNKNOWN_TEXT if activity is None else count_text(activity.calls),
        failed=UNKNOWN_TEXT if activity is None else count_text(activity.failed_calls),
        last_words="" if failed is None else printable(failed.last_failure.message),
        remedy="" if failed is None else printable(failed.remedy),
        keys=", ".join(f"…{tail}" for tail in details.key_tails),
        weight=details.settings.weight,
        priority=details.priority,
        seen=_version(details, DISABLED_SETTING),
    )


def _since(models: Iterable[pb.ChannelModelDetails]) -> Timestamp | None:
    times = [each.not_closed_since_time for each in models if each.HasField("not_closed_since_time")]
    return min(times, key=lambda time: time.ToMicroseconds(), default=None)


def _failures(counts: Iterable[pb.ChannelFailureCount]) -> str:
    return ", ".join(f"{count_text(each.attempts)} {each.kind}" for each in counts)


def _model(details: pb.ChannelModelDetails) -> ModelLine:
    return ModelLine(
        model=printable(details.model),
        upstream_model=printable(details.upstream_model),
        mark=STATE_MARKS[details.state],
        in_flight=details.calls_in_flight,
        last_words=printable(details.last_failure.message) if details.HasField("last_failure") else "",
        remedy=printable(details.remedy),
        is_discovered=details.is_discovered,
        learned=[printable(f"{each.member} {each.value}".strip()) for each in details.learned],
    )
