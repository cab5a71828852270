"""The real client on a fake server, in virtual time: what most tests of the probe work with."""

from tests.check.fake.server import FakeServer
from tests.check.fake.setup import Setup
from tests.check.fake.transport import FakeTransport

from kvfence.check.client import HttpClient
from kvfence.check.credentials import Key, Redactor, Secret
from kvfence.check.target import Target, Tenant, address_of


def fake_target(*names, url="http://fake", **settings):
    """A target at the fake's address; tenants are named by their keys."""
    tenants = tuple(Tenant(name=name, credential=Key(Secret(f"key-{name}"))) for name in names or ("a",))
    return Target(name="fake", address=address_of(url), tenants=tenants, **settings)


def client_to(server, target, *, redactor=None):
    """The client of a target, with a fake (or any ASGI application) in the network's place."""
    app = server.app if isinstance(server, FakeServer) else server
    return HttpClient(target, run="run-1", redactor=redactor or Redactor(), transport=FakeTransport(app))


def fake_client(*names, target=None, server=None, **setup):
    """A client, and the fake behind it."""
    server = server or FakeServer(Setup(**setup))
    return client_to(server, target or fake_target(*names)), server
