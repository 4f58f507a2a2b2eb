"""HTTP sessions of S3 that send a request once.

aiohttp itself repeats a PUT after a broken connection, whatever the settings say. The first request
may still be on its way, and may recreate an object that was lost since (R19).
``connection.repeated`` repeats requests that may be repeated; callers do not use it for the rest.
"""

from typing import Any

from aiobotocore.httpsession import AIOHTTPSession

from bkspark.errors import InvalidRequestError

# A private attribute of aiohttp; the conformance tests count requests on the wire.
_SWITCH = "_retry_connection"


class OneAttemptSession(AIOHTTPSession):  # type: ignore[misc]
    """Sessions without repeated requests: a broken connection is reported."""

    async def _get_session(self, proxy_url: str | None) -> Any:
        session = await super()._get_session(proxy_url)
        if not hasattr(session, _SWITCH):
            raise InvalidRequestError(
                "this aiohttp cannot send a request only once",
                hint="pip install 'aiohttp>=3.14,<4'",
            )
        setattr(session, _SWITCH, False)
        return session
