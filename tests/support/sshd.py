"""A real sshd on loopback, with keys, port and configuration of its own, for this user only."""

import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

_SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
_PATIENCE = 20.0


def why_not() -> str | None:
    """Why no sshd can be had on this machine; None if it can."""
    for program in (_SSHD, "ssh", "ssh-keygen"):
        if shutil.which(program) is None:
            return f"no sshd on loopback here: {program} is not there (Debian: openssh-server)"
    return None


class Sshd:
    """Where it listens, and how ssh is told of it."""

    def __init__(self, folder: Path, port: int, log: Path) -> None:
        self.host = "box"
        self.port = port
        self.config = folder / "ssh_config"
        self._log = log
        self.config.write_text(
            f"Host {self.host}\n HostName 127.0.0.1\n Port {port}\n User {getpass.getuser()}\n"
            f" IdentityFile {folder}/user\n IdentitiesOnly yes\n"
            f" UserKnownHostsFile {folder}/known\n StrictHostKeyChecking yes\n"
        )

    @property
    def command(self) -> str:
        """As $ACPHOST_SSH has it."""
        return f"ssh -F {self.config}"

    def log(self) -> str:
        """What it has printed."""
        return self._log.read_text(errors="replace")


@contextmanager
def sshd(folder: Path, environ: Mapping[str, str]) -> Generator[Sshd]:
    """A server whose sessions have these variables; it and they are gone after the block."""
    for name in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True)
    port = _free_port()
    shutil.copy(folder / "user.pub", folder / "authorized")
    known = (folder / "host.pub").read_text()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {known}")
    pairs = " ".join(f'"{name}={value}"' for name, value in environ.items())
    config = folder / "sshd_config"
    config.write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nPasswordAuthentication no\n"
        f"PermitRootLogin prohibit-password\nSetEnv {pairs}\n"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # it insists on it where it is root
    log = folder / "sshd.log"
    with log.open("wb") as output:
        process = subprocess.Popen([_SSHD, "-D", "-e", "-f", str(config)], stderr=output)
    try:
        server = Sshd(folder, port, log)
        _await(port, process, server)
        yield server
    finally:
        process.terminate()
        process.wait()


def remote_environ(runtime: Path) -> dict[str, str]:
    """What a session needs to find the program that is under test."""
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "XDG_RUNTIME_DIR": str(runtime),
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await(port: int, process: subprocess.Popen[bytes], server: Sshd) -> None:
    end = time.monotonic() + _PATIENCE
    while True:
        assert process.poll() is None, server.log()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < end, server.log()
        time.sleep(0.02)
