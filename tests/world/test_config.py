"""The three cores of a world agree about its pages."""

from kvfence.world import WorldConfig, world_config


def test_cores_agree_about_the_page_size():
    config = world_config(context_tokens=40, batch_pages=3, base=WorldConfig(page_tokens=4, decodes=2))
    sizes = {config.router.page_tokens, config.prefill.page_tokens, config.decode.page_tokens}
    assert sizes == {4} and config.prefill.batch_pages == 3 and config.router.context_tokens == 40
    assert config.decodes == 2
