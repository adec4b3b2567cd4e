"""Triggers of the database that record each change of an API key, so that processes read only changed keys. They record
changes by every program, also by earlier versions and by an operator. A new time of last use is no change.
"""

from umg_grpc.store.database_constants import SQLITE_KIND

CHANGE_LOCK = 0x554D475F4B455953  # number of a PostgreSQL advisory lock, chosen freely
WATCHED_COLUMNS = (
    *("secret_hash", "prefix", "name", "model_patterns", "requests_per_minute", "expire_time", "revoke_time"),
    *("channels", "show_route", "operations", "administrator", "owner", "tags", "previous_secret_hash"),
    *("previous_prefix", "previous_expire_time", "tokens_per_minute", "concurrent_requests"),
    *("budget_micro_credits", "budget_period"),
)
"""Columns of `api_keys` whose changes are recorded: all but the id, the time of creation and that of the last use."""
_EVENTS = {
    "insert": ("INSERT", "NEW"),
    "update": (f"UPDATE OF {', '.join(WATCHED_COLUMNS)}", "NEW"),
    "delete": ("DELETE", "OLD"),
}
_RECORD = (
    "INSERT INTO api_key_changes (key_id, change_number)"
    " VALUES ({row}.key_id, (SELECT coalesce(max(change_number), 0) + 1 FROM api_key_changes))"
    " ON CONFLICT (key_id) DO UPDATE SET change_number = excluded.change_number"
)
# The lock is held until the commit, so that numbers become visible in their order: no reader passes over a change.
_FUNCTION = f"""
CREATE OR REPLACE FUNCTION umg_record_key_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock({CHANGE_LOCK});
  IF TG_OP = 'DELETE' THEN
    {_RECORD.format(row="OLD")};
  ELSE
    {_RECORD.format(row="NEW")};
  END IF;
  RETURN NULL;
END $$
"""


def trigger_statements(dialect: str) -> list[str]:
    """Return the statements that create the triggers. `dialect`: SQLAlchemy's name of the kind of database."""
    if dialect == SQLITE_KIND:
        return [
            f"CREATE TRIGGER umg_key_{name} AFTER {event} ON api_keys BEGIN {_RECORD.format(row=row)}; END"
            for name, (event, row) in _EVENTS.items()
        ]
    return [
        _FUNCTION,
        *(
            f"CREATE TRIGGER umg_key_{name} AFTER {event} ON api_keys FOR EACH ROW"
            " EXECUTE FUNCTION umg_record_key_change()"
            for name, (event, _) in _EVENTS.items()
        ),
    ]
