"""Transactions <-> two fields of a record: JSON objects have no order, and transactions have."""

from collections.abc import Mapping
from typing import Any

from bkspark.format.strict_json import Fields, integers
from bkspark.protocol.log.transactions import in_order, order_of


def fields_of(transactions: Mapping[str, int]) -> dict[str, Any]:
    """What a record says of them; their order only where that of their names does not."""
    order = order_of(transactions)
    found: dict[str, Any] = {"transactions": dict(transactions)}
    return {**found, "transactions_order": order} if order else found


def decode(fields: Fields) -> dict[str, int]:
    """The transactions of a record.

    Raises:
        CorruptDataError, ValueError: malformed.
    """
    order = fields.take_or_none("transactions_order", list) or []
    return in_order(fields.mapping("transactions", int), integers(order))
