"""What is left of a configuration with mistakes, and where to look for changes of one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from acphost.errors import ConfigError
from acphost.settings.load import Loaded, load_sound_settings
from acphost.settings.trail import watched_folders
from tests.unit.settings.conftest import Write

Sound = Callable[[], Loaded]


@pytest.fixture
def sound(folder: Path) -> Sound:
    """Load what is free of mistakes."""

    def load() -> Loaded:
        environ = {"HOME": "/home/ada", "XDG_CONFIG_HOME": str(folder.parent)}
        return load_sound_settings(flags={}, environ=environ)

    return load


def test_without_mistakes_it_is_all_of_it(sound: Sound, write: Write) -> None:
    write("config.toml", '[agents.a]\ncommand = ["a"]\n')
    loaded = sound()
    assert loaded.problem is None
    assert "a" in loaded.settings.agents


def test_a_file_with_a_mistake_is_left_out_whole(sound: Sound, write: Write) -> None:
    good = write("config.toml", '[agents.a]\ncommand = ["a"]\n')
    write("agents.d/b.toml", '[agents.b]\ncommand = ["b"]\n[agents.c]\ncomand = ["c"]\n')
    loaded = sound()
    assert loaded.settings.read_from == [str(good)]
    assert loaded.settings.agents.keys() & {"a", "b", "c"} == {"a"}
    assert "agents.c.comand" in str(loaded.problem)


def test_what_relied_on_a_file_with_a_mistake_is_left_out_too(sound: Sound, write: Write) -> None:
    write("config.toml", '[agents.a]\ncommand = ["a"]\nquiet = 1\n')
    write("agents.d/a.toml", "[agents.a]\ninit_timeout = 3\n")
    loaded = sound()
    assert "a" not in loaded.settings.agents
    assert "agents.a.quiet" in str(loaded.problem)


@pytest.mark.parametrize("spoil", ["[queue]\nlimit = 'x'\n", "[queue\n", "limit = = 3\n"])
def test_a_main_file_still_says_where_the_daemon_lives(
    sound: Sound, write: Write, spoil: str
) -> None:
    write("config.toml", f"socket = \"~/s\"\nstate_dir = '/var/state' # mine\n{spoil}")
    loaded = sound()
    assert loaded.problem is not None
    assert (loaded.settings.socket, loaded.settings.state_dir) == ("/home/ada/s", "/var/state")
    assert loaded.settings.queue.limit == 1000


def test_a_place_that_is_itself_a_mistake_is_not_used(sound: Sound, write: Write) -> None:
    write("config.toml", 'socket = "relative"\n')
    assert sound().settings.socket is None


def test_a_main_file_that_cannot_be_read_is_refused(sound: Sound, folder: Path) -> None:
    (folder / "config.toml").symlink_to(folder / "nowhere")
    with pytest.raises(ConfigError):
        sound()


def test_the_folder_and_agents_d_are_watched(folder: Path, write: Write) -> None:
    write("agents.d/a.toml", "")
    assert watched_folders(folder) == {
        folder: frozenset({"config.toml", "agents.d", "runtimes"}),
        folder / "agents.d": None,
    }


def test_what_does_not_exist_is_waited_for_where_it_would_appear(tmp_path: Path) -> None:
    assert watched_folders(tmp_path / "a" / "b") == {tmp_path: frozenset({"a"})}


def test_every_link_on_the_way_is_watched(tmp_path: Path) -> None:
    for name in ("dots", "real", "files"):
        (tmp_path / name).mkdir()
    (tmp_path / "dots" / "acphost").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "config.toml").symlink_to("../files/one.toml")
    (tmp_path / "files" / "one.toml").write_text("")
    assert watched_folders(tmp_path / "dots" / "acphost") == {
        tmp_path / "dots": frozenset({"acphost"}),
        tmp_path / "real": frozenset({"config.toml", "agents.d", "runtimes"}),
        tmp_path / "files": frozenset({"one.toml"}),
    }


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "config.toml").symlink_to("config.toml")
    assert watched_folders(tmp_path)[tmp_path] == frozenset({"config.toml", "agents.d", "runtimes"})


def test_a_file_as_the_place_is_watched_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text("")
    assert watched_folders(tmp_path / "my.toml") == {tmp_path: frozenset({"my.toml"})}
