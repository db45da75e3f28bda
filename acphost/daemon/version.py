"""Which acphost this is."""

from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version


@cache
def version() -> str:
    """The installed version; "0+unknown" when run from a tree that is not installed."""
    try:
        return installed_version("acphost")
    except PackageNotFoundError:
        return "0+unknown"
