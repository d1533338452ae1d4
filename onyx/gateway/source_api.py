"""What can be asked of a gateway about sources, as the command line has it, with the same codes."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import asdict

from starlette.responses import JSONResponse, Response

from onyx.client_values import SourceInfo
from onyx.gateway.call import Call
from onyx.gateway.operation import Operation
from onyx.gateway.refusals import Refused

_CHANGES = {
    "location": "[latitude, longitude]",
    "rate": "messages a second that it expects",
    "size": "bytes of a message",
    "validate": "off, report or reject: messages against its schema",
    "schema": "the text of its schema from now on, in one document; null: it has none",
    "schema_name": "of that document: .xsd, .rng or .dtd",
}


async def list_sources(call: Call) -> Response:
    return JSONResponse({"sources": [asdict(each) for each in await call.session.client.sources()]})


async def show_source(call: Call) -> Response:
    return _answer(await call.session.client.source(call.path["source"]))


async def update_source(call: Call) -> Response:
    said = call.said
    unknown = sorted(set(said) - set(_CHANGES))
    if unknown or not said:
        what = f"{unknown[0]!r}" if unknown else "nothing to change"
        raise Refused(400, "bad-argument", f"{what}: expected some of {', '.join(_CHANGES)}")
    validate = call.text("validate") if "validate" in said else None
    about: dict[str, object] = {
        "location": call.location(),
        "rate": call.number("rate"),
        "size": None if (size := call.number("size")) is None else int(size),
        "validate": validate,
    }
    about = {name: value for name, value in about.items() if value is not None}
    if "schema" in said:
        no_schema = said["schema"] is None
        about["schema_name"] = "" if no_schema else call.text("schema_name")
        about["schema"] = b"" if no_schema else call.text("schema").encode()
    elif "schema_name" in said:
        raise Refused(400, "bad-argument", "'schema': expected as well, with schema_name")
    return _answer(await call.session.client.change_source(call.path["source"], about))


async def put_schema(call: Call) -> Response:
    """It is read here in a process with limits, as only what the main document reaches goes on."""
    if call.request.headers.get("content-type", "").partition(";")[0] != "application/zip":
        why = "expected application/zip; a schema of one document goes by PATCH"
        raise Refused(415, "bad-media-type", f"Content-Type: {why}")
    main = call.request.query_params.get("main", "")
    question = {"schema_zip": await call.request.body(), "main": main}
    read = await call.gateway.trials.ask(question)
    about = {"schema_name": read["schema_name"], "schema": b64decode(read["schema"])}
    return _answer(await call.session.client.change_source(call.path["source"], about))


async def remove_source(call: Call) -> Response:
    await call.session.client.remove_source(call.path["source"])
    return Response(status_code=204)


def _answer(source: SourceInfo) -> Response:
    return JSONResponse(asdict(source))


_WHOSE = {404: "there is none", 409: "several have the name", 403: "it is another's"}
SOURCE_OPERATIONS = (
    Operation("GET", "/v1/sources", "List sources", list_sources, answers={200: "sources"}),
    Operation(
        "GET",
        "/v1/sources/{source}",
        "Show a source, by its id or its name",
        show_source,
        answers={200: "the source", 404: _WHOSE[404], 409: _WHOSE[409]},
    ),
    Operation(
        "PATCH",
        "/v1/sources/{source}",
        "Change what is said of a source; what is not named stays",
        update_source,
        body=_CHANGES,
        media_type="application/json",
        answers={
            200: "the source, with what has changed, and which profiles can match nothing any more",
            **_WHOSE,
            422: "refused: a schema with its place, a schema that what it is validated by takes",
        },
    ),
    Operation(
        "PUT",
        "/v1/sources/{source}/schema",
        "Give a source a schema of several documents, as a zip file of them",
        put_schema,
        query={"main": "the path of the main document, where others refer to none of several"},
        media_type="application/zip",
        answers={
            200: "the source, schema_unread with what the documents refer to and is not there",
            **_WHOSE,
            415: "no application/zip",
            422: "refused: no zip file, or a document that cannot be read, with its place",
        },
    ),
    Operation(
        "DELETE",
        "/v1/sources/{source}",
        "Remove a source; what was accepted is still delivered",
        remove_source,
        answers={204: "its root broker has let go of it", **_WHOSE},
    ),
)
