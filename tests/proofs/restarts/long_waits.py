"""Changes to `umg` for a machine on which a restart of PostgreSQL may take longer than two seconds."""

from umg_grpc.access import authentication
from umg_grpc.service.conversations import message_threads, stored_responses
from umg_grpc.store import database_outages

SECONDS = 60.0


def prepare() -> None:
    """Let all calls wait for the database for a minute."""
    database_outages.WAIT_SECONDS = database_outages.PATIENCE_SECONDS = SECONDS
    message_threads.KEEP_SECONDS = message_threads.READ_SECONDS = SECONDS
    stored_responses.KEEP_SECONDS = stored_responses.READ_SECONDS = SECONDS
    authentication.QUERY_SECONDS = authentication.UNKNOWN_WAIT_SECONDS = authentication.KNOWN_WAIT_SECONDS = SECONDS
