"""The description of the service for other programs: OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

_PROBLEM = {"$ref": "#/components/responses/Problem"}
_NAME = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The same key makes a request that is sent again the same one.",
    "schema": {"type": "string", "maxLength": 200},
}
_COUNTS = {
    "name": "counts",
    "in": "query",
    "description": "Given, the answer says how many trials are in each state.",
    "schema": {"type": "string"},
}
_PARAMS = {"description": "An object by name, or a list of numbers."}
_NUMBER = {"type": "integer", "minimum": 0}


def _object(needed: tuple[str, ...] = (), **fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(needed)}


def _query(name: str, text: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": text, "schema": {"type": "string"}}


_TRIAL = _object(
    ("number", "params"), number=_NUMBER, params=_PARAMS, context={"type": "object"}, count=_NUMBER
)
_ROW = _object(
    ("number", "params", "value", "state"),
    number=_NUMBER,
    params=_PARAMS,
    value={"type": ["number", "null"]},
    state={"enum": ["pending", "finished", "failed", "pruned", "expired", "prepared"]},
    std={"type": "number"},
    count={"type": "integer", "description": "Of how many values it is the mean, if several."},
    values={"type": "object"},
)
_SPACE = {
    "type": "object",
    "description": "As Space.to_json() writes it.",
    "examples": [
        {"parameters": [["lr", [0.0001, 0.1, "log"]], ["kind", {"choices": ["a", "b"]}]]},
        {"bounds": [[0, 1], [-5, 5]]},
    ],
}


def _get(summary: str, *query: dict[str, Any], answer: Any = None, many: bool = False) -> Any:
    parts = [*([] if many else [_NAME]), *query]
    return {"get": {"summary": summary, "parameters": parts, "responses": _responses(answer)}}


def _post(summary: str, body: Any, answer: Any, *more: dict[str, Any]) -> dict[str, Any]:
    return {
        "post": {
            "summary": summary,
            "parameters": list(more),
            "requestBody": {"content": {"application/json": {"schema": body}}},
            "responses": _responses(answer),
        }
    }


def _responses(answer: Any) -> dict[str, Any]:
    content = {"application/json": {"schema": answer or {"type": "object"}}}
    return {"200": {"description": "Done.", "content": content}, "default": _PROBLEM}


def description(version: str) -> dict[str, Any]:
    """The whole description."""
    one = "/studies/{id}"
    number = _object(("number",), number=_NUMBER)
    points = {"type": "array", "items": _PARAMS}
    paths = {
        "/studies": {
            **_get("All studies.", many=True),
            **_post(
                "Create a study, or find the one of this name with the same settings.",
                _object(
                    ("name", "space"),
                    name={"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"},
                    space=_SPACE,
                    direction={"enum": ["minimize", "maximize"]},
                    seed=_NUMBER,
                    n_evals=_NUMBER,
                    norm_bound={"type": "number"},
                    noise={"type": "object"},
                    kernel={"type": "object"},
                    outcomes={"type": "array"},
                    delta={"type": "number"},
                    policy={"type": "string"},
                    context={"type": "array", "items": {"type": "string"}},
                    constraints={"type": "array", "items": {"type": "string"}},
                    expire_after={"type": "number"},
                ),
                _object(("id",), id={"type": "string"}, created={"type": "boolean"}),
            ),
        },
        "/events": _get("Server-sent events: the list, whenever it changes.", many=True),
        one: _get("The settings of a study, and how many trials it has."),
        f"{one}/ask": _post(
            "Trials to evaluate.",
            _object(
                count={"type": "integer", "minimum": 1, "maximum": 1000},
                context={"type": "object"},
                fixed={"type": "object"},
                plan={
                    "type": "integer",
                    "minimum": 1,
                    "description": "The rows of a plan instead, of at most this number of values.",
                },
                params={**_PARAMS, "description": "Begin a trial at these parameters instead."},
            ),
            _object(("trials",), trials={"type": "array", "items": _TRIAL}),
            _NAME,
            _KEY,
            _COUNTS,
        ),
        f"{one}/tell": _post(
            "End a trial with a value. It is on disk when this is answered.",
            _object(
                ("number",),
                number=_NUMBER,
                value={
                    "type": ["number", "object"],
                    "description": "An object by name if there are constraints.",
                },
                std={"type": "number", "minimum": 0},
                count={"type": "integer", "minimum": 1, "description": "Of which it is the mean."},
                values={
                    "type": "array",
                    "items": {"type": "number"},
                    "description": "Several values of one trial, instead of `value`.",
                },
            ),
            number,
            _NAME,
            _KEY,
            _COUNTS,
        ),
        f"{one}/cancel": _post(
            "End a trial without a value.",
            _object(("number",), number=_NUMBER, failed={"type": "boolean"}),
            number,
            _NAME,
            _KEY,
            _COUNTS,
        ),
        f"{one}/add": _post(
            "Report values known from elsewhere: one, or lists of several.",
            _object(("params", "value"), params=_PARAMS, value={}, std={}, context={}, count={}),
            _object(("numbers",), numbers={"type": "array", "items": _NUMBER}),
            _NAME,
            _KEY,
            _COUNTS,
        ),
        f"{one}/tolerance": _post(
            "Choose the certificate that is small enough, for all pages; null for none.",
            _object(tolerance={"type": ["number", "null"], "exclusiveMinimum": 0}),
            _object(("tolerance",), tolerance={"type": ["number", "null"]}),
            _NAME,
        ),
        f"{one}/recommend": _get(
            "The best parameters by all values, with bounds and certificate.",
            _query("context", "JSON object, or worst for the certificate of the worst context"),
            _query("fixed", "JSON object"),
        ),
        f"{one}/predict": {
            **_get("The model at some points.", _query("params", "JSON list of points")),
            **_post("The same for many points.", _object(("params",), params=points), None, _NAME),
        },
        f"{one}/trials": _get(
            "A page of trials.",
            _query("limit", "at most 5000 (100)"),
            _query("after", "`next` of the page before"),
            _query("sort", "number, value or a parameter"),
            _query("order", "asc or desc"),
            _query("state", "pending, finished, failed or pruned"),
            _query("least", "the smallest value"),
            _query("most", "the largest value"),
            answer=_object(
                ("trials", "next"),
                trials={"type": "array", "items": _ROW},
                next={"type": ["integer", "null"]},
                total=_NUMBER,
            ),
        ),
        f"{one}/trials/{{number}}": _get(
            "All that is known of a trial.", {**_NAME, "name": "number"}
        ),
        f"{one}/trials.csv": _get("All trials as CSV."),
        f"{one}/trials.parquet": _get("All trials as Parquet."),
        f"{one}/events": _get("Server-sent events: what the page shows, whenever it changes."),
        f"{one}/map": _get(
            "The model over two parameters.",
            _query("x", "a parameter"),
            _query("y", "a parameter"),
            _query("at", "JSON point that it goes through"),
        ),
        f"{one}/slices": _get("The model along each parameter.", _query("at", "JSON point")),
        f"{one}/importance": _get("How much each parameter matters."),
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Partita", "version": version},
        "security": [{"token": []}, {}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {
                "Problem": {
                    "description": "An error, with the message that Python gives.",
                    "content": {
                        "application/problem+json": {
                            "schema": _object(
                                ("title", "status", "detail", "error"),
                                title={"type": "string"},
                                status={"type": "integer"},
                                detail={"type": "string"},
                                error={"type": "string"},
                            )
                        }
                    },
                }
            },
        },
    }
