"""Triggers of the database that record each change of an API key, so that processes read only changed keys. They record
changes by every program, also by earlier versions and by an operator. A change of an account is one of all keys below
it. A new time of last use is no change.
"""

from collections.abc import Sequence

from umg_grpc.store.database_constants import SQLITE_KIND

CHANGE_LOCK = 0x554D475F4B455953  # number of a PostgreSQL advisory lock, chosen freely
FIRST_WATCHED_COLUMNS = (
    *("secret_hash", "prefix", "name", "model_patterns", "requests_per_minute", "expire_time", "revoke_time"),
    *("channels", "show_route", "operations", "administrator", "owner", "tags", "previous_secret_hash"),
    *("previous_prefix", "previous_expire_time", "tokens_per_minute", "concurrent_requests"),
    *("budget_micro_credits", "budget_period"),
)
"""Columns of `api_keys` whose changes the first version of the triggers recorded."""
WATCHED_COLUMNS = (*FIRST_WATCHED_COLUMNS, "project_id", "user_id", "budgets")
"""Columns of `api_keys` whose changes are recorded: all but the id, the time of creation and that of the last use."""
KEY_TRIGGERS = ("umg_key_insert", "umg_key_update", "umg_key_delete")
_LAST = "(SELECT coalesce(max(change_number), 0) FROM api_key_changes)"
_REPLACE = "ON CONFLICT (key_id) DO UPDATE SET change_number = excluded.change_number"
_INSERT = "INSERT INTO api_key_changes (key_id, change_number)"
_RECORD = f"{_INSERT} VALUES ({{row}}.key_id, {_LAST} + 1) {_REPLACE}"
_NUMBERED = f"{_LAST} + row_number() OVER (ORDER BY key_id)"
_RECORD_BELOW = f"{_INSERT} SELECT key_id, {_NUMBERED} FROM api_keys WHERE {{condition}} {_REPLACE}"  # noqa: S608  our own names
BELOW_ACCOUNT = (
    "project_id = {row}.account_id OR project_id IN"
    " (SELECT account_id FROM accounts WHERE organization_id = {row}.account_id)"
)
"""Condition of the keys below an account, the row of a trigger of the table of accounts."""
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


def trigger_statements(dialect: str, columns: Sequence[str] = WATCHED_COLUMNS) -> list[str]:
    """Return the statements that create the triggers of the table of keys. `dialect`: SQLAlchemy's name of the kind of
    database; `columns`: those whose changes are recorded.
    """
    events = {
        "insert": ("INSERT", "NEW"),
        "update": (f"UPDATE OF {', '.join(columns)}", "NEW"),
        "delete": ("DELETE", "OLD"),
    }
    if dialect == SQLITE_KIND:
        return [
            f"CREATE TRIGGER umg_key_{name} AFTER {event} ON api_keys BEGIN {_RECORD.format(row=row)}; END"
            for name, (event, row) in events.items()
        ]
    return [
        _FUNCTION,
        *(
            f"CREATE TRIGGER umg_key_{name} AFTER {event} ON api_keys FOR EACH ROW"
            " EXECUTE FUNCTION umg_record_key_change()"
            for name, (event, _) in events.items()
        ),
    ]


def parent_trigger_statements(dialect: str, table: str, condition: str) -> list[str]:
    """Return the statements that create the trigger of a table whose rows hold for keys: each update of a row is a
    change of the keys that `condition` selects, in which `{row}` stands for the new row.
    """
    name, record = f"umg_{table}_update", _RECORD_BELOW.format(condition=condition.format(row="NEW"))
    if dialect == SQLITE_KIND:
        return [f"CREATE TRIGGER {name} AFTER UPDATE ON {table} BEGIN {record}; END"]
    function = (
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" PERFORM pg_advisory_xact_lock({CHANGE_LOCK}); {record}; RETURN NULL; END $$"
    )
    return [function, f"CREATE TRIGGER {name} AFTER UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()"]


def drop_statements(dialect: str) -> list[str]:
    """Return the statements that remove the triggers of the table of keys."""
    return [f"DROP TRIGGER {name}" + ("" if dialect == SQLITE_KIND else " ON api_keys") for name in KEY_TRIGGERS]
