"""Write the hashed, pinned requirements files from the lists in pyproject.toml (`make lock`).

The files name packages, versions and hashes, never an index, a host or a folder: where packages
come from is the business of whoever installs them.
"""

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
HEADER = "# {what}\n# Made by `make lock` from pyproject.toml; do not edit.\n"


def main() -> None:
    """Lock what it takes to run a checkout, then everything a developer needs on top of it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project["dependency-groups"]
    core = list(project["project"]["dependencies"])
    run = core + list(group_members(groups, "build"))
    dev = run + list(group_members(groups, "dev"))
    upgrade = "--upgrade" in sys.argv[1:]
    lock("core.txt", "What the daemon imports.", core, upgrade=upgrade)
    lock(
        "run.txt",
        "The same, and what installs a checkout.",
        run + pins("core.txt"),
        upgrade=upgrade,
    )
    lock("dev.txt", "The same, and tests and checks.", dev + pins("run.txt"), upgrade=upgrade)


def pins(name: str) -> list[str]:
    """The exact versions that a finished lock names."""
    lines = (REQUIREMENTS / name).read_text(encoding="utf-8").splitlines()
    return [line.removesuffix(" \\") for line in lines if line[:1].isalnum()]


def group_members(groups: dict[str, list[str | dict[str, str]]], name: str) -> Iterator[str]:
    """The requirements of a dependency group, those of included groups among them."""
    for member in groups[name]:
        if isinstance(member, str):
            yield member
        else:
            yield from group_members(groups, member["include-group"])


def lock(name: str, what: str, wanted: list[str], *, upgrade: bool) -> None:
    """Resolve `wanted` with pip-compile and write the tidied result to requirements/`name`."""
    target = REQUIREMENTS / name
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "wanted.in")
        source.write_text("\n".join(wanted) + "\n", encoding="utf-8")
        output = Path(folder, name)
        if target.exists() and not upgrade:
            output.write_text(target.read_text(encoding="utf-8"), encoding="utf-8")
        subprocess.run(
            [
                *(sys.executable, "-m", "piptools", "compile", "--quiet", "--generate-hashes"),
                *("--strip-extras", "--no-header", "--no-annotate", "--allow-unsafe"),
                *("--no-emit-options", "--no-emit-index-url", "--no-emit-find-links"),
                *("--no-emit-trusted-host", "--output-file", str(output), str(source)),
            ],
            check=True,
        )
        locked = output.read_text(encoding="utf-8")
    kept = [
        line for line in locked.splitlines() if line.strip() and not line.startswith(("#", "-"))
    ]
    target.write_text(HEADER.format(what=what) + "\n".join(kept) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
