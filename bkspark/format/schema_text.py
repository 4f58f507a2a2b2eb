"""Parses a schema in Spark's notation into the stored Arrow schema; needs no Spark.

The notation is DDL (``id long, name string``) or Spark's JSON of a schema (``df.schema.json()``).
The columns are the same as for a DataFrame of the schema: each states its Spark type, and may be
null.
"""

import json
import re
from typing import Any, NoReturn

import pyarrow as pa

from bkspark.errors import InvalidRequestError
from bkspark.format.digest import require_whole_characters
from bkspark.format.spark_types import LENGTHS_KEY, SPARK_TYPE_KEY, nullable

_ARROW: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}
_SYNONYMS = {
    "bool": "boolean",
    "tinyint": "byte",
    "smallint": "short",
    "int": "integer",
    "bigint": "long",
    "real": "float",
    "timestamp_ltz": "timestamp",
}
_DECIMALS = ("decimal", "dec", "numeric")
_TEXTS = ("char", "character", "varchar")
_DECIMAL = re.compile(r"decimal\((\d{1,2}),\s*(\d{1,2})\)")
_DIGITS_MAX = 38
_FORMS = (
    (re.compile(r"(?:var)?char\(\d{1,9}\)"), pa.string()),
    (re.compile(r"time\([0-6]\)"), pa.time64("ns")),
    (re.compile(r"interval (?:day|hour|minute|second)(?: to \w+)?"), pa.duration("us")),
)
_INTERVAL = ("year", "month", "day", "hour", "minute", "second", "to")
_DEPTH_MAX = 60
"""Arrow refuses to read more levels than 64."""

_TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>`(?:[^`]|``)+`)
        |(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
        |(?P<word>\w+)
        |(?P<sign>\S))""",
    re.VERBOSE | re.DOTALL,
)
_HINT = (
    "write it as Spark does, such as 'id long, name string, tags array<string>', or give the JSON "
    "of a Spark schema"
)


def parse(text: str) -> pa.Schema:
    """Parse the columns of ``text``.

    Raises:
        InvalidRequestError: the text is no schema, or has a type that only a DataFrame can give.
    """
    require_whole_characters("the schema", text)
    value = _of_json(text) if text.lstrip().startswith("{") else _Ddl(text).schema()
    try:
        return pa.schema([_column(field) for field in value["fields"]])
    except (KeyError, TypeError, AttributeError):
        raise InvalidRequestError(
            "the JSON is not that of a Spark schema", hint="df.schema.json() gives it"
        ) from None


def _of_json(text: str) -> Any:
    try:
        value = json.loads(text)
        spelled_out = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        raise InvalidRequestError(f"the schema is no JSON: {error}", hint=_HINT) from None
    require_whole_characters("the schema", spelled_out)
    return value


def _column(field: dict[str, Any]) -> pa.Field:
    name, kind = str(field["name"]), field["type"]
    arrow = _arrow_type(kind, name, 0)
    notes = field.get("metadata") or {}
    said = {"metadata": notes, "name": name, "nullable": True, "type": nullable(kind)}
    metadata = {SPARK_TYPE_KEY: json.dumps(said, sort_keys=True).encode()}
    return pa.field(name, arrow, metadata=metadata)


def _arrow_type(kind: Any, column: str, depth: int) -> pa.DataType:
    if depth > _DEPTH_MAX:
        raise _too_deep(f"column {column!r}")
    if isinstance(kind, str):
        return _atom(kind, column)

    def inner(key: str) -> pa.DataType:
        return _arrow_type(kind[key], column, depth + 1)

    match kind["type"]:
        case "array":
            return pa.list_(pa.field("element", inner("elementType")))
        case "map":
            return pa.map_(inner("keyType"), inner("valueType"))
        case "struct":
            parts = [(str(f["name"]), f["type"]) for f in kind["fields"]]
            return pa.struct([(n, _arrow_type(k, column, depth + 1)) for n, k in parts])
        case other:
            raise _no_type(column, str(other))


def _atom(kind: str, column: str) -> pa.DataType:
    found = _DECIMAL.fullmatch(kind)
    if found is not None:
        digits, scale = int(found[1]), int(found[2])
        if not 1 <= digits <= _DIGITS_MAX or scale > digits:
            raise InvalidRequestError(
                f"column {column!r} cannot be {kind}",
                hint=f"give 1 to {_DIGITS_MAX} digits, and no more of them after the point",
            )
        return pa.decimal128(digits, scale)
    for form, arrow in _FORMS:
        if form.fullmatch(kind):
            return arrow
    if kind not in _ARROW:
        raise _no_type(column, kind)
    return _ARROW[kind]


def _no_type(column: str, kind: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"column {column!r}: type {kind} is not supported in a schema text",
        hint="leave the schema out: the log takes the schema of its first append",
    )


def _too_deep(what: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"{what} is nested more than {_DEPTH_MAX} levels deep",
        hint="nest it less deeply, or store it as JSON text",
    )


class _Ddl:
    """Parses DDL once, from beginning to end, into Spark's JSON of a schema."""

    def __init__(self, text: str) -> None:
        self._tokens = [*_tokens(text), ("", "")]

    def schema(self) -> dict[str, Any]:
        """Parse the whole text."""
        fields = self._fields(0)
        if self._tokens[0][0]:
            self._refuse("a comma or the end")
        return {"type": "struct", "fields": fields}

    def _fields(self, depth: int) -> list[dict[str, Any]]:
        fields = [self._field(depth)]
        while self._take_token(","):
            fields.append(self._field(depth))
        return fields

    def _field(self, depth: int) -> dict[str, Any]:
        name = self._name()
        self._take_token(":")
        kind, said = self._type(depth)
        metadata = {LENGTHS_KEY: said} if said else {}
        if self._take_token("not") and not self._take_token("null"):
            self._refuse("NULL")
        if self._take_token("comment"):
            if self._tokens[0][0] != "text":
                self._refuse("a text in quotes")
            quoted = self._tokens.pop(0)[1]
            metadata["comment"] = re.sub(r"\\(.)", r"\1", quoted[1:-1], flags=re.DOTALL)
        return {"name": name, "type": kind, "nullable": True, "metadata": metadata}

    def _name(self) -> str:
        kind, token = self._tokens[0]
        if kind not in ("word", "quoted"):
            self._refuse("a name")
        self._tokens.pop(0)
        return token[1:-1].replace("``", "`") if kind == "quoted" else token

    def _type(self, depth: int) -> tuple[Any, str]:
        """Parse a type; return its JSON, and the text of its length if a text type has one."""
        if depth > _DEPTH_MAX:
            raise _too_deep("the schema")
        if self._tokens[0][0] != "word":
            self._refuse("a type")
        word = self._tokens.pop(0)[1].lower()
        if word in ("array", "map", "struct"):
            return self._nested(word, depth + 1), ""
        if word in _DECIMALS:
            digits, scale = (*self._numbers(2), 0)[:2] if self._tokens[0][1] == "(" else (10, 0)
            return f"decimal({digits},{scale})", ""
        if word in _TEXTS:
            [length] = self._numbers(1)
            return "string", f"{'char' if word == 'character' else word}({length})"
        if word == "time":
            return f"time({self._numbers(1)[0] if self._tokens[0][1] == '(' else 6})", ""
        while word.startswith("interval") and self._tokens[0][1].lower() in _INTERVAL:
            word += f" {self._tokens.pop(0)[1].lower()}"
        return _SYNONYMS.get(word, word), ""

    def _nested(self, word: str, depth: int) -> dict[str, Any]:
        self._require("<")
        if word == "struct":
            value: dict[str, Any] = {"type": word, "fields": self._fields(depth)}
        elif word == "array":
            value = {"type": word, "elementType": self._inner(depth), "containsNull": True}
        else:
            value = {"type": word, "keyType": self._inner(depth), "valueContainsNull": True}
            self._require(",")
            value["valueType"] = self._inner(depth)
        self._require(">")
        return value

    def _inner(self, depth: int) -> Any:
        kind, said = self._type(depth)
        if said:
            raise InvalidRequestError(
                f"{said} cannot be inside an array or a map", hint="write string there"
            )
        return kind

    def _numbers(self, count_max: int) -> list[int]:
        """Parse whole numbers in brackets."""
        self._require("(")
        found = [self._number()]
        while len(found) < count_max and self._take_token(","):
            found.append(self._number())
        self._require(")")
        return found

    def _number(self) -> int:
        if re.fullmatch(r"[0-9]{1,9}", self._tokens[0][1]) is None:
            self._refuse("a number")
        return int(self._tokens.pop(0)[1])

    def _take_token(self, wanted: str) -> bool:
        """Consume ``wanted`` if it comes next; return whether it did."""
        kind, token = self._tokens[0]
        is_next = kind in ("word", "sign") and token.lower() == wanted
        if is_next:
            self._tokens.pop(0)
        return is_next

    def _require(self, wanted: str) -> None:
        if not self._take_token(wanted):
            self._refuse(repr(wanted))

    def _refuse(self, wanted: str) -> NoReturn:
        found = repr(self._tokens[0][1]) if self._tokens[0][0] else "the end"
        raise InvalidRequestError(f"the schema has {found} where {wanted} is expected", hint=_HINT)


def _tokens(text: str) -> list[tuple[str, str]]:
    """Return kind and text of each token. Unknown characters become signs, which no rule takes."""
    found = [(str(match.lastgroup), match[str(match.lastgroup)]) for match in _TOKEN.finditer(text)]
    return [(kind, token) for kind, token in found if token]
