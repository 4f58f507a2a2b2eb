"""How messages name the bookie that they are about: once."""


def told_of(bookie_id: str, message: object) -> str:
    """``message``, beginning with the bookie unless it does so already."""
    text, name = str(message), f"bookie {bookie_id}"
    rest = text.removeprefix(name)
    names_it = rest != text and not rest[:1].isalnum() and rest[:1] not in ("-", "_", ".")
    return text if names_it else f"{name}: {text}"
