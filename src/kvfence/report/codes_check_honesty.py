"""Codes of the check: prompts that were not read, and answers that do not say so. Data alone.

Rules it keeps: those of `codes_check`.
"""

from kvfence.report.codes_entry import AISVS, Code
from kvfence.report.finding import Severity

SGLANG_OVERLONG = "https://github.com/sgl-project/sglang/issues/30233"
SGLANG_ENQUEUED = "https://github.com/sgl-project/sglang/pull/34208"
SGLANG_LENGTH_200 = "https://github.com/sgl-project/sglang/issues/33507"
VLLM_STALE = "https://github.com/vllm-project/vllm/issues/52234"

HONESTY_CODES: tuple[Code, ...] = (
    Code(
        number="KVF203",
        title="A long prompt was answered and never read",
        severity=Severity.CRITICAL,
        what=(
            "The server answered a prompt near its advertised context with status 200, far faster than it "
            "can compute that many tokens, and knew none of what stood in it. Decode has run over pages "
            "that nobody wrote for this request: this is the incident, shown without a word of anybody "
            "else."
        ),
        why=(
            "Prefill rejects the request, replaces it by a placeholder, and sends that on as if it were "
            "complete; decode attends over the whole length. It happens where a pool is smaller than the "
            "context (KVF101)."
        ),
        mend=(
            "Refuse prompts above the smallest pool at the router now. Then upgrade (SGLang: 0.5.22 or "
            "later), make the pools hold the context, and repeat the check. Answers to long prompts since "
            "the pool shrank may hold other users' text: they have to be looked through."
        ),
        references=(AISVS, "CWE-226", "CWE-908", SGLANG_OVERLONG, SGLANG_ENQUEUED),
    ),
    Code(
        number="KVF204",
        title="A long prompt was cut",
        severity=Severity.HIGH,
        what=(
            "Part of a prompt was dropped without a word: the count of prompt tokens falls at the "
            "boundary, or only the head or the tail is known. Instructions at the cut end had no effect."
        ),
        why=(
            "Over-length prompts are shortened by a setting (SGLang: --allow-auto-truncate) or by default "
            "(servers that load a model with a smaller context than it declares)."
        ),
        mend="Let the server refuse with 400. Where it cannot, count tokens and refuse at the gateway.",
        references=(AISVS, "CWE-20", "CWE-440"),
    ),
    Code(
        number="KVF205",
        title="A long prompt stops the server for everybody",
        severity=Severity.HIGH,
        what=(
            "While a prompt between pool and context waited, short requests of others got no answer "
            "either. One client can end the service, by mistake or on purpose."
        ),
        why=(
            "The request can never be scheduled and stands first in the queue, or an exception ends the "
            "scheduler. Neither is refused at admission."
        ),
        mend=(
            "Bound prompt + max_tokens at the router by the smallest pool; upgrade; set a queue time-out. "
            "Restart what does not come back by itself."
        ),
        references=(AISVS, "CWE-400", "CWE-770"),
    ),
    Code(
        number="KVF209",
        title="The advertised context is not accepted",
        severity=Severity.MEDIUM,
        what=(
            "The server refuses lengths that it advertises. Refusing is right; the advertisement sends "
            "clients into the band above the true limit, where servers differ most."
        ),
        why="/v1/models shows the model's context, not the smallest limit on the path.",
        mend="Set the context of the deployment to the limit that the refusals name.",
        references=(AISVS, "CWE-440"),
    ),
    Code(
        number="KVF210",
        title="A prompt over the limit is answered",
        severity=Severity.HIGH,
        what=(
            "A prompt longer than the server's own limit got status 200. What it was answered from is not "
            "what was sent."
        ),
        why=(
            "The check of the length comes too late, happens in one node only, or its result is stored "
            "where the next stage does not look."
        ),
        mend=(
            "Refuse at admission, before anything is queued; upgrade. Look at KVF203 and KVF204 for what "
            "was done with the prompt."
        ),
        references=(AISVS, "CWE-393", "CWE-754", SGLANG_OVERLONG, SGLANG_LENGTH_200),
    ),
    Code(
        number="KVF213",
        title="Usage, finish reason or timing cannot be true",
        severity=Severity.MEDIUM,
        what=(
            "The counts, the finish reason or the time of an answer contradict what was sent: more cached "
            "than prompt tokens, a prompt of one token for a long text, a first token sooner than the "
            "prompt can be computed. Bills and monitoring that rest on them are wrong too."
        ),
        why=(
            "Counters are kept apart from the work they count, above all across nodes, and in SGLang's "
            "disaggregation each node reports its own."
        ),
        mend="Take the request of the replay line, and follow it through the logs of every node.",
        references=(AISVS, "CWE-440", SGLANG_LENGTH_200),
    ),
    Code(
        number="KVF214",
        title="A failure is dressed as a success",
        severity=Severity.HIGH,
        what=(
            "The answer began with status 200 and then held an error event, or an end that says that all "
            "was well. Clients that look at the status alone take a failed answer for a whole one."
        ),
        why=(
            "A stream's status is sent before the work is done. vLLM sends an error object and then "
            "[DONE]; SGLang's /generate ends with a finish reason of abort."
        ),
        mend=(
            "Have clients treat an error object in a stream as a failure, and let the gateway close the "
            "connection instead of passing [DONE] on. Refusals have to come before the stream begins."
        ),
        references=(AISVS, "CWE-393", VLLM_STALE, SGLANG_LENGTH_200),
    ),
    Code(
        number="KVF218",
        title="What stood in a long prompt is recalled wrongly",
        severity=Severity.MEDIUM,
        what=(
            "Asked which of sixteen words stood in a long prompt, the server chose wrongly more often "
            "than with a short prompt. Parts of the prompt were lost or replaced."
        ),
        why=(
            "Pages of a long prompt are missing, truncated or somebody else's; or the model is weak at "
            "this length, which the short control cannot exclude."
        ),
        mend=(
            "Repeat at half the length, and on one node without disaggregation and offload. If it is "
            "right there, treat it as KVF203."
        ),
        references=(AISVS, "CWE-908", "https://github.com/sgl-project/sglang/issues/23020"),
    ),
)
