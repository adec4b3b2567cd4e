"""Gauges that the gateway exports (numbers that rise and fall, as calls in flight): names, help texts, labels."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Level:
    """Definition of a gauge: its name, help text and labels, and the aggregation of its values from several workers."""

    name: str
    help_text: str
    labels: tuple[str, ...] = ()
    of_workers: Literal["livesum", "livemax", "livemin"] = "livesum"
    """Aggregation of the values of several worker processes, without ended workers: their sum, maximum or minimum."""


CHANNEL_STATE = Level(
    "umg_channel_state", "Circuit breaker: 0 closed, 1 open, 2 half-open.", ("channel", "model"), "livemax"
)
CHANNEL_PAUSE = Level(
    "umg_channel_rest_seconds", "Seconds until the circuit breaker is half-open.", ("channel", "model"), "livemax"
)
CHANNEL_CALLS = Level("umg_channel_calls", "Attempts in flight.", ("channel",))
CHANNEL_QUEUE = Level("umg_channel_queue", "Calls that wait for a place at the channel.", ("channel",))
CHANNEL_DISABLED = Level(
    "umg_channel_disabled", "1 for a channel that an administrator has disabled.", ("channel",), "livemax"
)
CHANNEL_PAUSED_KEYS = Level("umg_channel_keys_resting", "Keys that are paused.", ("channel",), "livemax")
CALLS_IN_FLIGHT = Level("umg_gate_calls", "Calls in flight.")
CALLS_QUEUED = Level("umg_gate_queue", "Calls that wait for a place in the process.")
MEMORY_SHARE = Level(
    "umg_gate_memory_ratio", "Memory in use, as a share of the limit above which calls are refused.", (), "livemax"
)
OPEN_FILES_LIMIT = Level("umg_open_files_limit", "Files that the process may open.", (), "livemin")
CONNECTIONS_LIMIT = Level("umg_connections_limit", "Connections of HTTP clients that may be open.")
DATABASE_UP = Level("umg_database_up", "1 while the database answers, else 0.", of_workers="livemin")
REDIS_UP = Level("umg_redis_up", "1 while Redis answers, else 0.", of_workers="livemin")
JOURNAL_UP = Level("umg_journal_up", "1 while the journal can take usage records, else 0.", of_workers="livemin")
CLOCK_SKEW = Level(
    "umg_clock_skew_seconds", "Seconds by which the clock is ahead of the database's.", of_workers="livemax"
)
WRITES_WAITING = Level("umg_writes_waiting", "Writes that the database or Redis has not taken yet.", ("store",))
UNPRICED_MODELS = Level(
    "umg_unpriced_models", "1 for a model without a price; `other` for the number of the rest.", ("model",), "livemax"
)
KNOWN_KEYS = Level("umg_known_keys", "Callers' keys in memory, valid without the database.", (), "livemin")
MODEL_LIST_SUCCESS = Level(
    "umg_model_list_success",
    "1 if the last read of the provider's model list succeeded, else 0.",
    ("channel",),
    "livemin",
)
MODEL_LIST_AGE = Level(
    "umg_model_list_age_seconds", "Seconds since the provider's model list was read.", ("channel",), "livemax"
)
RELOAD_SUCCESS = Level("umg_reload_success", "1 if the last reload of the config succeeded, else 0.", (), "livemin")
RELOAD_TIME = Level("umg_reload_time_seconds", "Unix time of the last reload, or of the start.", (), "livemin")
TLS_EXPIRY = Level("umg_tls_certificate_expiry_time_seconds", "Unix time of its expiry.", (), "livemin")
TLS_RELOAD_SUCCESS = Level(
    "umg_tls_reload_success", "1 if the certificate files are those in use, 0 if they cannot be used.", (), "livemin"
)
START_LAG = Level("umg_gate_lag_seconds", "Longest wait for a start in the last minute.", ("clock",), "livemax")
BLOB_STORE = Level("umg_blob_store_bytes", "Bytes of the stored result files.", (), "livemax")
TASKS_LEVEL = Level("umg_tasks", "Tasks alive in the event loop.")
CONFIG_INFO = Level("umg_config_info", "1, with a hash of the config without its secrets.", ("hash",), "livemax")
BUILD_INFO = Level("umg_build_info", "1, with the versions of the program.", ("version", "python"), "livemax")
