"""The units of a systemd user manager, from the templates that ship with acphost."""

from collections.abc import Mapping
from pathlib import Path

from acphost.service.plan import Plan
from acphost.settings.places import shipped_folder

SERVICE, SOCKET = "acphost.service", "acphost.socket"
#: The runtime folder of the user manager, where the socket is unless somebody wants it elsewhere.
_USUAL_SOCKET = "%t/acphost/acphost.sock"


def units(plan: Plan) -> dict[str, str]:
    """File names and contents."""
    folder = shipped_folder() / "systemd"
    values = {
        "EXEC": " ".join([_literal(plan.argv[0]), *map(word, plan.argv[1:])]),
        "ENVIRONMENT": "\n".join(
            f"Environment={assignment(name, value)}" for name, value in plan.environment.items()
        ),
        "ENV_FILE": _percent(str(plan.env_file)),
        "SOCKET": _USUAL_SOCKET if plan.is_usual_socket else _percent(str(plan.socket)),
    }
    return {name: filled((folder / name).read_text(), values) for name in (SERVICE, SOCKET)}


def filled(template: str, values: Mapping[str, str]) -> str:
    """The template with each @NAME@ replaced."""
    for name, value in values.items():
        template = template.replace(f"@{name}@", value)
    return template


def unit_folder(environ: Mapping[str, str]) -> Path:
    """Where a user's own units are."""
    configured = environ.get("XDG_CONFIG_HOME", "")
    home = Path(configured) if configured.startswith("/") else Path.home() / ".config"
    return home / "systemd" / "user"


def word(text: str) -> str:
    """One word of a command: systemd.service(5) knows quotes, % and, unlike elsewhere, $."""
    return _literal(text).replace("$", "$$")


def assignment(name: str, value: str) -> str:
    """One variable of `Environment=`, in which $ is a plain character."""
    return _literal(f"{name}={value}")


def assigned(unit: str, name: str) -> str | None:
    """What a unit of ours gives a variable: the reverse of `assignment`."""
    for line in unit.splitlines():
        begin = f'Environment="{name}='
        if line.startswith(begin) and line.endswith('"'):
            text = line.removeprefix(begin).removesuffix('"').replace("%%", "%")
            return text.replace('\\"', '"').replace("\\\\", "\\")
    return None


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return _percent(f'"{escaped}"')


def _percent(text: str) -> str:
    return text.replace("%", "%%")
