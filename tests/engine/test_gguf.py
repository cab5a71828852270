"""A GGUF file becomes an HF folder that holds what transformers reads from the file."""

import json

import pytest
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

from kvfence.engine.gguf import convert_gguf
from kvfence.engine.loading import CONVERTED_MARK, default_model_path, resolve_model
from kvfence.protocol.errors import OperatorError


def test_a_broken_file_is_the_operators_error_and_leaves_nothing(tmp_path):
    source = tmp_path / "broken.gguf"
    source.write_bytes(b"GGUF but no model")
    with pytest.raises(OperatorError, match="could not be converted"):
        convert_gguf(source, tmp_path / "models" / "x", {})
    assert list((tmp_path / "models").iterdir()) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_default_model_keeps_its_weights_tokenizer_and_template(tmp_path):
    source = default_model_path()
    target = tmp_path / "models" / "x"
    target.mkdir(parents=True)  # left there without its mark
    convert_gguf(source, target, {"revision": "r"})
    assert [path.name for path in target.parent.iterdir()] == ["x"]
    assert json.loads((target / CONVERTED_MARK).read_text()) == {"revision": "r"}
    assert (target / "tokenizer.json").is_file()
    assert "<|im_start|>" in (target / "chat_template.jinja").read_text()
    for dtype in (torch.float32, torch.bfloat16):
        direct = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=dtype)
        converted = AutoModelForCausalLM.from_pretrained(target, dtype=dtype)
        pairs = zip(direct.state_dict().items(), converted.state_dict().items(), strict=True)
        assert all(a == b and torch.equal(x, y) for (a, x), (b, y) in pairs)
        ids = torch.tensor([[1, 2, 3]])
        with torch.inference_mode():
            assert torch.equal(direct(ids).logits, converted(ids).logits)


def test_each_digit_of_the_default_model_is_a_token_of_its_own():
    tokenizer = Tokenizer.from_file(str(resolve_model().tokenizer_file))
    ids = tokenizer.encode("In 1969", add_special_tokens=False).ids
    assert [tokenizer.decode([token]) for token in ids][-4:] == ["1", "9", "6", "9"]
    assert tokenizer.decode(ids) == "In 1969"
