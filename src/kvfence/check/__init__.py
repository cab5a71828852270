"""The outside check: does this server give one request's content to another?"""
