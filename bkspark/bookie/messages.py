"""How messages name the bookie that they are about: once.

A message that comes from a bookie mostly begins with its name. Whatever puts the name in front of
such a message asks here, so no line says it twice.
"""


def told_of(bookie_id: str, message: object) -> str:
    """``message``, beginning with the bookie unless it does so already."""
    text, name = str(message), f"bookie {bookie_id}"
    return text if _rest(name, text) is not None else f"{name}: {text}"


def on_bookie(bookie_id: str, message: object) -> str:
    """``message`` behind the place that it is about, for a line about something else."""
    return f"on {bookie_id}: {about(f'bookie {bookie_id}', message)}"


def about(subject: str, message: object) -> str:
    """``message`` for a line that has ``subject`` in front of it: without the subject."""
    text = str(message)
    rest = _rest(subject, text)
    return text if rest is None else rest.removeprefix(":").lstrip()


def _rest(subject: str, text: str) -> str | None:
    """What ``text`` says behind ``subject``; None if it does not begin with it."""
    rest = text.removeprefix(subject)
    is_longer_name = rest[:1].isalnum() or rest[:1] in ("-", "_", ".")
    return None if not subject or rest == text or is_longer_name else rest
