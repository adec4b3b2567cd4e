"""Facts about cloud credentials: token scopes by host, errors that reject an expired credential, and environment
variables that show credentials. The rows are in `data`: `token_scopes`, `credential_rejections` and `cloud_variables`.
Pure.
"""

from collections.abc import Callable

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows


class ScopeRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table of scopes: hosts and the token scope that they accept."""

    hosts: str
    scope: str
    """Scope of the tokens that the hosts accept."""
    source: str
    as_of: str


class RejectionRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table of rejections: HTTP status and error code of a provider that rejects a credential."""

    status: int
    code: str = ""
    """Error code; "" if the status is sufficient."""
    source: str
    as_of: str


class VariableRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table of variables: if all of them are set, the environment has credentials of the cloud."""

    cloud: str
    variables: str
    """Names of the variables, separated by colons."""
    source: str
    as_of: str


SCOPE_ROWS = tuple(read_rows("token_scopes", ScopeRow))
REJECTION_ROWS = tuple(read_rows("credential_rejections", RejectionRow))
VARIABLE_ROWS = tuple(read_rows("cloud_variables", VariableRow))


def token_scope(host: str) -> str | None:
    """Return the scope of the tokens that a host accepts; None for an unknown host."""
    return next((row.scope for row in SCOPE_ROWS if host.endswith(row.hosts)), None)


def rejects_credential(status: int, codes: str) -> bool:
    """Return whether an error means an expired or unknown credential. `codes`: text that contains the error codes."""
    return any(row.status == status and row.code in codes for row in REJECTION_ROWS)


def shown_by(cloud: str, variable: Callable[[str], str | None]) -> str | None:
    """Return the first row of variables, joined by colons, that are all set for a cloud; None if no row is set."""
    rows = (row.variables for row in VARIABLE_ROWS if row.cloud == cloud)
    return next((names for names in rows if all(variable(name) for name in names.split(":"))), None)
