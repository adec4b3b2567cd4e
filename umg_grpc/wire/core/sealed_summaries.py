"""Form of sealed summaries in requests and responses, and the text by which a model reads an opened one."""

SEALED_PREFIX = "umg.compaction."
"""Beginning of a summary that this gateway sealed, which distinguishes it from one that a provider sealed."""

_HEADING = (
    "The earlier conversation was compacted. This is its summary, written as a hand-off by the assistant; "
    "continue the work from here."
)


def summary_text(summary: str) -> str:
    """Return an opened summary as the text of a user, which stands for the earlier conversation."""
    return f"{_HEADING}\n\n{summary}"
