"""Validate the snapshots against the public schemas, which are not in this repository.

    python -m tests.report.public_schemas --sarif sarif-schema-2.1.0.json --junit junit-10.xsd

The first is the OASIS schema of SARIF 2.1.0, the second the XSD of Jenkins' xUnit plugin (needs xmllint).
Ends with 1 when a snapshot does not pass.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jsonschema

from tests.report.snapshots import FOLDER


def sarif_faults(schema: dict, folder: Path = FOLDER) -> Iterator[str]:
    """What the schema says against our logs."""
    validator = jsonschema.validators.validator_for(schema)(schema, format_checker=jsonschema.FormatChecker())
    for file in sorted(folder.glob("*.sarif")):
        for error in validator.iter_errors(json.loads(file.read_text())):
            yield f"{file.name}: {error.json_path}: {error.message}"


def junit_faults(xsd: Path, folder: Path = FOLDER) -> Iterator[str]:
    """What xmllint says against our XML."""
    for file in sorted(folder.glob("*.xml")):
        done = subprocess.run(
            ["xmllint", "--noout", "--schema", xsd, file], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            yield done.stderr


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sarif", type=Path)
    parser.add_argument("--junit", type=Path)
    flags = parser.parse_args()
    found = list(sarif_faults(json.loads(flags.sarif.read_text()))) if flags.sarif else []
    found += list(junit_faults(flags.junit)) if flags.junit else []
    print("\n".join(found) or "all snapshots pass")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
