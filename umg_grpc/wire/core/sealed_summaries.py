"""Form of sealed summaries in requests and responses, and the text in which a model gets an opened summary."""

SEALED_PREFIX = "umg.compaction."
"""Beginning of a summary that this gateway sealed. Summaries that a provider sealed do not have it."""

_HEADING = (
    "The earlier conversation was compacted. This is its summary, written as a hand-off by the assistant; "
    "continue the work from here."
)


def summary_text(summary: str) -> str:
    """Return an opened summary as user text in place of the earlier conversation."""
    return f"{_HEADING}\n\n{summary}"
