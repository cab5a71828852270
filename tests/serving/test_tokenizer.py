"""Tokens and their bytes, for byte-level and SentencePiece-like tokenizers."""

import json
import subprocess
import sys
import threading

import pytest
from tests.serving.api_fakes import ids, tokenizer
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers

from kvfence.protocol.errors import OperatorError
from kvfence.serving.tokenizer import TextTokenizer


def sentencepiece_like(decoder=None):
    pieces = ["<unk>", "<s>", "</s>", *[f"<0x{byte:02X}>" for byte in range(256)], "▁", "a", "▁a", "▁b", "b"]
    merges = [("▁", "a"), ("▁", "b")]
    built = Tokenizer(
        models.BPE(
            {piece: index for index, piece in enumerate(pieces)},
            merges,
            byte_fallback=True,
            unk_token="<unk>",
        )
    )
    built.normalizer = normalizers.Replace(" ", "▁")
    built.decoder = decoder or decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    built.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in pieces[:3]])
    return built


def test_encoding_reads_special_tokens_or_does_not():
    text = tokenizer()
    assert text.encode("<|im_end|>", add_special_tokens=False) == (2,)
    literal = text.encode_literally("<|im_end|>")
    assert 2 not in literal
    assert b"".join(map(text.token_bytes, literal)) == b"<|im_end|>"
    assert text.encode_literally("a b") == text.encode("a b", add_special_tokens=False)


def test_bytes_of_byte_level_tokens():
    text = tokenizer()
    for written in (" é", "漢", "🦙", "\n\t", "\x00\x7f"):
        assert b"".join(map(text.token_bytes, ids(written))) == written.encode()
    assert text.token_bytes(2) == b""
    assert text.spelling(2) == b"<|im_end|>"
    assert text.token_bytes(10**6) == text.spelling(10**6) == b""
    assert text.is_special(2)
    assert not text.is_special(ids("a")[0])


def test_names_of_tokens():
    text = tokenizer()
    assert text.token_name(ids(" fine")[0]) == " fine"
    first, *_ = ids("🦙")
    assert text.token_name(first).startswith("bytes:\\x")


def test_every_token_has_bytes_and_a_name_of_its_own():
    text = tokenizer()
    assert text.vocab_size == 49152
    names = {text.token_name(token) for token in range(text.vocab_size)}
    assert len(names) == text.vocab_size


def test_bytes_of_sentencepiece_like_tokens():
    text = TextTokenizer(sentencepiece_like().to_str())
    encoded = text.encode(" a bé", add_special_tokens=False)
    assert b"".join(map(text.token_bytes, encoded)) == " a bé".encode()
    assert text.token_bytes(1) == b""


@pytest.mark.parametrize("text", ["", "a", " " * 300, "1" * 300, "é🦙\n" * 50, "_" * 1000, "<|im_end|>" * 20])
def test_lower_bound_of_tokens(text):
    assert tokenizer().tokens_min(text) <= len(ids(text))
    assert (tokenizer().tokens_min(text) > 0) == bool(text)


def byte_level(**parts):
    return TextTokenizer(json.dumps(json.loads(tokenizer()._tokenizer.to_str()) | parts))


def test_lower_bound_only_where_every_byte_is_kept():
    added = json.loads(tokenizer()._tokenizer.to_str())["added_tokens"]
    split = {"type": "Split", "pattern": {"String": " "}, "invert": False}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    assert byte_level(pre_tokenizer=level).tokens_min("a" * 999) > 0
    assert byte_level(
        pre_tokenizer={"type": "Sequence", "pretokenizers": [split | {"behavior": "Isolated"}, level]}
    ).tokens_min("a" * 999)
    for parts in (
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [split | {"behavior": "Removed"}, level]}},
        {"pre_tokenizer": {"type": "Whitespace"}},
        {"normalizer": {"type": "NFC"}},
        {"added_tokens": [added[0] | {"rstrip": True}, *added[1:]]},
    ):
        assert byte_level(**parts).tokens_min("a" * 999) == 0
    assert TextTokenizer(sentencepiece_like().to_str()).tokens_min("a" * 999) == 0


def test_encoding_lets_other_threads_run():
    """The library's plain `encode` would hold them all up."""
    text = "1" * 300_000
    turns = 0
    thread = threading.Thread(target=tokenizer().encode_literally, args=(text,))
    thread.start()
    while thread.is_alive():
        thread.join(0.001)
        turns += 1
    assert turns > 5


def test_unknown_decoder_is_refused():
    for decoder in (decoders.WordPiece(), decoders.CTC()):
        with pytest.raises(OperatorError, match="decoder"):
            TextTokenizer(sentencepiece_like(decoder).to_str())
    without = json.loads(sentencepiece_like().to_str()) | {"decoder": None}
    with pytest.raises(OperatorError, match="none"):
        TextTokenizer(json.dumps(without))


def test_unreadable_tokenizer_is_refused():
    with pytest.raises(OperatorError, match="cannot be read"):
        TextTokenizer("{}")


def test_from_folder(tmp_path):
    with pytest.raises(OperatorError, match=r"tokenizer\.json"):
        TextTokenizer.from_folder(tmp_path)
    (tmp_path / "tokenizer.json").write_text(sentencepiece_like().to_str())
    assert TextTokenizer.from_folder(tmp_path).chat_template is None
    config = tmp_path / "tokenizer_config.json"
    for template, found in (
        ("one", "one"),
        ([{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}], "d"),
        ([{"name": "rag", "template": "r"}], None),
        (5, None),
    ):
        config.write_text(json.dumps({"chat_template": template, "bos_token": "<s>"}))
        loaded = TextTokenizer.from_folder(tmp_path)
        assert (loaded.chat_template, loaded.settings["bos_token"]) == (found, "<s>")
    (tmp_path / "chat_template.jinja").write_text("file")
    assert TextTokenizer.from_folder(tmp_path).chat_template == "file"
    for content in ("x", "[]"):
        config.write_text(content)
        with pytest.raises(OperatorError, match=r"tokenizer_config\.json"):
            TextTokenizer.from_folder(tmp_path)


def test_the_api_imports_neither_torch_nor_transformers():
    code = (
        "import sys, kvfence.serving.app; "
        "assert not {'torch', 'transformers', 'fastapi', 'pydantic'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
