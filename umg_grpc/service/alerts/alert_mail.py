"""Receiver of alerts by mail: a plain text by an SMTP server, with the client of the standard library."""

import ssl
from collections.abc import Mapping
from datetime import UTC
from email.message import EmailMessage
from email.utils import format_datetime
from functools import partial
from smtplib import SMTP, SMTP_SSL, SMTPException, SMTPRecipientsRefused, SMTPResponseException

from umg_grpc.base.daemon_threads import in_daemon_thread
from umg_grpc.config.alert_settings import EmailReceiver
from umg_grpc.service.alerts.alert_messages import times_of, title_of
from umg_grpc.service.alerts.alert_receiver_interface import ReceiverFailedError
from umg_grpc.v1 import pb

SUBJECT_CHARACTERS = 150

Refusals = Mapping[str, tuple[int, bytes]]
"""Recipient -> code and text of the response of a server that refused it."""


class MailReceiverClient:
    """Client of an SMTP server."""

    def __init__(self, receiver: EmailReceiver) -> None:
        self._receiver = receiver

    async def send(self, sent: pb.AlertNotification) -> None:
        message = mail_of(sent, self._receiver)
        try:
            refused = await in_daemon_thread(partial(self._deliver, message), "mail of an alert")
        except SMTPRecipientsRefused as error:
            reason = f"the server refused all recipients: {_first_refusal(error.recipients)}"
            raise ReceiverFailedError(reason) from None
        except SMTPResponseException as error:
            raise ReceiverFailedError(f"the server answered {error.smtp_code}: {_text(error.smtp_error)}") from None
        except (SMTPException, OSError) as error:
            raise ReceiverFailedError(f"{type(error).__name__}: {error}") from None
        if refused:  # final, since the other recipients would get a repetition, too
            names = ", ".join(refused)
            reason = f"the server refused {names}: {_first_refusal(refused)}; the other recipients got the mail"
            raise ReceiverFailedError(reason, is_final=True)

    def _deliver(self, message: EmailMessage) -> Refusals:
        """Send the message, and block until the server has accepted it. Return the recipients that it refused."""
        place = self._receiver
        context = ssl.create_default_context(cafile=place.ca_file)
        server = (
            SMTP_SSL(place.host, place.port, timeout=place.timeout, context=context)
            if place.security == "tls"
            else SMTP(place.host, place.port, timeout=place.timeout)
        )
        with server:
            if place.security == "starttls":
                server.starttls(context=context)
            if place.username is not None and place.password is not None:
                server.login(place.username, place.password)
            return server.send_message(message)


def mail_of(sent: pb.AlertNotification, receiver: EmailReceiver) -> EmailMessage:
    """Return the mail of a notification. Repeated attempts have the same Message-ID."""
    message = EmailMessage()
    first_line = " ".join(sent.alert.summary.split())
    subject = f"[umg] {title_of(sent)}: {first_line}"
    message["Subject"] = subject if len(subject) <= SUBJECT_CHARACTERS else f"{subject[: SUBJECT_CHARACTERS - 1]}…"
    message["From"] = receiver.sender
    message["To"] = ", ".join(receiver.to)
    message["Date"] = format_datetime(sent.create_time.ToDatetime(UTC))
    message["Message-ID"] = f"<{sent.notification_id}@{receiver.sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no automatic replies
    lines = [sent.alert.summary]
    if sent.alert.HasField("open_time"):
        lines += ["", times_of(sent)]
    if details := [f"{name}: {value}" for name, value in sorted(sent.alert.details.items()) if value]:
        lines += ["", *details]
    if sent.alert.alert_id:
        lines += ["", f"Alert {sent.alert.alert_id}; `umg alerts list` has all alerts."]
    message.set_content("\n".join(lines) + "\n")
    return message


def _first_refusal(refused: Refusals) -> str:
    code, text = next(iter(refused.values()))
    return f"{code} {_text(text)}"


def _text(reply: bytes | str) -> str:
    return reply.decode(errors="replace") if isinstance(reply, bytes) else reply
