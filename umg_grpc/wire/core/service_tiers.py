"""Classes of service by which providers charge a call, as their usage states them."""

STANDARD_NAMES = frozenset({"", "auto", "default", "standard", "standard_only", "on_demand", "unspecified"})
"""Names of the class of service with the usual prices."""


def charged_tier(stated: str | None) -> str:
    """Return the class of service by which a call is charged, "" for the standard one."""
    name = stated.lower() if stated else ""
    return "" if name in STANDARD_NAMES else name
