"""`acphost schema` needs no daemon, and says the same in three languages."""

import json

import pytest

from acphost.cli.main import main


def test_the_schema_is_json_unless_asked_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    plain = capsys.readouterr().out
    assert main(["schema", "--json"]) == 0
    assert capsys.readouterr().out == plain
    assert "run/create" in json.loads(plain)["methods"]


@pytest.mark.parametrize(
    ("form", "line"), [("--ts", "export interface Run {"), ("--lua", "---@class acphost.Run")]
)
def test_types_for_plugins(form: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", form]) == 0
    assert line in capsys.readouterr().out.splitlines()


def test_two_languages_at_once_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["schema", "--ts", "--lua"])
    assert "not allowed" in capsys.readouterr().err
