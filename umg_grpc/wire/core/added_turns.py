"""Texts that the gateway adds to a conversation for models with rules about its turns."""

CONTINUE_TEXT = "Continue."
"""Text of the user's turn behind an assistant's message that the model does not continue."""
ACKNOWLEDGED_TEXT = "OK."
"""Text of the assistant's turn between tool results and the user's words."""
FILLER_TEXT = "."
"""Text of a block that is added because providers require one; they refuse blank text."""
NO_RESULT = "(no result)"
"""Content of a tool result that is added, or has none."""
BEGIN_MARK, END_MARK = "<system-message>", "</system-message>"


def marked(text: str) -> str:
    """Return instructions in the middle of a conversation as text of the user, for a model that takes no instructions
    there: between marks that distinguish them from the user's own words.
    """
    return f"{BEGIN_MARK}\n{text}\n{END_MARK}"
