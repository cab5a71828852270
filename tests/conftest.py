"""For every test: random tests draw the same examples each time, and a busy machine fails none of them."""

from hypothesis import settings

settings.register_profile("house", derandomize=True, deadline=None)
settings.load_profile("house")
