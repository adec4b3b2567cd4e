"""Marks around instructions in the middle of a conversation that are sent as a turn of the user, since the model takes
none in that place.
"""

BEGINNING, END = "<system-message>", "</system-message>"


def marked(text: str) -> str:
    """Return a text between marks that distinguish it from the user's own words."""
    return f"{BEGINNING}\n{text}\n{END}"
