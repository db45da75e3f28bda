"""What is at its default is not sent."""

from acphost.client.params import lean
from acphost.wire.params import InitializeParams, RunCreateParams, Scope, SubscribeParams


def test_members_at_their_default_are_left_out() -> None:
    given = RunCreateParams(request_id="r", session_id="s", text="hi")
    assert lean(given) == {"requestId": "r", "sessionId": "s", "text": "hi"}


def test_inner_structs_are_lean_too() -> None:
    given = SubscribeParams(scope=Scope(all=True), after="now")
    assert lean(given) == {"scope": {"all": True}, "after": "now"}


def test_a_zero_that_is_not_the_default_is_sent() -> None:
    given = SubscribeParams(scope=Scope(session_id="s"), after_seq=0)
    assert lean(given) == {"scope": {"sessionId": "s"}, "afterSeq": 0}


def test_no_params_are_an_empty_object() -> None:
    assert lean(None) == {}
    assert lean(InitializeParams()) == {}


def test_a_dict_is_sent_as_it_is() -> None:
    assert lean({"a": None}) == {"a": None}
