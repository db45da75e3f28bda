"""Precedence, merging, expansion."""

import os
import sys
from pathlib import Path

import platformdirs
import pytest

from acphost.errors import ConfigError
from acphost.settings.model import (
    AgentSettings,
    DrainSettings,
    LimitSettings,
    PermissionSettings,
    QueueSettings,
    RestartSettings,
    Settings,
)
from acphost.settings.places import user_folder
from tests.unit.settings.conftest import Load, Write


def test_with_no_files_the_shipped_defaults_stand(load: Load, folder: Path) -> None:
    assert load() == Settings(
        folder=str(folder),
        read_from=[],
        socket=None,
        state_dir=None,
        admins=[],
        queue=QueueSettings(
            limit=1000, on_stop="continue", on_failed="continue", on_interrupted="hold"
        ),
        limits=LimitSettings(
            max_line_bytes=67_108_864,
            client_line_bytes=33_554_432,
            max_in_flight=256,
            max_connections=128,
            handshake_timeout=10.0,
        ),
        drain=DrainSettings(timeout=15.0),
        permissions=PermissionSettings(timeout=None, unattended="wait"),
        agents={
            "demo": AgentSettings(
                display_name="Demo", command=[sys.executable, "-m", "acphost.demo.agent"]
            ),
            "hermes": AgentSettings(
                display_name="Hermes",
                runtime="hermes",
                command=["hermes-acp"],
                env={"HERMES_HOME": "/home/ada/.hermes"},
                process="per_session",
            ),
            "reasonix": AgentSettings(
                display_name="Reasonix", runtime="reasonix", command=["reasonix", "acp"]
            ),
        },
    )


def test_a_folder_that_does_not_exist_is_an_empty_one(load: Load, folder: Path) -> None:
    folder.rmdir()
    assert load().read_from == []


def test_flag_before_environment_before_file(load: Load, write: Write) -> None:
    write("config.toml", 'socket = "/file/socket"\nstate_dir = "/file/state"\n')
    settings = load()
    assert (settings.socket, settings.state_dir) == ("/file/socket", "/file/state")
    settings = load(ACPHOST_SOCKET="/env/socket", ACPHOST_STATE_DIR="/env/state")
    assert (settings.socket, settings.state_dir) == ("/env/socket", "/env/state")
    settings = load({"socket": "/flag/socket", "state_dir": None}, ACPHOST_SOCKET="/env/socket")
    assert (settings.socket, settings.state_dir) == ("/flag/socket", "/file/state")


def test_an_empty_variable_counts_as_not_set(load: Load) -> None:
    assert load(ACPHOST_SOCKET="", ACPHOST_CONFIG="").socket is None


def test_flags_that_are_not_about_settings_are_ignored(load: Load) -> None:
    assert load({"verbose": True}) == load()


def test_a_relative_flag_starts_from_the_working_directory(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load({"socket": "x.sock"}).socket == str(tmp_path / "x.sock")


def test_a_users_table_changes_only_the_keys_it_names(load: Load, write: Write) -> None:
    write("config.toml", '[agents.hermes]\nenv = { HERMES_LOG = "~/log" }\ninit_timeout = 5\n')
    assert load().agents["hermes"] == AgentSettings(
        display_name="Hermes",
        runtime="hermes",
        command=["hermes-acp"],
        env={"HERMES_HOME": "/home/ada/.hermes", "HERMES_LOG": "/home/ada/log"},
        process="per_session",
        init_timeout=5.0,
    )


def test_files_count_in_the_order_main_then_agents_by_name(load: Load, write: Write) -> None:
    main = write("config.toml", '[agents.x]\ncommand = ["x"]\nquiet_after = 1\n')
    last = write("agents.d/b.toml", "[agents.x]\nquiet_after = 3\n")
    first = write("agents.d/a.toml", "[agents.x]\nquiet_after = 2\neof_grace = 0\n")
    settings = load()
    assert settings.agents["x"] == AgentSettings(
        display_name="x", command=["x"], quiet_after=3.0, eof_grace=0.0
    )
    assert settings.read_from == [str(main), str(first), str(last)]


def test_what_editors_leave_in_agents_d_is_not_read(load: Load, write: Write) -> None:
    for name in ("agents.d/.#a.toml", "agents.d/a.toml~", "agents.d/README.md"):
        write(name, "[[[")
    assert load().read_from == []


def test_the_config_flag_names_a_folder_or_a_single_file(load: Load, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "agents.d").mkdir(parents=True)
    main, agent = other / "config.toml", other / "agents.d" / "a.toml"
    main.write_text("[drain]\ntimeout = 1\n")
    agent.write_text('[agents.a]\ncommand = ["a"]\n')

    whole = load({"config": str(other)})
    assert (whole.read_from, whole.folder) == ([str(main), str(agent)], str(other))
    single = load(ACPHOST_CONFIG=str(main))
    assert (single.read_from, single.folder) == ([str(main)], str(other))
    assert single.drain == DrainSettings(timeout=1.0)


def test_a_place_that_was_named_must_exist(load: Load, tmp_path: Path) -> None:
    missing = tmp_path / "nothing.toml"
    with pytest.raises(ConfigError) as caught:
        load(ACPHOST_CONFIG=str(missing))
    assert str(caught.value) == f"{missing}: cannot be read: No such file or directory"


def test_tilde_and_python_are_expanded_where_paths_are_meant(load: Load, write: Write) -> None:
    write(
        "config.toml",
        """
        socket = "~/s"
        state_dir = "~"
        [agents.x]
        command = ["~/bin/x", "--at", "~/in", "a~b", "{python}", "~bob/x"]
        path = ["~/bin", "$PATH"]
        restart = { limit = 0 }
        """,
    )
    settings = load()
    assert (settings.socket, settings.state_dir) == ("/home/ada/s", "/home/ada")
    assert settings.agents["x"] == AgentSettings(
        display_name="x",
        command=["/home/ada/bin/x", "--at", "/home/ada/in", "a~b", sys.executable, "~bob/x"],
        path=["/home/ada/bin", "$PATH"],
        restart=RestartSettings(limit=0, window=60.0),
    )


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(load: Load, write: Write) -> None:
    write("config.toml", "\ufeff[drain]\r\ntimeout = 2\r\n")
    assert load().drain == DrainSettings(timeout=2.0)


def test_without_an_xdg_folder_the_platform_decides() -> None:
    """A relative XDG_CONFIG_HOME is invalid by its specification, and as good as none."""
    expected = platformdirs.user_config_path("acphost", appauthor=False)
    assert user_folder({"XDG_CONFIG_HOME": "relative"}) == expected
    assert user_folder({}) == expected


def test_dev_null_is_no_configuration_at_all(load: Load, write: Write) -> None:
    write("config.toml", "[[[")
    assert load(ACPHOST_CONFIG=os.devnull).read_from == []
