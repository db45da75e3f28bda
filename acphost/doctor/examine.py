"""All that the doctor looks at, in the order in which one thing rests on the other."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from acphost.doctor.agents import look_at_agents
from acphost.doctor.daemon import look_at_daemon
from acphost.doctor.finding import Diagnosis, Patient, problem
from acphost.doctor.keeper import look_at_service
from acphost.doctor.machine import look_at_machine
from acphost.doctor.places import look_at_places
from acphost.doctor.trial import try_out
from acphost.errors import ConfigError
from acphost.service.choice import manager_of
from acphost.settings.load import config_place, load_sound_settings
from acphost.transport.paths import default_socket_path, default_state_dir


async def examine(
    flags: Mapping[str, object], environ: Mapping[str, str], program: list[str], *, trial: bool
) -> AsyncIterator[Diagnosis]:
    """Every finding as it is made; with `trial` the main job is tried out at the end."""
    try:
        patient = _patient(flags, environ)
    except ConfigError as exc:
        yield problem("config", str(exc), "name another with --config, or mend it")
        return
    for each in (*look_at_places(patient), *look_at_machine(patient)):
        yield each
    manager = manager_of(environ)
    async for each in look_at_daemon(patient):
        yield each
    async for each in look_at_service(patient, manager, program):
        yield each
    for each in look_at_agents(patient, manager.captured_path()):
        yield each
    if trial:
        for each in await try_out():
            yield each


def _patient(flags: Mapping[str, object], environ: Mapping[str, str]) -> Patient:
    loaded = load_sound_settings(flags=flags, environ=environ)
    settings = loaded.settings
    return Patient(
        flags=flags,
        environ=environ,
        loaded=loaded,
        config=config_place(flags, environ),
        state_dir=Path(settings.state_dir or default_state_dir(environ)),
        socket=Path(settings.socket or default_socket_path(environ)),
    )
