"""Delivery of notifications about alerts: to receivers of each kind, once by all processes, through failures and kills."""

import asyncio
from pathlib import Path

import pytest

from tests.support.alert_receivers import MailServer, check_slack, mail_server, slack_server, webhook_server
from tests.support.alerts import AlertProcess, Facts, alert_process
from tests.support.databases import Database
from tests.support.store_fixtures import Clock, opened_stores
from umg_grpc.service.alerts.alert_sender import LEASE_SECONDS, RETRY_PAUSES
from umg_grpc.service.alerts.slack_alert_message import slack_message
from umg_grpc.store import Store
from umg_grpc.store.alert_table import AlertDelivery, AlertSelection
from umg_grpc.v1 import pb

CREDIT = 10**6
NOWHERE = "    away: {kind: webhook, url: 'http://127.0.0.1:1', secret: whsec_" + "A" * 32 + "}\n"


async def open_alert(process: AlertProcess, store: Store, clock: Clock, name: str = "ci") -> None:
    """Open an alert, whose notifications are due but not sent yet."""
    facts = Facts(store, clock)
    await facts.spend(await facts.key(name, CREDIT), CREDIT)
    await process.watch.evaluate()


async def deliveries(process: AlertProcess) -> list[AlertDelivery]:
    return [each for _, found in await process.table.page(AlertSelection(), 100) for each in found]


async def test_a_notification_is_repeated_with_its_id_until_it_is_accepted(prepared_store: Store, clock: Clock) -> None:
    async with (
        webhook_server() as server,
        alert_process(prepared_store, clock, f"  receivers:\n{server.config()}") as process,
    ):
        server.statuses = [500, 302, 200]
        await open_alert(process, prepared_store, clock)
        for attempts, error in ((1, "status 500"), (2, "status 302"), (3, "")):
            await process.deliver()
            [delivery] = await deliveries(process)
            assert (delivery.attempts, error in delivery.error) == (attempts, True)
            await process.deliver()
            assert len(server.received) == attempts, "not before the pause is over"
            clock.time = clock.later(60)
        assert len({each.notification_id for each in server.received}) == 1
        assert delivery.deliver_micros is not None


@pytest.mark.parametrize(("status", "attempts"), [(500, len(RETRY_PAUSES) + 1), (410, 1)])
async def test_a_notification_that_is_never_accepted_is_given_up(
    status: int, attempts: int, prepared_store: Store, clock: Clock
) -> None:
    async with (
        webhook_server() as server,
        alert_process(prepared_store, clock, f"  receivers:\n{server.config()}") as process,
    ):
        server.statuses = [status]
        await open_alert(process, prepared_store, clock)
        for _ in range(len(RETRY_PAUSES) + 2):
            await process.deliver()
            clock.time = clock.later(20_000)
        [delivery] = await deliveries(process)
        assert (len(server.received), delivery.next_attempt_micros) == (attempts, None)
        assert delivery.error == f"the receiver answered with status {status}"


async def test_a_receiver_that_hangs_or_is_away_delays_no_other(prepared_store: Store, clock: Clock) -> None:
    async with webhook_server() as slow, webhook_server() as quick:
        receivers = f"  receivers:\n{slow.config('slow')}{NOWHERE}{quick.config('quick')}"
        async with alert_process(prepared_store, clock, receivers) as process:
            slow.hangs = True
            await open_alert(process, prepared_store, clock, "one")
            await process.sender.send_due()
            await slow.arrived.wait()
            await asyncio.wait([task for name, task in process.sender._sending.items() if name != "slow"])
            await open_alert(process, prepared_store, clock, "two")
            await process.sender.send_due()
            assert "slow" in process.sender._sending
            await asyncio.wait([task for name, task in process.sender._sending.items() if name == "quick"])
            assert (len(slow.received), len(quick.received)) == (1, 2)
            slow.released.set()
            await process.deliver()
            assert len(slow.received) == 2
            assert (
                sorted(each.error for each in await deliveries(process) if each.receiver == "away")
                == ["no response: UPSTREAM_UNREACHABLE"] * 2
            )


