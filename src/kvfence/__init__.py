"""kvfence: LLM serving in which a KV page cannot be read by a request it was not written for."""

__version__ = "0.1.0"
