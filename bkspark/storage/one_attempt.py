"""HTTP sessions of S3 that send a request once.

aiohttp sends a PUT again by itself when its connection broke, whatever the settings say. The first
one may be on its way still, and make an object anew where it was lost since (R19). What shall be
repeated is repeated by ``connection.repeated``, which is not asked for what must not be.
"""

from typing import Any

from aiobotocore.httpsession import AIOHTTPSession

from bkspark.errors import InvalidRequestError

# Of aiohttp's own making; the conformance tests count requests on the wire.
_SWITCH = "_retry_connection"


class OneAttemptSession(AIOHTTPSession):  # type: ignore[misc]
    """Sessions that tell of a broken connection and leave it at that."""

    async def _get_session(self, proxy_url: str | None) -> Any:
        session = await super()._get_session(proxy_url)
        if not hasattr(session, _SWITCH):
            raise InvalidRequestError(
                "this aiohttp does not let a request be sent only once",
                hint="pip install 'aiohttp>=3.14,<4'",
            )
        setattr(session, _SWITCH, False)
        return session
