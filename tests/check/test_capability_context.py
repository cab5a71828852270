"""Limits in the words of many servers, with numbers that no other part of the sentence could give."""

import pytest

from kvfence.check.capability_context import Bounds, advertised_in, limit_in

REQUEST, PROMPT, ANSWER = Bounds.REQUEST, Bounds.PROMPT, Bounds.ANSWER


@pytest.mark.parametrize(
    ("words", "tokens", "bounds", "form"),
    [
        (
            (
                "This deployment serves at most 4096 tokens a request, prompt and answer together; this request needs at "
                "least 100000007 (7 of them in the prompt)."
            ),
            4_096,
            REQUEST,
            "kvfence",
        ),
        (
            "This model's maximum context length is 8192 tokens. However, your prompt contains 9000 input tokens, …",
            8_192,
            REQUEST,
            "OpenAI",
        ),
        (
            (
                "'max_tokens' or 'max_completion_tokens' is too large: 100000000. This model's maximum context length is "
                "32768 tokens and your request has 12 input tokens"
            ),
            32_768,
            REQUEST,
            "OpenAI",
        ),
        (
            "Input length (2500 tokens) exceeds the maximum allowed length (1994 tokens). Use a shorter input",
            1_994,
            PROMPT,
            "SGLang",
        ),
        (
            "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
            4_096,
            REQUEST,
            "SGLang",
        ),
        (
            "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total",
            131_072,
            REQUEST,
            "SGLang",
        ),
        (
            "the request exceeds the available context size (4,096 tokens), try increasing it",
            4_096,
            REQUEST,
            "llama.cpp",
        ),
        ('{"error":{"code":400,"n_prompt_tokens":5000,"n_ctx":2048}}', 2_048, REQUEST, "llama.cpp"),
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4000. Given: 5 `inputs` tokens",
            4_000,
            REQUEST,
            "TGI",
        ),
        (
            "Input validation error: `inputs` must have less than 1024 tokens. Given: 3000",
            1_024,
            PROMPT,
            "TGI",
        ),
        (
            (
                "max_tokens is too large: 100000000. This model supports at most 16384 completion tokens, whereas you "
                "provided 100000000."
            ),
            16_384,
            ANSWER,
            "OpenAI",
        ),
        (
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            32_768,
            REQUEST,
            "Mistral",
        ),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000, PROMPT, "Anthropic"),
        ("max_tokens: 100000000 > 64000, which is the maximum allowed", 64_000, ANSWER, "Anthropic"),
        (
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            1_048_576,
            PROMPT,
            "Google",
        ),
        ("should not exceed max_seq_len (2048)", 2_048, REQUEST, "TensorRT-LLM"),
        ("the context window of this model is 16_000", 16_000, REQUEST, "an unknown server"),
    ],
)
def test_refusals_name_their_limit(words, tokens, bounds, form):
    found = limit_in(words)
    assert (found.tokens, found.bounds, found.form) == (tokens, bounds, form)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "Unsupported parameter: 'max_tokens'",
        "the answer took 8192 ms",
        "maximum context length is 0",
        f"maximum context length is {10**30}",
        "your request has 9000 tokens",
    ],
)
def test_other_refusals_name_none(words):
    assert limit_in(words) is None


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ({"max_model_len": 8_192}, (8_192, "max_model_len")),
        ({"max_model_len": None, "context_window": 4_096}, (4_096, "context_window")),
        ({"context_length": 4_096}, (4_096, "context_length")),
        ({"max_context_length": 4_096}, (4_096, "max_context_length")),
        ({"meta": {"n_ctx": 2_048, "n_ctx_train": 131_072}}, (2_048, "meta.n_ctx")),
        ({"top_provider": {"context_length": 5}}, (5, "top_provider.context_length")),
    ],
)
def test_a_models_entry_names_its_context(entry, found):
    assert advertised_in(entry) == found


@pytest.mark.parametrize(
    "entry", [{}, {"max_model_len": "8192"}, {"max_model_len": 0}, {"meta": {"n_ctx_train": 9}}]
)
def test_an_entry_that_names_none(entry):
    assert advertised_in(entry) is None