async def test_two_processes_send_once(prepared_database: Database, clock: Clock) -> None:
    async with opened_stores(prepared_database, 2) as [one, two], webhook_server() as server:
        receivers = f"  receivers:\n{server.config()}"
        async with alert_process(one, clock, receivers, "one") as a, alert_process(two, clock, receivers, "two") as b:
            facts = Facts(one, clock)
            for number in range(5):
                await facts.spend(await facts.key(f"key-{number}", CREDIT), CREDIT)
                await asyncio.gather(a.step(), b.step())
                clock.time = clock.later(10)
            await asyncio.gather(a.deliver(), b.deliver())
            assert len(server.received) == 5
            assert len({each.alert.object for each in server.received}) == 5


async def test_another_process_goes_on_when_one_has_ended(prepared_database: Database, clock: Clock) -> None:
    async with opened_stores(prepared_database, 2) as [one, two], webhook_server() as server:
        receivers = f"  receivers:\n{server.config()}"
        facts = Facts(one, clock)
        async with (
            alert_process(one, clock, receivers, "one") as killed,
            alert_process(two, clock, receivers, "two") as b,
        ):
            await killed.step()
            await facts.spend(await facts.key("ci", CREDIT), CREDIT)
            await b.step()
            assert server.events == [], "the lease of the other process holds"
            clock.time = clock.later(61)
            await b.step()
            assert server.events == [("opened", "budget", 100)]
            await b.watch.aclose()
            await facts.spend(await facts.key("another", CREDIT), CREDIT)
            await killed.step()
            assert len(server.events) == 2, "a process that stops releases its lease"


async def test_a_process_that_has_lost_its_lease_changes_nothing(prepared_database: Database, clock: Clock) -> None:
    async with opened_stores(prepared_database, 2) as [one, two], webhook_server() as server:
        receivers = f"  receivers:\n{server.config()}"
        async with alert_process(one, clock, receivers, "one") as a, alert_process(two, clock, receivers, "two") as b:
            assert await a.table.lead(60)
            clock.time = clock.later(61)
            assert await b.table.lead(60)
            assert not await a.table.apply([], [], [])
            assert not await a.table.lead(60)


async def test_a_kill_between_the_sending_and_its_record_repeats_the_notification_with_its_id(
    prepared_database: Database, clock: Clock
) -> None:
    async with opened_stores(prepared_database, 2) as [one, two], webhook_server() as server:
        receivers = f"  receivers:\n{server.config()}"
        async with alert_process(one, clock, receivers, "one") as killed:
            await open_alert(killed, one, clock)
            [sent] = await killed.table.claim(LEASE_SECONDS)
            assert await killed.sender._attempt(sent) is None
        async with alert_process(two, clock, receivers, "two") as other:
            await other.deliver()
            assert len(server.received) == 1, "the lease of the notification holds"
            clock.time = clock.later(LEASE_SECONDS + 1)
            await other.deliver()
            await other.deliver()
            first, second = server.received
            assert first == second


async def test_alerts_outlive_a_restart(prepared_store: Store, clock: Clock) -> None:
    async with webhook_server() as server:
        receivers = f"  receivers:\n{server.config()}"
        for name in ("before", "after"):
            async with alert_process(prepared_store, clock, receivers, name) as process:
                if name == "before":
                    await open_alert(process, prepared_store, clock)
                await process.step()
                await process.watch.aclose()
        assert server.events == [("opened", "budget", 100)]


async def test_past_alerts_are_deleted_after_90_days(prepared_store: Store, clock: Clock) -> None:
    async with (
        webhook_server() as server,
        alert_process(prepared_store, clock, f"  receivers:\n{server.config()}") as process,
    ):
        await open_alert(process, prepared_store, clock)
        clock.time = clock.later(86_400)
        await process.step()
        assert server.events == [("opened", "budget", 100), ("recovered", "budget", 100)]
        for days, left in ((89, 2), (2, 0)):
            clock.time = clock.later(days * 86_400)
            await process.watch._sweep()
            assert len(await deliveries(process)) == left


