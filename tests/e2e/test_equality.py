"""Answers through one prefill and one decode node equal plain transformers, token by token.

Greedy, fp32, 64 tokens. A difference counts only where the plain model was sure: where its own two best
logits are closer than `TIE`, either token is right, the comparison of that answer ends there, and the
tie is counted and shown.
"""

import random
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from kvfence.engine.loading import resolve_model
from kvfence.serving.tokenizer import TextTokenizer
from tests.e2e.deployment import Deployment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

TOKENS = 64
TIE = 1e-3
SHARE = (1, 2, 15, 16, 17, 100, 333, 1203, 4100)
ALL = (*SHARE, 31, 32, 33, 47, 64, 129, 511, 512, 513, 1024, 2049)
SUBJECTS = (
    "The history of the lighthouse begins with a fire on a hill.",
    "def add(a, b):\n    return a + b\n",
    "In 1969, two people walked on the moon; a third one waited for them.",
    "Wasser kocht bei hundert Grad, sagte sie, und lachte.",
    "1, 1, 2, 3, 5, 8, 13, 21, 34,",
    "Dear customer, thank you for your letter of the third of May.",
)


class Plain:
    """Plain transformers, and what it answers to each prompt."""

    def __init__(self):
        folder = resolve_model()
        self.tokenizer = TextTokenizer.from_folder(folder.path)
        self.model = AutoModelForCausalLM.from_pretrained(folder.path, dtype=torch.float32)
        self.model.generation_config.eos_token_id = None
        self._answers = {}

    def prompt(self, length):
        """A varied prompt of that many tokens, the same in each run."""
        draw = random.Random(length)
        tokens = []
        while len(tokens) < length:
            tokens += self.tokenizer.encode(draw.choice(SUBJECTS) + " ", add_special_tokens=False)
        return tokens[:length]

    def answer(self, length):
        """Greedy tokens, and at each the gap between the two best logits."""
        if length not in self._answers:
            ids = torch.tensor([self.prompt(length)])
            with torch.inference_mode():
                made = self.model.generate(
                    ids,
                    attention_mask=torch.ones_like(ids),
                    max_new_tokens=TOKENS,
                    do_sample=False,
                    pad_token_id=0,
                    output_logits=True,
                    return_dict_in_generate=True,
                )
            best = torch.stack(made.logits)[:, 0].topk(2).values
            names = [self.tokenizer.token_name(int(token)) for token in made.sequences[0, length:]]
            self._answers[length] = names, (best[:, 0] - best[:, 1]).tolist()
        return self._answers[length]


@pytest.fixture(scope="module")
def plain():
    return Plain()


@pytest.fixture
def serve():
    """Starts deployments, one after the other."""
    homes = []

    def start(*flags):
        homes.append(Path(tempfile.mkdtemp(prefix="kvf-")))
        return Deployment(homes[-1], "--dtype", "float32", *flags)

    yield start
    for home in homes:
        shutil.rmtree(home)


def served(deployment, prompt):
    status, reply = deployment.post(
        "/v1/completions",
        {
            "model": "smollm2-135m-instruct",
            "prompt": prompt,
            "max_tokens": TOKENS,
            "temperature": 0,
            "logprobs": 0,
            "ignore_eos": True,
        },
        timeout=600,
    )
    assert status == 200, reply
    assert reply["usage"]["prompt_tokens"] == len(prompt)
    assert reply["usage"]["completion_tokens"] == TOKENS
    return reply["choices"][0]["logprobs"]["tokens"], reply["usage"]["prompt_tokens_details"]["cached_tokens"]


def is_tie(plain, length, names):
    """False when the answers are equal; True when they part at a tie of the plain model's; else fail."""
    expected, gaps = plain.answer(length)
    for place, (want, got) in enumerate(zip(expected, names, strict=True)):
        if want != got:
            assert gaps[place] < TIE, (
                f"prompt of {length} tokens, answer token {place}: {got!r} instead of {want!r}, "
                f"where the plain model's best logits are {gaps[place]:.5f} apart"
            )
            return True
    return False


def compare(deployment, plain, lengths, capsys, *, batched):
    """Alone, cold and warm; then in a batch."""
    ties = 0
    for length in lengths:
        cold, hits = served(deployment, plain.prompt(length))
        ties += is_tie(plain, length, cold)
        warm, hits = served(deployment, plain.prompt(length))
        ties += is_tie(plain, length, warm)
        assert hits == (length - 1) // 16 * 16, "the second time all full pages but the last token's are hits"
    for start in range(0, len(batched), 16):
        batch = (batched[start:] + batched)[:16]
        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda length: served(deployment, plain.prompt(length))[0], batch))
        ties += sum(is_tie(plain, length, names) for length, names in zip(batch, answers, strict=True))
    count = 2 * len(lengths) + 16 * -(-len(batched) // 16)
    with capsys.disabled():
        print(f"\n{count} answers of {TOKENS} tokens equal plain transformers, {ties} up to a tie")


def test_answers_equal_plain_transformers(serve, plain, capsys):
    # Chunks of 200 tokens cut pages of 16.
    with serve("--chunk-tokens", "200") as deployment:
        # The longest stay out of the batch here: the slow target has them in it.
        short = [length for length in SHARE if length < 1000]
        compare(deployment, plain, SHARE, capsys, batched=(short * 16)[:16])


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("chunk", ["33", "256", "1000", "1024"])
@pytest.mark.parametrize("prefix", ["--prefix-cache", "--no-prefix-cache"])
def test_answers_equal_plain_transformers_everywhere(serve, plain, capsys, chunk, prefix):
    with serve("--chunk-tokens", chunk, prefix, "--queue-timeout-s", "280") as deployment:
        if prefix == "--prefix-cache":
            compare(deployment, plain, ALL, capsys, batched=list(ALL))
            return
        for length in ALL:
            names, hits = served(deployment, plain.prompt(length))
            is_tie(plain, length, names)
            assert hits == 0


def test_a_difference_that_is_no_tie_would_fail(plain):
    names, gaps = plain.answer(17)
    place = gaps.index(max(gaps))
    changed = [*names[:place], "something else", *names[place + 1 :]]
    with pytest.raises(AssertionError, match="instead of"):
        is_tie(plain, 17, changed)
    assert not is_tie(plain, 17, names)
