"""The scanner finds keys where tomllib finds them."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from acphost.settings.lines import KeyPath, key_lines

DOCUMENT = '''\
top = 1 # comment = "no key"
"quoted key" = """
not = "a key"
"""
lit = \'\'\'
[nor.a.table]\'\'\'

[a.b] # after
"x.y" = [
  "one", # [c]
  { in = 1, deep = { er = 2 } },
]
dotted . key = 1.5
table = { k = "]", l = [1,
2], m = 'it' }
[[list]]
n = "\\"#="
'''


def test_every_table_and_key_has_its_line() -> None:
    assert key_lines(DOCUMENT) == {
        ("top",): 1,
        ("quoted key",): 2,
        ("lit",): 5,
        ("a",): 8,
        ("a", "b"): 8,
        ("a", "b", "x.y"): 9,
        ("a", "b", "x.y", "in"): 11,
        ("a", "b", "x.y", "deep"): 11,
        ("a", "b", "x.y", "deep", "er"): 11,
        ("a", "b", "dotted"): 13,
        ("a", "b", "dotted", "key"): 13,
        ("a", "b", "table"): 14,
        ("a", "b", "table", "k"): 14,
        ("a", "b", "table", "l"): 14,
        ("a", "b", "table", "m"): 15,
        ("list",): 16,
        ("list", "[0]"): 16,
        ("list", "[0]", "n"): 17,
    }


_names = st.one_of(
    st.from_regex(r"\A[A-Za-z0-9_-]{1,6}\Z"),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=4),
)
_values = st.sampled_from(['"a = \\"b\\" # ["', "'[x]'", "-1.5e3", "[1, [2]]", "{ }", "true"])


@given(st.dictionaries(_names, st.dictionaries(_names, _values, max_size=4), max_size=4))
def test_what_tomllib_reads_the_scanner_finds(tables: dict[str, dict[str, str]]) -> None:
    written: list[str] = []
    expected: dict[KeyPath, int] = {}
    for name, table in tables.items():
        written.append(f"[{_quoted(name)}]")
        expected[(name,)] = len(written)
        for key, value in table.items():
            written.append(f"{_quoted(key)} = {value}")
            expected[(name, key)] = len(written)
    text = "\n".join(written)
    assert tomllib.loads(text).keys() == tables.keys()
    assert key_lines(text) == expected


@given(st.text(st.sampled_from("a=[]{},.\"'\\\n# ")))
def test_any_text_is_scanned_without_complaint(text: str) -> None:
    assert all(line >= 1 for line in key_lines(text).values())


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
