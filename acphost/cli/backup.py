"""`acphost backup`: the store in one file, by the daemon if one runs."""

from pathlib import Path

import anyio

from acphost.cli.daemon import reach
from acphost.cli.exits import CommandError, Exit
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.places import STORE_NAME, size, state_dir_of
from acphost.cli.progress import working
from acphost.cli.screen import out
from acphost.daemon.backups import read_secrets, secrets_folder
from acphost.errors import ConnectionLostError, DaemonUnreachableError, StoreRefusedError
from acphost.journal.audit import audit
from acphost.journal.backup import back_up
from acphost.transport.lock import lock_holder
from acphost.wire.daemon import BackupDone


def run(options: Options) -> int:
    """Run the command."""
    target = Path(options.file).absolute()
    state_dir = state_dir_of(options)
    store = state_dir / STORE_NAME
    if not store.exists():
        raise CommandError(f"there is no store at {store}", StoreRefusedError.exit_code)
    done = None
    if lock_holder(state_dir) is not None:
        with working("copying", "the store"):
            done = anyio.run(_by_daemon, options, target, store)
    done = done or _by_hand(options, target, store)
    if options.json:
        print_json(done)
    else:
        secrets = f", {done.secrets} secrets" if options.with_secrets else ", no secrets"
        seconds = done.duration_ms / 1000
        pen = out()
        pen.line(f"{pen.safe(done.path)}: {size(done.bytes)} in {seconds:.2f} s{secrets}")
    return Exit.OK


async def _by_daemon(options: Options, target: Path, store: Path) -> BackupDone | None:
    """Have it made by the daemon; None if none answers, or one that serves another store."""
    try:
        async with reach(options) as client:
            with audit(store) as here:
                if here.meta().get("storeId") != client.store_id:
                    return None
            return await client.backup(
                str(target), force=options.force, with_secrets=options.with_secrets
            )
    except (DaemonUnreachableError, ConnectionLostError):
        return None


def _by_hand(options: Options, target: Path, store: Path) -> BackupDone:
    secrets = read_secrets(secrets_folder(store)) if options.with_secrets else None
    with working("copying", "the store"):
        copied = back_up(store, target, force=options.force, secrets=secrets)
    return BackupDone(
        path=str(target),
        bytes=copied.bytes,
        duration_ms=copied.milliseconds,
        secrets=copied.secrets,
    )
