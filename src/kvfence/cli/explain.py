"""`kvfence explain`: what a code of a finding means, how it comes about, and what to do."""

import json
from typing import Annotated

import typer

from kvfence.cli.consoles import output_console
from kvfence.report.explain import code_as_data, codes_as_data, explanation, listing

Name = Annotated[
    str | None, typer.Argument(metavar="[CODE]", help="Such as KVF101; without one, all are listed.")
]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]


def explain_command(code: Name = None, *, as_json: AsJson = False) -> int:
    """Explain a code of a finding, or list them all."""
    if as_json:
        data = codes_as_data() if code is None else code_as_data(code)
        typer.echo(json.dumps(data, indent=2, ensure_ascii=False))
    elif code is None:
        output_console().print(listing())
    else:
        output_console().print(explanation(code), soft_wrap=True)
    return 0
