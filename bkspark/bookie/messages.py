"""Names a bookie exactly once in a message.

A bookie's messages mostly begin with its name. Code that adds the name to such a message uses these
functions, so no line names the bookie twice.
"""


def told_of(bookie_id: str, message: object) -> str:
    """``message`` with the bookie's name at its beginning, once."""
    text, name = str(message), f"bookie {bookie_id}"
    return text if _rest(name, text) is not None else f"{name}: {text}"


def on_bookie(bookie_id: str, message: object) -> str:
    """``message`` after "on" and the bookie's id, for a line about a different subject."""
    return f"on {bookie_id}: {about(f'bookie {bookie_id}', message)}"


def about(subject: str, message: object) -> str:
    """``message`` without ``subject``, for a line that begins with ``subject``."""
    text = str(message)
    rest = _rest(subject, text)
    return text if rest is None else rest.removeprefix(":").lstrip()


def _rest(subject: str, text: str) -> str | None:
    """The part of ``text`` after ``subject``; None if ``text`` does not begin with ``subject``."""
    rest = text.removeprefix(subject)
    is_longer_name = rest[:1].isalnum() or rest[:1] in ("-", "_", ".")
    return None if not subject or rest == text or is_longer_name else rest
