"""A token id that the model does not have ends the process that computes it: the edge must know how many it has."""

import pytest

from kvfence.serving.router_main import model_vocab_size


@pytest.mark.parametrize(
    ("config", "size"),
    [
        ({"vocab_size": 7}, 7),
        ({"text_config": {"vocab_size": 5}}, 5),
        ({"text_config": {"vocab_size": 5}, "vocab_size": 7}, 5),
        ({"text_config": {}, "vocab_size": 7}, 7),
        ({"vocab_size": True}, None),
        ({}, None),
    ],
)
def test_the_vocabulary_is_the_text_models(config, size):
    assert model_vocab_size(config) == size
