"""Deployments for the tests of this folder: short run-time directories, and their logs when a test fails."""

import pytest

from tests.e2e.deployment import Deployment

_STARTED = pytest.StashKey[list[Deployment]]()


@pytest.fixture(scope="module")
def launch(request, tmp_path_factory):
    """Start a deployment; without `run_home`, in a run-time directory of its own. It ends with the module."""
    request.config.stash[_STARTED] = started = []

    def start(*flags, run_home=None):
        # The name is short: sockets live in there, and a socket's address has room for 108 bytes.
        deployment = Deployment(run_home or tmp_path_factory.mktemp("k"), *flags)
        started.append(deployment)
        return deployment

    yield start
    for deployment in started:
        deployment.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        for deployment in item.config.stash.get(_STARTED, []):
            if deployment.process.poll() is None:
                report.sections.append(("deployment", deployment.logs()))
    return report
