"""The command line. Importing it imports neither torch nor numpy nor a web framework."""

from kvfence.cli.app import main

__all__ = ["main"]
