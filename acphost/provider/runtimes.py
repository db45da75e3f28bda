"""From the word `runtime` to the traits it means: a new kind of agent is one file of traits."""

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType

from acphost.log import get_logger
from acphost.provider import agents
from acphost.provider.traits import Traits, UnusableTraits
from acphost.settings.runtimes import PLAIN, runtime_file

log = get_logger()

_PLAIN = Traits()
#: Judgements that may say nothing.
_MAY_BE_NONE = frozenset({"cancel_cure", "usage_of", "meant_call", "tool_name", "hazard_of"})


def traits_of(runtime: str, folder: str) -> Traits:
    """The traits of a runtime, `folder` being that of the configuration, as they are written now.

    A file that cannot be used, or is gone, gives traits that say so and cannot be started.
    """
    if runtime == PLAIN:
        return _PLAIN
    file = runtime_file(runtime, folder)
    if file is None:
        return UnusableTraits(f"there is no runtime {runtime!r} any more")
    is_shipped = str(file.parent) in agents.__path__
    written = 0 if is_shipped else file.stat().st_mtime_ns
    return _traits_in(file, written, is_shipped=is_shipped)


@lru_cache(maxsize=64)
def _traits_in(file: Path, written: int, *, is_shipped: bool) -> Traits:
    """The traits of a file that was `written` then."""
    try:
        name = f"{agents.__name__}.{file.stem}"
        module = import_module(name) if is_shipped else _module_at(file)
        found = _only_traits(module)
        return found() if is_shipped else guarded(found)()
    except (Exception, SystemExit) as exc:  # border: what somebody else has written
        return UnusableTraits(f"{file} cannot be used: {type(exc).__name__}: {exc}")


def guarded(kind: type[Traits]) -> type[Traits]:
    """Traits whose mistakes do no harm: they are told, and the protocol's own judgement counts."""
    judgements = [
        name for name, member in vars(Traits).items()
        if isinstance(member, FunctionType) and not name.startswith("_")
    ]  # fmt: skip
    return type(kind.__name__, (kind,), {name: _careful(kind, name) for name in judgements})


def _careful(kind: type[Traits], name: str) -> Callable[..., object]:
    own, plain = getattr(kind, name), getattr(Traits, name)

    def judge(self: Traits, *given: object, **named: object) -> object:
        try:
            result = own(self, *given, **named)
            if result is not None or name in _MAY_BE_NONE:
                return result
            problem = "it returned None"
        except Exception as exc:  # border: what somebody else has written
            problem = f"{type(exc).__name__}: {exc}"
        log.error("traits_failed", traits=kind.__name__, judgement=name, problem=problem)
        return plain(self, *given, **named)

    return judge


def _module_at(file: Path) -> ModuleType:
    """A file outside of any package as a module; leaves no bytecode beside the configuration."""
    module = ModuleType(f"acphost_runtimes.{file.stem}")
    module.__file__ = str(file)
    # Annotations of classes are looked up there.
    sys.modules[module.__name__] = module
    code = compile(file.read_bytes(), file, "exec")
    exec(code, module.__dict__)  # noqa: S102  (as trusted as the commands configured beside it)
    return module


def _only_traits(module: ModuleType) -> type[Traits]:
    found = [
        each
        for name, each in vars(module).items()
        if isinstance(each, type) and issubclass(each, Traits)
        and each.__module__ == module.__name__ and not name.startswith("_")
    ]  # fmt: skip
    if len(found) != 1:
        names = ", ".join(each.__name__ for each in found) or "none"
        raise TypeError(f"expected one class of Traits, found {names}")
    return found[0]
