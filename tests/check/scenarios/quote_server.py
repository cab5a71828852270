"""Scripts for the scripted bench: servers that quote what stands in a prompt, and ways to get it wrong."""

from tests.check.scripted_bench import ScriptedBench, answered, play


def last_line(sent):
    """What a copying model says: the last line of the prompt again."""
    lines = [line for line in sent.text.splitlines() if line.strip()]
    return lines[-1].removeprefix("Repeat exactly: ") if lines else ""


def copying(sent):
    """A healthy server with a model that copies."""
    return answered(last_line(sent), prompt_tokens=sent.tokens)


def deaf(sent):
    """A healthy server with a model that says nothing of what it is asked for."""
    return answered("I am sorry, I can not do that.", prompt_tokens=sent.tokens)


class Leaking:
    """Every `every`-th answer is the last line of the request before it, of another tenant if there was one."""

    def __init__(self, every=5, *, only=lambda sent: True):
        self.every, self.only = every, only
        self.count = 0
        self.before = None

    def __call__(self, sent):
        self.count += self.only(sent)
        stale, self.before = self.before, sent
        if stale is not None and self.only(sent) and self.count % self.every == 0:
            return answered(last_line(stale), prompt_tokens=sent.tokens)
        return copying(sent)


def played(scenario, script, **options):
    """The outcome of a scenario on a scripted server, and the bench."""
    bench = ScriptedBench(script, **options)
    return play(scenario, bench), bench
