"""transformers is silent while a node works with it, and as before afterwards."""

import pytest
from transformers.utils import logging

from kvfence.engine.quiet import quiet_transformers


@pytest.fixture
def settings():
    """Its settings as a pair; what a test changes is put back."""

    def read():
        return logging.get_verbosity(), logging.is_progress_bar_enabled()

    verbosity, has_bars = read()
    yield read
    logging.set_verbosity(verbosity)
    (logging.enable_progress_bar if has_bars else logging.disable_progress_bar)()


@pytest.mark.parametrize("has_bars", [True, False])
def test_both_settings_come_back(settings, has_bars):
    logging.set_verbosity_info()
    (logging.enable_progress_bar if has_bars else logging.disable_progress_bar)()
    before = settings()
    with quiet_transformers():
        assert settings() == (logging.ERROR, False)
    assert settings() == before


def test_they_come_back_after_an_error_too(settings):
    logging.set_verbosity_info()
    before = settings()
    with pytest.raises(LookupError), quiet_transformers():
        raise LookupError
    assert settings() == before
