"""Status lines over a real pipe: whole, in pieces, broken, ended."""

import os

import pytest

from kvfence.protocol.errors import PeerError
from kvfence.serving.progress import (
    LINE_BYTES_MAX,
    Failed,
    Kill,
    Progress,
    Ready,
    Started,
    StatusReader,
    StatusWriter,
    encode_status,
)

EVERY = [
    Started(incarnation=9),
    Progress(step="loading the model", done=1, total=2),
    Ready(incarnation=9, pool_tokens=10, url="http://127.0.0.1:1"),
    Kill(node="prefill-0", incarnation=8),
    Failed(message="no memory", exit_code=2),
]


@pytest.fixture
def pipe():
    read_end, write_end = os.pipe()
    reader, writer = StatusReader(read_end), StatusWriter(write_end)
    yield reader, writer
    reader.close()
    writer.close()


def test_every_kind_arrives_in_order(pipe):
    reader, writer = pipe
    assert list(reader.read()) == []
    assert all(writer.send(status) for status in EVERY)
    assert list(reader.read()) == EVERY
    assert not reader.ended


def test_a_line_in_pieces_is_put_together(pipe):
    reader, writer = pipe
    line = encode_status(EVERY[0])
    os.write(writer._fd, line[:7])
    assert list(reader.read()) == []
    os.write(writer._fd, line[7:] + encode_status(EVERY[1])[:3])
    assert list(reader.read()) == [EVERY[0]]


def test_the_end_of_the_pipe_is_seen(pipe):
    reader, writer = pipe
    writer.send(EVERY[3])
    writer.close()
    assert list(reader.read()) == [EVERY[3]]
    assert reader.ended
    assert list(reader.read()) == []


@pytest.mark.parametrize("line", [b"Traceback\n", b'{"event":"promote"}\n', b'{"event":"kill","node":3}\n'])
def test_a_line_that_is_no_status_is_the_nodes_fault(pipe, line):
    reader, writer = pipe
    os.write(writer._fd, line)
    with pytest.raises(PeerError, match="cannot be read"):
        list(reader.read())


def test_an_endless_line_is_bounded(pipe):
    reader, writer = pipe
    os.set_blocking(writer._fd, False)
    with pytest.raises(PeerError, match="over"):
        for _ in range(10):
            os.write(writer._fd, b"x" * (LINE_BYTES_MAX // 2))
            list(reader.read())


def test_a_launcher_that_is_gone_is_said(pipe):
    reader, writer = pipe
    reader.close()
    assert not writer.send(EVERY[0])
