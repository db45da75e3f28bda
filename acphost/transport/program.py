"""Finding the program to run, and saying what is missing when it cannot be."""

import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

from acphost.errors import AgentUnavailableError

_CURE = "set `path` or `env.PATH` of the agent"


def find_program(name: str, cwd: str, env: Mapping[str, str]) -> str:
    """The absolute path of the program `name` as a process with `cwd` and `env` would find it.

    Raises AgentUnavailableError: the working directory, the program or its interpreter is
    missing, or it may not be executed.
    """
    _check_directory(cwd)
    path = _search(name, cwd, env, os.F_OK | os.X_OK)
    if path is None:
        raise _not_found(name, cwd, env)
    _check_file(path)
    _check_interpreter(path, cwd, env)
    return path


def _check_directory(cwd: str) -> None:
    try:
        mode = Path(cwd).stat().st_mode
    except OSError as exc:
        raise AgentUnavailableError(
            f"working directory {cwd} cannot be used: {exc.strerror}", cwd=cwd
        ) from exc
    except ValueError as exc:
        raise AgentUnavailableError(f"working directory {cwd!r}: {exc}", cwd=cwd) from exc
    if not stat.S_ISDIR(mode):
        raise AgentUnavailableError(f"working directory {cwd} is not a directory", cwd=cwd)
    if not os.access(cwd, os.X_OK):
        raise AgentUnavailableError(f"working directory {cwd} may not be entered", cwd=cwd)


def _folders(cwd: str, env: Mapping[str, str]) -> str:
    # Relative entries count from where the child will be.
    entries = env.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(str(Path(cwd, entry)) for entry in entries)


def _search(name: str, cwd: str, env: Mapping[str, str], mode: int) -> str | None:
    if "/" in name:
        return shutil.which(str(Path(cwd, name)), mode)
    return shutil.which(name, mode, path=_folders(cwd, env))


def _check_file(path: str) -> None:
    """A pipe that may be executed is no program, and to open it is to wait for ever."""
    if not Path(path).is_file():
        raise AgentUnavailableError(f"program {path} is not a regular file", program=path)


def _not_found(name: str, cwd: str, env: Mapping[str, str]) -> AgentUnavailableError:
    unusable = _search(name, cwd, env, os.F_OK)
    if unusable is not None:
        return AgentUnavailableError(
            f"program {unusable} is not executable; run `chmod +x {unusable}`", program=unusable
        )
    if "/" in name:
        full = str(Path(cwd, name))
        return AgentUnavailableError(f"program {full} does not exist", program=full)
    searched = env.get("PATH", os.defpath)
    return AgentUnavailableError(
        f"program {name!r} was not found in PATH {searched}; {_CURE}", program=name, path=searched
    )


def _check_interpreter(path: str, cwd: str, env: Mapping[str, str]) -> None:
    """A script whose `#!` line leads nowhere fails in ways that blame the script."""
    words = _shebang(path)
    if not words:
        return
    interpreter = words[0]
    if not os.access(interpreter, os.X_OK):
        raise _interpreter_missing(path, interpreter, "it is named in its first line")
    if Path(interpreter).name != "env":
        return
    wanted = _word_for_env(words[1:])
    if wanted and _search(wanted, cwd, env, os.F_OK | os.X_OK) is None:
        searched = env.get("PATH", os.defpath)
        raise _interpreter_missing(path, wanted, f"PATH searched: {searched}; {_CURE}")


def _shebang(path: str) -> list[str]:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - a path that is text all along
            line = file.readline(256)
    except OSError:
        return []
    return os.fsdecode(line[2:]).split() if line.startswith(b"#!") else []


def _word_for_env(words: list[str]) -> str | None:
    """What `env` would run: the first word that is neither an option nor an assignment."""
    return next((word for word in words if not word.startswith("-") and "=" not in word), None)


def _interpreter_missing(path: str, interpreter: str, why: str) -> AgentUnavailableError:
    return AgentUnavailableError(
        f"program {path} needs the interpreter {interpreter!r}, which was not found ({why})",
        program=path,
        interpreter=interpreter,
    )
