"""Who may do what: the one place that decides (contract section 1)."""

from collections.abc import Collection
from enum import StrEnum

from acphost.errors import PermissionDeniedError


class Access(StrEnum):
    """What a method needs."""

    ANY = "any"
    ADMIN = "admin"


def role_of(actor_id: str, admins: Collection[str]) -> str:
    """Actors separate attribution, they do not protect: without a list everybody is an admin."""
    return "admin" if not admins or actor_id in admins else "user"


def authorise(role: str, method: str, access: Access) -> None:
    """Raises PermissionDeniedError if the role does not reach."""
    if access is Access.ADMIN and role != "admin":
        raise PermissionDeniedError(
            f"{method} is for admins; add your actor id to `admins` in the configuration"
        )
