"""Real agents, a fake model, a real daemon: nothing here leaves the machine."""

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.real.agents import AGENTS, HERMES, REASONIX, RealAgent
from tests.support.model import ModelServer

#: A continuous integration that has to run these tests sets it: then nothing is skipped.
REQUIRED = "ACPHOST_REQUIRE_REAL"


@pytest.fixture
def model() -> Generator[ModelServer]:
    """The model that the agents talk to."""
    with ModelServer() as server:
        yield server


@pytest.fixture(params=AGENTS, ids=str)
def agent(request: pytest.FixtureRequest) -> RealAgent:
    """Each real agent in turn."""
    chosen: RealAgent = request.param
    require(chosen)
    return chosen


@pytest.fixture
def hermes() -> RealAgent:
    """For what only Hermes does."""
    require(HERMES)
    return HERMES


@pytest.fixture
def reasonix() -> RealAgent:
    """For what only Reasonix does."""
    require(REASONIX)
    return REASONIX


def require(agent: RealAgent) -> None:
    """Skip the test with a line that says so where the agent is not installed."""
    if agent.missing is None:
        return
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(agent.missing, pytrace=False)
    pytest.skip(agent.missing)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder are marked `real`, and outlive the limit of a whole test in it."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.real)
            item.add_marker(pytest.mark.timeout(150))
