"""The part of SARIF 2.1.0 that our logs use, as a JSON schema written from the standard, and no property more.

The public schema is not in this repository; `python -m tests.report.public_schemas` validates against it where
somebody has it. Beyond the standard this shape asks for what code-scanning services want: a location in a file
for each result, a fingerprint, and a severity number for each rule.
"""

TEXT = {"type": "string", "minLength": 1}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
MESSAGE = {
    "type": "object",
    "properties": {"text": TEXT, "markdown": TEXT},
    "required": ["text"],
    "additionalProperties": False,
}


def exactly(required: dict, **optional) -> dict:
    """An object with these properties and no others."""
    return {
        "type": "object",
        "properties": required | optional,
        "required": list(required),
        "additionalProperties": False,
    }


RULE = exactly(
    {
        "id": {"type": "string", "pattern": "^KVF[0-9]{3}$"},
        "shortDescription": MESSAGE,
        "fullDescription": MESSAGE,
        "help": MESSAGE,
        "defaultConfiguration": exactly({"level": LEVEL}),
        "properties": exactly(
            {
                "security-severity": {"type": "string", "pattern": r"^(?:10|[0-9])\.[0-9]$"},
                "tags": {"type": "array", "items": TEXT, "contains": {"const": "security"}, "maxItems": 20},
            }
        ),
    },
    name={"type": "string", "pattern": "^[A-Za-z0-9]+$"},
    helpUri={"type": "string", "pattern": "^https://"},
)
PHYSICAL = exactly(
    {
        "artifactLocation": exactly({"uri": {"type": "string", "format": "uri-reference"}}, uriBaseId=TEXT),
        "region": exactly({"startLine": {"type": "integer", "minimum": 1}}),
    }
)
RESULT = exactly(
    {
        "ruleId": TEXT,
        "level": LEVEL,
        "message": MESSAGE,
        "locations": {
            "type": "array",
            "minItems": 1,
            "items": exactly(
                {
                    "physicalLocation": PHYSICAL,
                    "logicalLocations": {
                        "type": "array",
                        "items": exactly({"fullyQualifiedName": TEXT, "kind": TEXT}),
                    },
                }
            ),
        },
        "partialFingerprints": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
        },
        "properties": {"type": "object"},
    },
    ruleIndex={"type": "integer", "minimum": 0},
    suppressions={
        "type": "array",
        "items": exactly(
            {"kind": {"enum": ["inSource", "external"]}},
            status={"enum": ["accepted", "underReview", "rejected"]},
            justification=TEXT,
        ),
    },
)
INVOCATION = exactly(
    {"executionSuccessful": {"type": "boolean"}},
    startTimeUtc={"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$"},
    exitCode={"type": "integer"},
    exitCodeDescription=TEXT,
    toolExecutionNotifications={"type": "array", "items": exactly({"message": MESSAGE}, level=LEVEL)},
)
RUN = exactly(
    {
        "tool": exactly(
            {
                "driver": exactly(
                    {"name": TEXT, "rules": {"type": "array", "items": RULE, "uniqueItems": True}},
                    version=TEXT,
                    semanticVersion=TEXT,
                )
            }
        ),
        "results": {"type": "array", "items": RESULT},
    },
    automationDetails=exactly({"id": TEXT}),
    invocations={"type": "array", "items": INVOCATION},
    properties={"type": "object"},
)
LOG = exactly(
    {"version": {"const": "2.1.0"}, "runs": {"type": "array", "items": RUN}},
    **{"$schema": {"type": "string", "pattern": "sarif-schema-2\\.1\\.0\\.json$"}},
)
