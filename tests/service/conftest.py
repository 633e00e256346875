"""What the tests of the service share: a folder of studies, and a client of the application."""

import pytest
from support.service import SPACE

pytest.importorskip("starlette")
pytest.importorskip("httpx")

from partita.service.app import create_app
from partita.service.guards import Guard
from partita.service.shelf import Shelf


@pytest.fixture
def folder(tmp_path):
    return tmp_path


@pytest.fixture
def served(folder):
    """Make a client of a service over some places."""
    from starlette.testclient import TestClient

    opened = []

    def serve(*places, guard=None, base="http://127.0.0.1:8420"):
        app = create_app(Shelf(places or [folder]), guard or Guard())
        client = TestClient(app, base_url=base, raise_server_exceptions=False)
        opened.append(client)
        return client.__enter__()

    yield serve
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def client(served):
    return served()


@pytest.fixture
def tune(client):
    """A client with a study."""
    answer = client.post("/studies", json={"name": "tune", "space": SPACE})
    assert answer.status_code == 201, answer.text
    return client
