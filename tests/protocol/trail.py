"""What a step says it did is what it did: the rows of a core's trail lead to where its records stand.

Logs, trace conformance and the explorer's counterexamples are made of the trail; a row in it that leads
elsewhere would make them all lie, although every answer may be right.
"""

from kvfence.protocol import DECODE, PREFILL, ROUTER, DecodeCore, RouterCore


def assert_true_trail(core):
    """Each row begins where the one before it ended, the last one ends where the record stands now."""
    table = ROUTER if isinstance(core, RouterCore) else DECODE if isinstance(core, DecodeCore) else PREFILL
    records = core.requests if table is ROUTER else core.leases
    attempts = {} if table is ROUTER else core.attempts
    stands = {}
    for taken in core.trail:
        key = attempts.get(taken.key, taken.key)
        before = stands.get(key, taken.state)
        assert before is taken.state, f"{key} was {before}, then {taken.fact} came in {taken.state}"
        stands[key] = taken.next_state
    for key, state in stands.items():
        now = records[key].state if key in records else table.absent
        assert now is state, f"the trail leads {key} to {state}, and it is {now}"
    for key, record in records.items():
        assert record.state is not table.absent, f"{key} is filed and ABSENT"
