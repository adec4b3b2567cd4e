"""Table of the console's pages and of their states: empty, refused, confirmed, with an error. Some have pictures in the
documents.
"""

from dataclasses import dataclass

from tests.world.console.console_site import FAILED_REQUEST


@dataclass(frozen=True)
class State:
    """Page or state of one, with the way to it."""

    id: str
    path: str
    steps: tuple[tuple[str, ...], ...] = ()
    picture: str = ""
    """Name of its pictures in light and in dark colours."""
    phone_picture: bool = False


STATES = (
    State("overview", "", picture="console-overview", phone_picture=True),
    State("search without a hit", "/search?text=nothing-at-all"),
    State("failed requests", "/requests?failed=1", picture="console-requests"),
    State("request", f"/requests/{FAILED_REQUEST}", picture="console-request", phone_picture=True),
    State("usage", "/usage?since=24h", picture="console-usage"),
    State("alerts", "/alerts"),
    State("keys", "/keys"),
    State("no keys", "/keys?text=nothing-at-all"),
    State("refused form", "/keys/new", (("fill", "name", "x"), ("fill", "budget, credits", "much"), ("go", "Create key"))),
    State("shown secret", "/keys/new", (("fill", "name", "shown"), ("go", "Create key")), "console-new-key"),
    State("key", "/keys/app", (("press", "Revoke"), ("press", "Edit")), "console-key"),
    State("projects", "/projects", picture="console-projects"),
    State("new project", "/projects/new"),
    State("project", "/projects/search", (("press", "Edit"),)),
    State("own page", "/me"),
    State("people", "/people"),
    State("new person", "/people/new"),
    State("person", "/people", (("go", "the billing"),)),
    State("channels", "/channels", picture="console-channels"),
    State("channel", "/channels/azure-eu"),
    State("check of a channel", "/channels", (("go", "Check azure-eu"),)),
    State("confirmation", "/channels", (("go", "Disable gemini"),)),
    State("models", "/models", (("press", "Set price"),)),
    State("model", "/models/gpt-5"),
    State("tasks", "/tasks?undelivered=1"),
    State("no tasks", "/tasks?model=nothing"),
    State("task", "/tasks", (("go", "task_…"),)),
    State("audit", "/audit"),
    State("config", "/config"),
    State("unknown page", "/nothing"),
)  # fmt: skip
OWN_PAGE = State("page of a holder", "/me", picture="console-me")
"""State that is shown to the holder of a key without a role."""
FORBIDDEN = State("forbidden page", "/audit")
"""State that is shown to a person with the role billing."""
