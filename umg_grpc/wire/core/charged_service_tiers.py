"""Service tiers by which providers charge a call, as stated in their usage."""

STANDARD_NAMES = frozenset({"", "auto", "default", "standard", "standard_only", "on_demand", "unspecified"})


def charged_tier(stated: str | None) -> str:
    """Return the service tier by which a call is charged; "" for the standard tier."""
    name = stated.lower() if stated else ""
    return "" if name in STANDARD_NAMES else name
