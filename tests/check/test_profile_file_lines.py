"""Places of keys, in TOML of every shape."""

import tomllib

import pytest

from kvfence.check.profile_file_lines import Lines

TEXT = '''\
title = "a [[target]] that is none"
text = """
[[target]]
key = 1
"""

[[target]]   # the first
name = "one"
list = [
  "key = 2",  # a bracket ]
  "x",
]
after = 1
inline = { key_env = "A",
# comment
}
[target.budget]
"quoted name" = 1
a.b = 2
[[target.tenant]]
name = "t1"
[[target.tenant]]
literal = \'\'\'
name = 3
\'\'\'
name = "t2"
[[target]]
name = "two"
[[target.tenant]]
name = "t3"
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 1),
        (("text",), 2),
        (("target", 0), 7),
        (("target", 0, "name"), 8),
        (("target", 0, "list"), 9),
        (("target", 0, "after"), 13),
        (("target", 0, "inline", "key_env"), 14),
        (("target", 0, "budget"), 17),
        (("target", 0, "budget", "quoted name"), 18),
        (("target", 0, "budget", "a", "b"), 19),
        (("target", 0, "tenant", 0), 20),
        (("target", 0, "tenant", 0, "name"), 21),
        (("target", 0, "tenant", 1, "literal"), 23),
        (("target", 0, "tenant", 1, "name"), 26),
        (("target", 1), 27),
        (("target", 1, "name"), 28),
        (("target", 1, "tenant", 0, "name"), 30),
        (("target", 1, "absent"), 27),
        (("absent",), 1),
        ((), 1),
    ],
)
def test_where_a_key_stands(path, line):
    assert Lines(TEXT).of(path) == line


def test_the_text_is_toml():
    """On Python 3.11 an inline table must not hold newlines; the rest has to be read by the real reader."""
    told = tomllib.loads(TEXT.replace('"A",\n# comment\n}', '"A" }'))
    assert [tenant["name"] for tenant in told["target"][0]["tenant"]] == ["t1", "t2"]
