"""Who may do what."""

import pytest

from acphost.errors import PermissionDeniedError
from acphost.server.access import Access, authorise, role_of


def test_without_a_list_everybody_is_an_admin() -> None:
    assert role_of("anna", []) == "admin"


def test_with_a_list_only_those_on_it() -> None:
    assert role_of("anna", ["anna"]) == "admin"
    assert role_of("bert", ["anna"]) == "user"


def test_what_needs_an_admin_is_refused_to_others() -> None:
    authorise("user", "host/ping", Access.ANY)
    authorise("admin", "host/shutdown", Access.ADMIN)
    with pytest.raises(PermissionDeniedError, match="host/shutdown"):
        authorise("user", "host/shutdown", Access.ADMIN)
