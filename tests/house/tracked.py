"""What no file of the repository says: hosts of package registries, and paths of somebody's machine.

The words are put together here, so that this file does not say them either.
"""

import re
from collections.abc import Iterator

REGISTRY_HOSTS = (
    "py" + "pi.org",
    "python" + "hosted.org",
    "download." + "py" + "torch.org",
    "registry." + "npm" + "js.org",
    "static." + "crates.io",
    "proxy." + "golang.org",
)
_HOSTS = re.compile("|".join(map(re.escape, REGISTRY_HOSTS)), re.IGNORECASE)
_MACHINE_PATHS = re.compile(r"(?<![\w.$~{/-])/(?:root|work|home/\w+|Users/\w+|tmp/kvf)(?:/|\b)")
_INSTALL_INDEX = re.compile(r"--(?:extra-)?index" + r"-url")
BINARY_SUFFIXES = {".png", ".gguf", ".safetensors", ".ico"}


def unwanted_words(name: str, text: str) -> Iterator[str]:
    """Finds, with their lines."""
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern, what in (
            (_HOSTS, "a registry's host"),
            (_MACHINE_PATHS, "a path of one machine"),
            (_INSTALL_INDEX, "a choice of registry"),
        ):
            found = pattern.search(line)
            if found:
                yield f"{name}:{number}: {found.group(0)!r} is {what}: leave it to whoever installs"
