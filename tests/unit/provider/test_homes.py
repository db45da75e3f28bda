"""What agents' own configurations tell before they are started."""

from pathlib import Path

import pytest

from acphost.provider.agents.hermes import Hermes
from acphost.provider.agents.reasonix import Reasonix
from acphost.wire.agents import Finding, Severity


@pytest.mark.parametrize(
    ("config", "severity"),
    [
        ("approvals: {mode: manual}\n", Severity.OK),
        ("model: x\napprovals:\n  # asks\n  timeout: 5\n  mode: 'manual'\nlast: 1\n", Severity.OK),
        ("approvals:\n  timeout: 5\nother:\n  mode: manual\n", Severity.WARNING),
        ("approvals: {mode: smart}\n", Severity.WARNING),
        ("model: x\n", Severity.WARNING),
        ("", Severity.WARNING),
    ],
)
def test_it_is_known_who_approves_in_hermes(
    tmp_path: Path, config: str, severity: Severity
) -> None:
    """Unless it is told to ask people, a model may approve alone."""
    tmp_path.joinpath("config.yaml").write_text(config)
    (found,) = Hermes().inspect_home({"HERMES_HOME": str(tmp_path)})
    assert (found.code, found.severity) == ("approvals", severity)
    assert (found.cure is None) == (severity is Severity.OK)


def test_a_hermes_that_was_never_set_up_is_a_problem(tmp_path: Path) -> None:
    """Its home is looked for where its environment says, else in the user's."""
    (found,) = Hermes().inspect_home({"HOME": str(tmp_path)})
    assert (found.code, found.severity) == ("not_configured", Severity.PROBLEM)
    assert str(tmp_path / ".hermes") in found.message


def reasonix(home: Path, config: str | None, keys: str = "") -> list[Finding]:
    if config is not None:
        home.joinpath("config.toml").write_text(config)
    home.joinpath(".env").write_text(keys)
    return Reasonix().inspect_home({"REASONIX_HOME": str(home)})


GOOD = 'default_model = "a/b"\n[[providers]]\nname = "a"\napi_key_env = "A_KEY"\n'


def test_a_reasonix_with_model_and_key_has_no_findings(tmp_path: Path) -> None:
    """Its keys count only in its own `.env`."""
    assert reasonix(tmp_path, GOOD, "# mine\nexport A_KEY=sk\n") == []


@pytest.mark.parametrize(
    ("config", "code"),
    [(None, "not_configured"), ("a = [", "config_broken"), ("a = 1", "no_model"), (GOOD, "no_key")],
)
def test_what_reasonix_lacks_is_named(tmp_path: Path, config: str | None, code: str) -> None:
    """Each with what to do; the key itself is in no message."""
    (found,) = reasonix(tmp_path, config, "OTHER=sk-secret\n")
    assert (found.code, found.severity) == (code, Severity.PROBLEM)
    assert found.cure
    assert "sk-secret" not in found.message + found.cure


def test_a_project_file_that_reasonix_obeys_unasked_is_a_hazard(tmp_path: Path) -> None:
    """Only where there is one."""
    assert Reasonix().hazard_of(str(tmp_path)) is None
    tmp_path.joinpath("reasonix.toml").write_text("")
    hazard = Reasonix().hazard_of(str(tmp_path))
    assert hazard is not None
    assert "reasonix.toml" in hazard.message
