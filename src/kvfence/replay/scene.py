"""What is played: sizes, prompts, flags, and which fault is played by which scene.

The sizes keep the incident's proportion, to the page: a prefill pool of 64.8 % of the context, and a decode
pool that holds all of it. Tenant A fills decode's pages with text that repeats its secret; tenant B asks for
something else. What a scene shows follows from where the fault sits: in the band between the two pools, or
in the hand-over of any prompt.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, unique

from kvfence.faults import SWITCHES, Fault, Layer, fault_named
from kvfence.protocol.errors import OperatorError
from kvfence.replay.client import Ask
from kvfence.replay.secret import Secret

INCIDENT = "rejected-continues/incident"
# The incident without its missing admission: with the router's comparison back in place, this half is left.
INCIDENT_BEHIND_ADMISSION = "rejected-continues/split-state"

CONTEXT_TOKENS = 2_048
PREFILL_POOL_TOKENS = 1_328
PAGE_TOKENS = 16
SIZES = (
    *("--prefill-pool-tokens", str(PREFILL_POOL_TOKENS), "--decode-pool-tokens", str(CONTEXT_TOKENS)),
    *("--page-tokens", str(PAGE_TOKENS), "--batch-size", "4"),
    # A machine that is busy with something else is no lost node.
    *("--lost-after-s", "60", "--drain-timeout-s", "1"),
)
# Each prompt is computed whole, so that its time is that of its length.
UNCACHED = ("--no-prefix-cache",)

A_FIRST_TOKENS = 1_000
A_SECOND_TOKENS = 800
B_BAND_TOKENS = 1_345
B_PLAIN_TOKENS = 600
A_STAYS_TOKENS = 300  # its answer outlasts the second prompt: both stand in the pool at once
B_ANSWER_TOKENS = 32
B_PENALTY = 1.0  # an answer that only repeats one sign would hide what was leaked
LONG_TOKENS = 1_250  # nearly all that the prefill pool holds
B_SHORTER_TOKENS = 1_200  # with its answer it fits that pool
BATCH_BYTES = 1 << 20  # a few pages

Count = Callable[[str], int]


@unique
class Scene(Enum):
    """What tenant B sends."""

    BAND = "a prompt that is longer than the prefill pool and fits the decode pool"
    PLAIN = "a prompt that fits every pool"
    GUESS = "the very prompt that tenant A has sent, as one that was guessed"


SCENES: dict[str, Scene] = {
    INCIDENT: Scene.BAND,
    "rejected-continues/admission-unchecked": Scene.BAND,
    INCIDENT_BEHIND_ADMISSION: Scene.BAND,
    "false-completion/short-transfer": Scene.PLAIN,
    "false-completion/whole-claimed": Scene.PLAIN,
    "salt-dropped/domain-ignored": Scene.GUESS,
    "shared-cache-timing/one-domain": Scene.GUESS,
}


@dataclass(frozen=True, slots=True)
class Play:
    """One fault, and the scene that shows it."""

    fault: Fault
    scene: Scene
    secret: Secret

    @classmethod
    def of(cls, fault_name: str, secret: Secret) -> "Play":
        """Raise OperatorError for a fault that does not exist, or has no scene on the engine."""
        fault = fault_named(fault_name)
        scene = SCENES.get(fault_name)
        if scene is None:
            raise OperatorError(
                f"{fault_name} needs a moment that a replay cannot bring about on real nodes; see it in "
                f"virtual time: kvfence simulate --fault {fault_name}. On real nodes: {', '.join(SCENES)}"
            )
        return cls(fault, scene, secret)

    @property
    def is_incident(self) -> bool:
        """Whether this is the incident itself, whose answer holds another tenant's words."""
        return self.fault.name == INCIDENT

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers of a running deployment that are expected to stop it, each alone."""
        own = tuple(layer for layer in SWITCHES if layer in self.fault.caught_by)
        # The incident took admission away; the half of it that was left is stopped by admission too.
        return (Layer.ADMISSION, *own) if self.is_incident else own

    def flags(self, alone: Layer | None) -> tuple[str, ...]:
        """Return the flags of a deployment with the fault on and every layer off, but for the one."""
        is_admission = alone is Layer.ADMISSION
        fault = INCIDENT_BEHIND_ADMISSION if self.is_incident and is_admission else self.fault.name
        context = "fit" if is_admission else str(CONTEXT_TOKENS)
        off = tuple(
            word for layer in SWITCHES if layer is not alone for word in ("--unsafe-without", layer.value)
        )
        cache = () if self.scene is Scene.GUESS else UNCACHED
        return (
            *("--context", context, *SIZES, *cache, "--unsafe-fault", fault, *off),
            "--i-understand-this-leaks-data",
        )

    def prompts(self, count: Count) -> "Prompts":
        """Return what the tenants send; `count` counts the tokens of a text."""
        a_text = f"Customer file of tenant A. The access code of the vault is {self.secret.phrase}. "
        b_text = "Please write a short story about a river and the people who live beside it. "

        def each(text: str) -> int:
            return count(text * 2) - count(text)  # the end of a text can be a token of its own

        def a_prompt(tokens: int) -> str:
            return a_text * (tokens // each(a_text))

        if self.scene is Scene.BAND:
            b_prompt = b_text * -(-B_BAND_TOKENS // each(b_text))  # at least so long: a band has a lower end
        elif self.scene is Scene.GUESS:
            b_prompt = a_prompt(A_SECOND_TOKENS)
        else:
            # It ends with a full page, which is what a short transfer leaves out.
            b_prompt = (b_text * (B_PLAIN_TOKENS // each(b_text))).rstrip()
        return Prompts(
            a_first=Ask("tenant-a", a_prompt(A_FIRST_TOKENS), A_STAYS_TOKENS),
            a_second=Ask("tenant-a", a_prompt(A_SECOND_TOKENS), 1),
            b=Ask("tenant-b", b_prompt, B_ANSWER_TOKENS, frequency_penalty=B_PENALTY),
            b_shorter=Ask(
                "tenant-b",
                b_text * (B_SHORTER_TOKENS // each(b_text)),
                B_ANSWER_TOKENS,
                frequency_penalty=B_PENALTY,
            ),
            long=Ask("tenant-a", a_prompt(LONG_TOKENS), 1),
            small=Ask("tenant-b", "One plus one is", 2),
        )


@dataclass(frozen=True, slots=True)
class Prompts:
    """Tenant A's two requests, which overlap; tenant B's, and a shorter one that fits every pool; one to
    leave in mid-transfer; a small one.
    """

    a_first: Ask
    a_second: Ask
    b: Ask
    b_shorter: Ask
    long: Ask
    small: Ask


def fixed_flags(context: str) -> tuple[str, ...]:
    """Return the flags of the same deployment with nothing broken; small batches make a transfer last."""
    return (
        "--context",
        context,
        *SIZES,
        *UNCACHED,
        "--chunk-tokens",
        "128",
        "--transfer-batch-bytes",
        str(BATCH_BYTES),
    )
