"""`acphost restore`: a backup in the place of the store, which is kept aside."""

import re
from datetime import UTC, datetime
from pathlib import Path

import anyio

from acphost.cli.exits import CommandError, Exit
from acphost.cli.fsck import examine, show
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.places import STORE_NAME, state_dir_of
from acphost.cli.progress import working
from acphost.cli.screen import out
from acphost.daemon.backups import secrets_folder
from acphost.errors import ConflictError
from acphost.ids import epoch_ms
from acphost.journal.backup import Restored, replace_store
from acphost.session.vault import Vault
from acphost.transport.lock import StateLock

_SECRET = re.compile(r"\w+\.json", re.ASCII).fullmatch


def run(options: Options) -> int:
    """Run the command; a daemon that holds the lock is not disturbed (exit code 3)."""
    backup = Path(options.file).absolute()
    state_dir = state_dir_of(options)
    lock = StateLock.acquire(state_dir)
    try:
        restored = _restore(backup, state_dir, force=options.force)
    finally:
        lock.release()
    if options.json:
        print_json(
            {
                "path": str(state_dir / STORE_NAME),
                "storeId": restored.store_id,
                "aside": None if restored.aside is None else str(restored.aside),
                "secrets": len(restored.secrets),
            }
        )
        return Exit.OK
    pen = out()
    pen.line(f"{backup} is the store of {state_dir} now; start the daemon with `acphost serve`")
    if restored.aside is not None:
        pen.line(f"the store before it is {restored.aside}; `acphost restore` takes that back too")
    return Exit.OK


def _restore(backup: Path, state_dir: Path, *, force: bool) -> Restored:
    store = state_dir / STORE_NAME
    if store.exists() and backup.exists() and backup.samefile(store):
        raise ConflictError(f"{backup} is the store itself")
    report = examine(backup, here=False)
    if not report.is_clean and not force:
        show(report)
        raise CommandError(
            "nothing was changed: the check of the backup found something; --force restores it"
            " in spite of that"
        )
    with working("restoring", str(backup)):
        restored = replace_store(backup, store, at=epoch_ms(), aside=_dated(store))
    anyio.run(_keep_secrets, Vault(secrets_folder(store)), restored.secrets)
    return restored


async def _keep_secrets(vault: Vault, secrets: dict[str, bytes]) -> None:
    for name, content in secrets.items():
        # A backup may come from anywhere: its names lead to nowhere else.
        if _SECRET(name):
            await vault.keep(name.removesuffix(".json"), content)


def _dated(store: Path) -> Path:
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    name, number = f"{store.stem}-{moment}", 1
    while (found := store.with_name(f"{name}{store.suffix}")).exists():
        number += 1
        name = f"{store.stem}-{moment}-{number}"
    return found
