"""Printers of the tables of all commands, with rows of long ids, models, e-mail addresses and messages."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from umg_grpc.cli.account_tables import (
    print_account,
    print_accounts,
    print_events,
    print_sessions,
    print_user,
    print_users,
)
from umg_grpc.cli.alert_command_actions import print_alerts
from umg_grpc.cli.call_summary_tables import print_summary
from umg_grpc.cli.channel_command_actions import print_channel_check, print_channel_models, print_channels
from umg_grpc.cli.config_tables import print_settings
from umg_grpc.cli.doctor_command import Check, CheckState, print_checks
from umg_grpc.cli.end_user_tables import print_end_users
from umg_grpc.cli.key_tables import print_key, print_keys
from umg_grpc.cli.live_check import print_results
from umg_grpc.cli.model_list_command import print_models
from umg_grpc.cli.model_price_actions import print_model_prices
from umg_grpc.cli.model_restriction_report import RESTRICTION_COLUMNS
from umg_grpc.cli.model_route_explanation import print_routes
from umg_grpc.cli.price_command_actions import print_prices
from umg_grpc.cli.provider_texts import print_providers
from umg_grpc.cli.request_record_tables import print_record, print_records
from umg_grpc.cli.task_record_tables import print_callbacks, print_deliveries
from umg_grpc.cli.task_record_tables import print_task as print_record_of
from umg_grpc.cli.task_record_tables import print_tasks as print_found
from umg_grpc.cli.text_tables import Form, print_table
from umg_grpc.cli.usage_command_actions import UsageTotal, counts_of, print_usage
from umg_grpc.cli.video_command_client import print_task, print_tasks
from umg_grpc.knowledge.provider_presets import Provider
from umg_grpc.knowledge.public_price_rows import FilePrice
from umg_grpc.service.single_channel_check import CheckResult
from umg_grpc.v1 import pb

NOW = datetime(2026, 11, 30, 9, 48, 17, 250_000, UTC)
LONG_MODEL = "accounts/northwind/deployments/reasoner-70b-instruct-2026-11"
KEY_IDS = ("key_0f9d3c1e5b7a48d2a6e4c8b01f2d3e4a", "key_a1b2c3d4e5f60718293a4b5c6d7e8f90", "key_" + "7" * 32)
TASK_ID = "task_5e4d3c2b1a0f9e8d7c6b5a4938271605"
REFUSAL = "The engine is currently overloaded, please try again later; see https://status.provider.example/incidents/41"


@dataclass(frozen=True)
class TableSample:
    """Table of a command, and the function that prints it with fixed rows in a form."""

    id: str
    command: str
    print: Callable[[Form], None]


def time(ago: timedelta = timedelta()) -> Timestamp:
    made = Timestamp()
    made.FromDatetime(NOW - ago)
    return made


def duration(milliseconds: float) -> Duration:
    made = Duration()
    made.FromTimedelta(timedelta(milliseconds=milliseconds))
    return made


def channels() -> pb.ListChannelDetailsResponse:
    failure = pb.ChannelFailure(time=time(timedelta(minutes=3)), kind="unpaid", message=REFUSAL, key_tail="WXYZ")
    remedy = "the account has no credit or quota left: check its bill at the provider"
    override = pb.ChannelOverride(
        setting="disabled", value=1, note="bill is being paid", actor_name="ada", update_time=time(timedelta(minutes=1))
    )
    counts = [pb.ChannelFailureCount(kind="unpaid", attempts=81), pb.ChannelFailureCount(kind="slow", attempts=6)]
    return pb.ListChannelDetailsResponse(
        channels=[
            pb.ChannelDetails(
                channel="north-europe-west",
                settings=pb.ChannelSettings(weight=5),
                state=pb.CIRCUIT_STATE_OPEN,
                last_hour=pb.ChannelActivity(calls=1204, failed_calls=81, failures=counts),
                key_tails=["WXYZ", "4f2a"],
                last_failure=failure,
                remedy=remedy,
                models=[
                    pb.ChannelModelDetails(
                        model=LONG_MODEL,
                        upstream_model=LONG_MODEL,
                        state=pb.CIRCUIT_STATE_OPEN,
                        not_closed_since_time=time(timedelta(minutes=4)),
                        last_failure=failure,
                        remedy=remedy,
                        learned=[pb.LearnedRestriction(protocol="chat", member="temperature")],
                    ),
                    pb.ChannelModelDetails(
                        model="gpt-5", upstream_model="gpt-5", state=pb.CIRCUIT_STATE_CLOSED, is_discovered=True
                    ),
                ],
            ),
            pb.ChannelDetails(
                channel="south",
                settings=pb.ChannelSettings(disabled=True, weight=1),
                priority=1,
                state=pb.CIRCUIT_STATE_CLOSED,
                last_hour=pb.ChannelActivity(),
                overrides=[override],
            ),
        ],
        overrides_without_channel=[
            pb.ChannelOverride(
                channel="renamed",
                setting="weight",
                value=7,
                actor_name="ada",
                update_time=time(timedelta(days=3)),
                ineffective_reason="the config has no channel of this name",
            )
        ],
    )


def model_prices() -> pb.ListModelPricesResponse:
    tokens = [
        pb.Price(unit=pb.BILLABLE_UNIT_INPUT_TOKEN, micro_credits_per_million=1_250_000),
        pb.Price(unit=pb.BILLABLE_UNIT_OUTPUT_TOKEN, micro_credits_per_million=10_000_000),
    ]
    operations = [pb.MODEL_OPERATION_GENERATE, pb.MODEL_OPERATION_COUNT_TOKENS]
    none, public, stored = pb.PRICE_SOURCE_NONE, pb.PRICE_SOURCE_PUBLIC, pb.PRICE_SOURCE_DATABASE
    override = pb.ModelPriceOverride(
        model="gpt-5",
        channel="south",
        prices=tokens[:1],
        note="contract of November",
        actor_name="ada",
        update_time=time(timedelta(days=2)),
    )
    file = pb.ModelChannelPrice(channel="north", source=pb.PRICE_SOURCE_FILE, place="umg.yaml:41", prices=tokens)
    return pb.ListModelPricesResponse(
        models=[
            pb.PricedModel(
                model=LONG_MODEL,
                operations=operations,
                unpriced=True,
                channels=[pb.ModelChannelPrice(channel="north-europe-west", source=none)],
                calls=1204,
                key_count=12,
                key_ids=KEY_IDS,
            ),
            pb.PricedModel(
                model="gpt-5",
                operations=operations,
                prices=tokens,
                channels=[
                    pb.ModelChannelPrice(channel="north", source=public, as_of="2026-11-01", prices=tokens),
                    pb.ModelChannelPrice(channel="south", source=stored, prices=tokens[:1]),
                ],
                overrides=[override],
                calls=81,
            ),
            pb.PricedModel(model="pictures", operations=[pb.MODEL_OPERATION_GENERATE_IMAGE], channels=[file]),
        ],
        overrides_without_model=[
            pb.ModelPriceOverride(
                model="renamed",
                prices=tokens,
                actor_name="ada",
                update_time=time(timedelta(days=3)),
                ineffective_reason="no channel serves the model",
            )
        ],
    )


def channel_check() -> pb.ChannelCheck:
    return pb.ChannelCheck(
        channel="north-europe-west",
        upstream_model=LONG_MODEL,
        outcome=pb.CHANNEL_CHECK_OUTCOME_FAILED,
        duration=duration(812),
        message=f"the provider fails: try again later (status 503: {REFUSAL})",
        upstream_request_id="7f3c9e0d",
    )


def keys() -> list[pb.Key]:
    return [
        pb.Key(
            key_id=KEY_IDS[0],
            prefix="sk-umg-4f7",
            settings=pb.KeySettings(name="bootstrap", administrator=True),
            create_time=time(timedelta(days=200)),
        ),
        pb.Key(
            key_id=KEY_IDS[1],
            prefix="sk-umg-9ab",
            settings=pb.KeySettings(
                name="batch of ann@north.example",
                budget_micro_credits=50_000_000,
                budget_period=pb.BUDGET_PERIOD_MONTH,
                requests_per_minute=600,
                tokens_per_minute=2_000_000,
                concurrent_requests=32,
                model_patterns=[LONG_MODEL, "famG-*", "famX-4"],
                operations=[pb.KEY_OPERATION_GENERATE, pb.KEY_OPERATION_EMBED],
                channels=["north", "south-fallback"],
                owner="analytics-platform@north.example",
                tags={"team": "search", "cost-centre": "4711"},
                expire_time=Timestamp(seconds=4_102_444_799),
            ),
            spent_micro_credits=46_100_000,
            reserved_micro_credits=1_400_000,
            balances=[
                pb.BudgetBalance(
                    budget=pb.Budget(period=pb.BUDGET_PERIOD_DAY, micro_credits=4_000_000),
                    spent_micro_credits=3_960_000,
                ),
                pb.BudgetBalance(budget=pb.Budget(micro_credits=1_000_000, soft=True), spent_micro_credits=2_000_000),
            ],
            create_time=time(timedelta(days=40)),
            last_use_time=time(timedelta(minutes=3)),
        ),
        pb.Key(
            key_id=KEY_IDS[2],
            prefix="sk-umg-c0d",
            settings=pb.KeySettings(name="=old()", show_route=True, budget_micro_credits=0),
            create_time=time(timedelta(days=90)),
            revoke_time=time(timedelta(days=1)),
        ),
    ]


def records() -> list[pb.RequestRecord]:
    failed = pb.RequestRecord(
        request_id="req_3b1f6c5d9e8a47b2a0c4d6e8f0123456",
        key_id=KEY_IDS[1],
        operation=pb.MODEL_OPERATION_GENERATE,
        method="/umg.v1.GenerationService/Generate",
        face="chat",
        model=LONG_MODEL,
        start_time=time(),
        duration=duration(1520.4),
        status="RESOURCE_EXHAUSTED",
        reason=pb.ERROR_REASON_UPSTREAM_RATE_LIMITED,
        message=REFUSAL,
        channel="north-europe-west",
        attempts=[
            pb.RequestAttempt(
                channel="north-europe-west",
                upstream_model=LONG_MODEL,
                start_time=time(timedelta(milliseconds=-4)),
                duration=duration(900),
                upstream_status_code=429,
                reason=pb.ERROR_REASON_UPSTREAM_RATE_LIMITED,
                failure_kind="rate_limit",
                upstream_code="engine_overloaded",
                upstream_request_id="8f14e45f-ceea-467f-a8d0-0f5b1d5e9c3a",
                upstream_message=REFUSAL,
                remedy="the key works, and its rate limit is reached: try again later",
            ),
            pb.RequestAttempt(channel="south", upstream_model="famX-4", start_time=time(), duration=duration(610.4)),
        ],
    )
    succeeded = pb.RequestRecord(
        request_id="req_77777777777777777777777777777777",
        key_id=KEY_IDS[0],
        operation=pb.MODEL_OPERATION_GENERATE,
        method="/umg.v1.GenerationService/StreamGenerate",
        face="messages",
        model="famX-4",
        streamed=True,
        start_time=time(timedelta(hours=3)),
        duration=duration(20_304.1),
        status="OK",
        channel="south",
        end_user="customer-1042",
        quantities=[
            pb.Quantity(unit=pb.BILLABLE_UNIT_INPUT_TOKEN, count=182_340),
            pb.Quantity(unit=pb.BILLABLE_UNIT_OUTPUT_TOKEN, count=911),
        ],
        micro_credits=1_204_310,
    )
    refused = pb.RequestRecord(
        request_id="req_00000000000000000000000000000401",
        face="chat",
        model="=HYPERLINK(1)",
        start_time=time(timedelta(hours=4)),
        duration=duration(0.3),
        status="UNAUTHENTICATED",
        reason=pb.ERROR_REASON_INVALID_KEY,
        message="the API key is not valid",
        refused_calls=501,
    )
    return [failed, succeeded, refused]


def usage(form: Form) -> None:
    totals = [(KEY_IDS[1], LONG_MODEL, 12_043, 311), ("key_" + "e" * 32, "famX-4", 3, 0)]
    counts = counts_of([pb.Quantity(unit=pb.BILLABLE_UNIT_INPUT_TOKEN, count=9_123_456)]) | {"images": 12}
    rows = [
        UsageTotal({"day": "2026-11-30", "key": key, "model": model}, requests, failed, counts, 12_345_678)
        for key, model, requests, failed in totals
    ]
    print_usage(["day", "key", "model"], rows, {KEY_IDS[1]: "batch of ann@north.example"}, form, has_bars=False)


def end_users() -> list[pb.EndUserUsage]:
    ada = pb.EndUserUsage(
        end_user="ada@north.example", request_count=311, failed_request_count=2, micro_credits=9_100_000
    )
    others = pb.EndUserUsage(request_count=12_043, input_tokens=9_123_456, output_tokens=88_000, micro_credits=1_500)
    return [ada, pb.EndUserUsage(end_user="=HYPERLINK(1)", request_count=1, micro_credits=2_000), others]


def call_summary() -> pb.GetCallSummaryResponse:
    durations = pb.DurationPercentiles(call_count=31, p50=duration(612), p95=duration(4_210), p99=duration(61_400))
    now = pb.CallFigures(
        start_time=time(timedelta(days=1)),
        end_time=time(),
        request_count=12_054,
        failed_request_count=81,
        cached_request_count=3_700,
        input_tokens=9_123_456,
        output_tokens=88_000,
        cache_read_tokens=4_000_000,
        micro_credits=184_201_500,
        first_byte=durations,
        whole_call=durations,
    )
    before = pb.CallFigures(start_time=time(timedelta(days=2)), request_count=11_000, micro_credits=164_000_000)
    before.whole_call.CopyFrom(
        pb.DurationPercentiles(call_count=9, p50=duration(600), p95=duration(5_000), p99=duration(58_000))
    )
    group = pb.CallFigures(
        request_count=6_000, failed_request_count=80, input_tokens=7_000_000, micro_credits=90_000_000
    )
    return pb.GetCallSummaryResponse(
        total=now,
        previous=before,
        bucket=pb.USAGE_BUCKET_DAY,
        buckets=[now],
        groups=[
            pb.CallGroup(value=LONG_MODEL, current=group, previous=before, micro_credits=[90_000_000]),
            pb.CallGroup(value="=famO-5", current=now),
        ],
        other_groups=pb.CallGroup(current=group),
        other_group_count=51,
        failures_by_reason=[
            pb.FailureCount(reason=pb.ERROR_REASON_UPSTREAM_UNPAID, request_count=80, previous_request_count=2),
            pb.FailureCount(request_count=1),
        ],
        failures_by_channel=[pb.FailureCount(channel="north-europe-west", request_count=81)],
        failures_by_kind=[pb.FailureCount(kind="unpaid", request_count=80), pb.FailureCount(request_count=1)],
    )


def usage_of_days(form: Form) -> None:
    rows = [
        UsageTotal({"day": f"2026-11-{day}"}, day * 7, day % 3, counts_of(()), day * 99_000) for day in (28, 29, 30)
    ]
    print_usage(["day"], rows, {}, form, has_bars=True)


def models(form: Form) -> None:
    token_price = pb.Price(unit=pb.BILLABLE_UNIT_INPUT_TOKEN, micro_credits_per_million=2_500_000)
    channels = [
        pb.ChannelModel(channel="north-europe-west", upstream_model=LONG_MODEL),
        pb.ChannelModel(channel="south", upstream_model="famX-4"),
    ]
    listed = [
        pb.ModelChannels(
            model=LONG_MODEL, owned_by="northwind", family="famX", channels=channels, prices=[token_price]
        ),
        pb.ModelChannels(model="best", alias_of="famX-4", owned_by="acme", channels=channels[1:]),
    ]
    states = {("north-europe-west", LONG_MODEL): "paused 4 s", ("south", "famX-4"): "healthy"}
    print_models(pb.ListChannelsResponse(models=listed), states, form)


def routes(form: Form) -> None:
    rows = [
        ("north-europe-west", LONG_MODEL, "healthy", "same format, the lowest price, weight 3 of 4, a cached prefix"),
        ("south", "famX-4", "paused 4 s", "not asked: not one of the key's channels"),
    ]
    print_routes({"generate text": rows}, form)


def restrictions(form: Form) -> None:
    page = "https://docs.provider.example/models/overview#restrictions"
    rows = [
        ("rejects", "[frequency_penalty, logit_bias, presence_penalty]", "chat", "model", "yes", page, "2026-11-02"),
        ("max_output_tokens", "64000", "chat, responses", "model, inherited", "no", page, "2026-10"),
    ]
    print_table(RESTRICTION_COLUMNS, rows, form)


def tasks() -> list[pb.VideoTask]:
    prompt = "A kingfisher dives into a mountain lake at dawn, in slow motion, seen from below the surface"
    return [
        pb.VideoTask(
            task_id=TASK_ID,
            model=LONG_MODEL,
            state=pb.VIDEO_TASK_STATE_RUNNING,
            progress_percent=45,
            create_time=time(timedelta(minutes=4)),
            parameters=pb.VideoParameters(prompt=prompt, media=[pb.VideoMedia(data=b"x" * 5)]),
        ),
        pb.VideoTask(
            task_id="task_" + "1" * 32,
            model="vidA-2",
            state=pb.VIDEO_TASK_STATE_FAILED,
            create_time=time(timedelta(days=2)),
            error=pb.VideoTaskError(code="content_policy", message=REFUSAL),
        ),
    ]


def sessions() -> list[pb.UserSession]:
    return [
        pb.UserSession(
            session_id="ses_0f9d3c1e5b7a48d2",
            user_id="usr_" + "5" * 32,
            address="2001:db8:85a3::8a2e:370:7334",
            agent="Mozilla/5.0 (X11; Linux x86_64; rv:149.0) Gecko/20100101 Firefox/149.0",
            create_time=time(timedelta(hours=3)),
            last_use_time=time(timedelta(minutes=1)),
            idle_expire_time=time(-timedelta(minutes=29)),
            expire_time=time(-timedelta(hours=9)),
        ),
        pb.UserSession(
            session_id="ses_a1b2c3d4e5f60718",
            key_id=KEY_IDS[0],
            address="192.0.2.7",
            create_time=time(timedelta(hours=1)),
            last_use_time=time(timedelta(hours=1)),
            idle_expire_time=time(timedelta(minutes=30)),
            expire_time=time(-timedelta(hours=11)),
        ),
    ]


def settings() -> list[pb.ConfigSetting]:
    long = "famO-5, accounts/northwind/deployments/reasoner-70b-instruct-2026-11, text-embedding-3-small, rerank-v3"
    return [
        pb.ConfigSetting(path="channels[0].models", value=long, source=pb.CONFIG_SOURCE_FILE, line=12),
        pb.ConfigSetting(
            path="channels[0].api_key",
            value="${AZURE_EU_KEY}",
            source=pb.CONFIG_SOURCE_ENVIRONMENT,
            line=9,
            variables=["AZURE_EU_KEY"],
            secret=True,
        ),
        pb.ConfigSetting(path="drain", value="30", source=pb.CONFIG_SOURCE_FILE, line=41, waits_for_restart=True),
        pb.ConfigSetting(path="retries.budget", value="0.2", source=pb.CONFIG_SOURCE_DEFAULT),
        pb.ConfigSetting(path="--http", value="127.0.0.1:8080", source=pb.CONFIG_SOURCE_FLAG),
    ]


def task_records() -> list[pb.TaskRecord]:
    url = "https://hooks.north.example/video/finished"
    waiting = pb.TaskCallback(
        callback_id="msg_Jc0VwqWn3rXh1bKQk2x7yTzP5sLdA9eF",
        task_state=pb.VIDEO_TASK_STATE_RUNNING,
        state=pb.TASK_CALLBACK_STATE_WAITING,
        url=url,
        attempts=3,
        create_time=time(timedelta(minutes=30)),
        last_attempt_time=time(timedelta(minutes=2)),
        next_attempt_time=time(-timedelta(minutes=1)),
        last_error="no response in 10 s",
    )
    given_up = pb.TaskCallback(
        callback_id="msg_9eFJc0VwqWn3rXh1bKQk2x7yTzP5sLdA",
        task_state=pb.VIDEO_TASK_STATE_FAILED,
        state=pb.TASK_CALLBACK_STATE_GIVEN_UP,
        url=url,
        attempts=10,
        create_time=time(timedelta(hours=17)),
        last_attempt_time=time(timedelta(minutes=40)),
        status_code=503,
        last_error="the receiver answered with status 503",
    )
    attempt = pb.RequestAttempt(
        channel="north-europe-west",
        upstream_model="vidA-2-provider",
        start_time=time(timedelta(minutes=31)),
        duration=Duration(seconds=1),
        upstream_status_code=200,
    )
    return [
        pb.TaskRecord(
            task_id=TASK_ID,
            key_id=KEY_IDS[1],
            key_name="north-search-and-ranking",
            request_id="req_0661c2f4a9b84e7d",
            kind=pb.VIDEO_TASK_KIND_TEXT_TO_VIDEO,
            entry=pb.VIDEO_ENTRY_UNIFIED,
            model="vidA-2",
            state=pb.VIDEO_TASK_STATE_RUNNING,
            state_times=[
                pb.TaskStateTime(state=pb.VIDEO_TASK_STATE_SUBMITTING, time=time(timedelta(minutes=31))),
                pb.TaskStateTime(state=pb.VIDEO_TASK_STATE_RUNNING, time=time(timedelta(minutes=30))),
            ],
            channel="north-europe-west",
            upstream_model="vidA-2-provider",
            upstream_task_id="cgt-20261130091717-x8k2v",
            attempts=[attempt],
            update_time=time(timedelta(minutes=30)),
            deadline_time=time(-timedelta(minutes=29)),
            next_poll_time=time(-timedelta(seconds=9)),
            failed_polls=2,
            stall="state reviewing 40",
            stall_time=time(timedelta(minutes=12)),
            callbacks=[waiting],
        ),
        pb.TaskRecord(
            task_id="task_" + "1" * 32,
            key_id=KEY_IDS[0],
            request_id="req_0660b7d2e18c4f21",
            kind=pb.VIDEO_TASK_KIND_REMIX,
            model="vidA-2",
            state=pb.VIDEO_TASK_STATE_FAILED,
            state_times=[
                pb.TaskStateTime(state=pb.VIDEO_TASK_STATE_SUBMITTING, time=time(timedelta(hours=18))),
                pb.TaskStateTime(state=pb.VIDEO_TASK_STATE_FAILED, time=time(timedelta(hours=17))),
            ],
            update_time=time(timedelta(hours=17)),
            error=pb.VideoTaskError(code="task_failed", status_code=500, message=REFUSAL),
            expire_time=time(-timedelta(days=6)),
            callbacks=[given_up],
        ),
    ]


def alerts(form: Form) -> None:
    budget = pb.Alert(
        alert_id="alert_Rk3",
        rule=pb.ALERT_RULE_BUDGET,
        object=f"key:{KEY_IDS[0]}",
        threshold_percent=80,
        summary="The monthly budget of the key `north-search-and-ranking` is spent to 81 %: 81.00 of 100.00 credits.",
        details={"name": "north-search-and-ranking", "percent": "81"},
        open_time=time(timedelta(hours=3)),
    )
    down = pb.Alert(
        alert_id="alert_x71",
        rule=pb.ALERT_RULE_CHANNEL_DOWN,
        object=f"north-europe-west/{LONG_MODEL}",
        summary=f"Channel `north-europe-west` is down for model `{LONG_MODEL}`: calls use other channels, or fail.",
        open_time=time(timedelta(days=1)),
        close_time=time(timedelta(hours=20)),
    )
    opened, event = time(timedelta(hours=3)), pb.ALERT_EVENT_OPENED
    delivered = pb.AlertDelivery(receiver="ops", event=event, create_time=opened, delivered_time=opened, attempts=1)
    failed = pb.AlertDelivery(
        receiver="finance",
        event=event,
        create_time=opened,
        attempts=3,
        next_attempt_time=time(),
        last_error="the receiver answered with status 503",
    )
    print_alerts([pb.AlertRecord(alert=budget, deliveries=[delivered, failed]), pb.AlertRecord(alert=down)], form)


def prices(form: Form) -> None:
    rows = [
        FilePrice(
            model=LONG_MODEL, input="2.5", output="10", cache_read="0.25", cache_write="3.125", as_of="2026-11-02"
        ),
        FilePrice(model="imgA-1", vendor="northwind", image={"": "0.04"}, retired="2027-01-31"),
    ]
    print_prices(rows, form)


def providers(form: Form) -> None:
    values = {"title": "Northwind", "listed": (), "source": "https://docs.provider.example", "as_of": "2026-11"}
    presets = [
        Provider(name="northwind-international", kind="host", keys=("NORTHWIND_INTERNATIONAL_API_KEY",),
                 protocols=("chat", "responses", "embeddings", "images", "speech", "transcriptions"),
                 base_url="https://api.northwind.example/v1", **values),
        Provider(name="acme", kind="maker", keys=("ACME_KEY",), protocols=("messages",),
                 base_url="https://acme.example", **values),
    ]  # fmt: skip
    print_providers(presets, form)


CHECKS = [
    Check("python", CheckState.OK, "CPython 3.11.9, built with optimizations"),
    Check("HTTP port", CheckState.FAIL, "127.0.0.1:8080 is in use for HTTP by process 4711 (nginx)",
          "stop it, or choose another address: --http HOST:PORT"),
    Check("open files", CheckState.WARN, "limit 4096 is enough for 1984 of 8192 connections",
          "raise it: `ulimit -Hn`, `LimitNOFILE=` of systemd, `--ulimit nofile=` of Docker to 16896"),
]  # fmt: skip


def accounts() -> list[pb.Account]:
    budget = pb.Budget(micro_credits=2_500_000_000, period=pb.BUDGET_PERIOD_MONTH)
    return [
        pb.Account(
            account_id="proj_0f9d3c1e5b7a48d2",
            kind=pb.ACCOUNT_KIND_PROJECT,
            settings=pb.AccountSettings(
                name="search and recommendations", organization_id="org_a1b2c3d4e5f60718",
                model_patterns=["gpt-*", LONG_MODEL], requests_per_minute=600, budgets=[budget],
            ),
            balances=[pb.BudgetBalance(budget=budget, spent_micro_credits=1_234_567_890, reserved_micro_credits=5_000_000)],
            create_time=time(timedelta(days=40)),
        ),
        pb.Account(
            account_id="proj_7777777777777777",
            settings=pb.AccountSettings(name="old"),
            create_time=time(timedelta(days=400)),
            close_time=time(timedelta(days=2)),
        ),
    ]  # fmt: skip


def users() -> list[pb.User]:
    roles = [
        pb.Membership(account_id="proj_0f9d3c1e5b7a48d2", role=pb.USER_ROLE_ADMIN),
        pb.Membership(role=pb.USER_ROLE_VIEWER),
    ]
    return [
        pb.User(
            user_id="user_0f9d3c1e5b7a48d2", kind=pb.USER_KIND_PERSON, last_sign_in_time=time(), create_time=time(),
            settings=pb.UserSettings(name="Ada Lovelace", email="ada.lovelace@research.northwind.example", memberships=roles),
        ),
        pb.User(
            user_id="user_7777777777777777", kind=pb.USER_KIND_SERVICE_ACCOUNT, create_time=time(),
            settings=pb.UserSettings(name="deployments", disabled=True),
        ),
    ]  # fmt: skip


def events() -> list[pb.AuditEvent]:
    return [
        pb.AuditEvent(
            event_id="audit_1", time=time(), actor_kind=pb.AUDIT_ACTOR_KIND_USER, actor_id="user_0f9d3c1e5b7a48d2",
            actor_name="Ada Lovelace", credential="sk-umg-3f9a", address="10.0.0.9", method="/umg.v1.AdminService/UpdateKey",
            object_kind="key", object_id=KEY_IDS[0], object_name="indexer", account_id="proj_0f9d3c1e5b7a48d2",
            before_json='{"requests_per_minute":null}', after_json='{"requests_per_minute":60}',
        ),
        pb.AuditEvent(
            event_id="audit_2", time=time(timedelta(hours=3)), actor_kind=pb.AUDIT_ACTOR_KIND_OPERATOR, actor_id="root",
            actor_name="root", method="/umg.v1.UserService/CreateUser", object_kind="user", refused=True,
            message="not allowed: your role is viewer of the gateway",
        ),
    ]  # fmt: skip


TABLE_SAMPLES = [
    TableSample("organizations", "organizations list", lambda form: print_accounts(accounts()[1:], form)),
    TableSample("projects", "projects list", lambda form: print_accounts(accounts(), form)),
    TableSample("organization", "organizations show", lambda form: print_account(accounts()[1], form)),
    TableSample("project", "projects show", lambda form: print_account(accounts()[0], form)),
    TableSample("user", "users show", lambda form: print_user(users()[0], form)),
    TableSample("users", "users list", lambda form: print_users(users(), form)),
    TableSample("audit", "audit list", lambda form: print_events(events(), form)),
    TableSample("keys", "keys list", lambda form: print_keys(keys(), form)),
    TableSample("key", "keys show", lambda form: print_key(keys()[1], form)),
    TableSample("usage", "usage", usage),
    TableSample("usage_of_days", "usage", usage_of_days),
    TableSample("usage_of_end_users", "usage", lambda form: print_end_users(end_users(), form)),
    TableSample("summary", "summary", lambda form: print_summary(call_summary(), "model", {}, form)),
    TableSample("requests", "requests list", lambda form: print_records(records(), {KEY_IDS[0]: "bootstrap"}, form)),
    TableSample("request", "requests show", lambda form: print_record(records()[0], KEY_IDS[1], form)),
    TableSample("refused_request", "requests show", lambda form: print_record(records()[2], "none", form)),
    TableSample("models", "models", models),
    TableSample("routes", "models", routes),
    TableSample("restrictions", "models", restrictions),
    TableSample("tasks", "tasks list", lambda form: print_tasks(tasks(), NOW, form)),
    TableSample("task", "tasks show", lambda form: print_task(tasks()[0], form)),
    TableSample("found_tasks", "tasks find", lambda form: print_found(task_records(), NOW, form)),
    TableSample("task_record", "tasks inspect", lambda form: print_record_of(task_records()[0], form)),
    TableSample("deliveries", "tasks redeliver", lambda form: print_deliveries(task_records()[1].callbacks, form)),
    TableSample("callbacks", "tasks callbacks", lambda form: print_callbacks(task_records(), 9, form)),
    TableSample("sessions", "users sessions", lambda form: print_sessions(sessions(), form)),
    TableSample("settings", "config show", lambda form: print_settings(settings(), pb.ConfigStatus(), form)),
    TableSample("alerts", "alerts list", alerts),
    TableSample("channels", "channels list", lambda form: print_channels(channels(), form)),
    TableSample("channel_models", "channels list", lambda form: print_channel_models(channels().channels[0], form)),
    TableSample("model_prices", "prices models", lambda form: print_model_prices(model_prices(), form)),
    TableSample("channel_check", "channels check", lambda form: print_channel_check(channel_check(), form)),
    TableSample("prices", "prices list", prices),
    TableSample("providers", "providers", providers),
    TableSample("checks", "doctor", lambda form: print_checks(CHECKS, form)),
    TableSample(
        "live_checks",
        "check",
        lambda form: print_results(
            [CheckResult("north-europe-west", True, f"{LONG_MODEL} responds"), CheckResult("south", False, REFUSAL)],
            form,
        ),
    ),
]
