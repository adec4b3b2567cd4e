"""Texts that the gateway adds to a conversation for models with rules about its turns."""

CONTINUE_TEXT = "Continue."
"""Text of a user turn that is added after an assistant's message, for a model that cannot continue that message."""
ACKNOWLEDGED_TEXT = "OK."
"""Text of an assistant turn that is added between tool results and the user's words."""
FILLER_TEXT = "."
"""Text of a block that is added because providers require one and reject blank text."""
NO_RESULT = "(no result)"
"""Content of a tool result that is added, or that is empty."""
BEGIN_MARK, END_MARK = "<system-message>", "</system-message>"


def marked(text: str) -> str:
    """Return instructions in the middle of a conversation as user text, for a model that accepts no instructions there.
    Marks around the text distinguish it from the user's own words.
    """
    return f"{BEGIN_MARK}\n{text}\n{END_MARK}"
