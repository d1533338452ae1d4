"""A small market whose relations have all kinds of types, for tests of queries."""

from __future__ import annotations

from registration.queries.providers import CLIENT, Column, Function, Market, Relation

COLUMNS = {
    "A.R": {"id": "int", "price": "double", "name": "string", "k": "int"},
    "A.S": {"id": "int", "name": "string", "qty": "decimal(10,2)", "k": "int"},
    "B.T": {
        "id": "int",
        "pictures": "array<struct<name:string,image:binary>>",
        "info": "struct<a:int,b:struct<c:string>>",
        "m": "map<string,int>",
        "tags": "array<string>",
    },
    "B.U": {"id": "int", "x": "int", "d": "date", "at": "timestamp", "big": "bigint", "f": "float"},
}


def relation(name: str, columns: dict[str, str], format_: str = "parquet") -> Relation:
    known = tuple(Column(each, type_) for each, type_ in columns.items())
    return Relation(f"urn:{name}", name, "urn:p", (CLIENT,), format_, f"/data/{name}", known)


def market(*more: Relation) -> Market:
    relations = [relation(name, columns) for name, columns in COLUMNS.items()]
    relations += [relation("archive.wire", {}, "archive"), *more]
    functions = [
        Function("urn:t", "thumbnail", "urn:f", "scalar", (("i", "binary"),), (("", "binary"),)),
        Function("urn:s", "score", "urn:f", "scalar", (("a", "double"), ("b", "string")),
                 (("", "double"),)),
        Function("urn:w", "wrap_s", "urn:f", "table", (("path", "string"),), (("id", "int"),)),
    ]  # fmt: skip
    return Market(
        {}, {}, {}, {each.uri: each for each in relations}, {each.uri: each for each in functions}
    )
