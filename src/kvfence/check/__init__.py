"""The outside check: does this server give one request's content to another?

It exports nothing: the pytest plugin stands in everybody's pytest, and importing it must load no HTTP client.
The command line and the plugin begin at `checking`, `profiles`, `scenarios`, `target` and `watch`.
"""