async def test_slack_gets_messages_in_its_shape(prepared_store: Store, clock: Clock) -> None:
    async with slack_server() as server:
        receiver = f"  receivers:\n    chat: {{kind: slack, url: '{server.url}'}}\n"
        async with alert_process(prepared_store, clock, receiver) as process:
            await open_alert(process, prepared_store, clock, "<!channel> & co")
            await process.step()
    [message] = server.received
    assert message["text"].startswith("Alert: budget: The daily budget of the key `&lt;!channel&gt; &amp; co` is spent")
    assert message["blocks"][0]["text"]["text"] == "Alert: budget"


def test_messages_for_slack_have_at_most_the_lengths_that_it_takes() -> None:
    details = {f"name-{number}": "<" * 3000 for number in range(20)}
    for alert in (pb.Alert(summary="&" * 5000, details=details), pb.Alert(summary="x")):
        check_slack(slack_message(pb.AlertNotification(event=pb.ALERT_EVENT_OPENED, alert=alert)))


async def test_a_mail_is_sent_with_tls_and_authentication(tmp_path: Path, prepared_store: Store, clock: Clock) -> None:
    async with (
        mail_server(tmp_path) as server,
        alert_process(prepared_store, clock, f"  receivers:\n{server.config()}") as process,
    ):
        await open_alert(process, prepared_store, clock, "größer")
        await process.step()
        [delivery] = await deliveries(process)
    [mail] = server.received
    assert delivery.error == ""
    assert (
        mail["subject"]
        == "[umg] Alert: budget: The daily budget of the key `größer` is spent to 100 %: 1.00 of 1.00 credits."
    )
    assert (mail["from"], mail["to"]) == ("umg@example.com", "ops@example.com, on-call@example.com")
    assert mail["message-id"] == f"<{delivery.notification_id}@example.com>"
    assert "spent_micro_credits: 1000000" in mail.get_content()


async def refused(server: MailServer, config: str, store: Store, clock: Clock) -> str:
    async with alert_process(store, clock, f"  receivers:\n{config}") as process:
        await open_alert(process, store, clock)
        await process.step()
        [delivery] = await deliveries(process)
    assert server.received == []
    return delivery.error


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("password: correct horse", "password: wrong", "the server answered 535: 5.7.8 Authentication credentials"),
        ("security: starttls", "security: tls", "SSLError"),
        ("ca_file: ", "ca_file: /dev/null #", "SSLError"),
    ],
)
async def test_the_reason_of_a_mail_that_is_not_sent_is_stored(
    old: str, new: str, error: str, tmp_path: Path, prepared_store: Store, clock: Clock
) -> None:
    async with mail_server(tmp_path) as server:
        config = server.config().replace("kind: email,", "kind: email, security: starttls,")
        if "ca_file" in new:
            config = config.replace(f", ca_file: {server.ca_file}", "")
        found = await refused(server, config.replace(old, new), prepared_store, clock)
        assert error.removesuffix("SSLError") in found
        assert "correct horse" not in found


async def test_recipients_that_the_server_refuses_are_an_error(
    tmp_path: Path, prepared_store: Store, clock: Clock
) -> None:
    async with mail_server(tmp_path) as server:
        server.refuses = "o"
        found = await refused(server, server.config(), prepared_store, clock)
    assert found == "the server refused all recipients: 550 there is no such mailbox"


async def test_a_recipient_that_the_server_refuses_is_known_though_others_got_the_mail(
    tmp_path: Path, prepared_store: Store, clock: Clock
) -> None:
    async with (
        mail_server(tmp_path) as server,
        alert_process(prepared_store, clock, f"  receivers:\n{server.config()}") as process,
    ):
        server.refuses = "on-call"
        await open_alert(process, prepared_store, clock)
        await process.step()
        [delivery] = await deliveries(process)
    assert "on-call@example.com: 550 there is no such mailbox; the other recipients got the mail" in delivery.error
    assert (len(server.received), delivery.next_attempt_micros) == (1, None), (
        "a repetition would reach the others twice"
    )
