"""The HTML report in a real browser: its own policy lets its style sheet in, and nothing else."""

import shutil
import subprocess

import pytest

from kvfence.report.html import html_report
from tests.report.samples import LEAKING

BROWSER = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="there is no chromium here: install Debian's"),
]


def complaints(report: str, folder) -> list[str]:
    """What a browser's console says of the page."""
    page = folder / "report.html"
    page.write_text(report, encoding="utf-8")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    command += [f"--user-data-dir={folder / 'profile'}", "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "What this report does not show" in done.stdout, "the page was loaded"
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_a_report_shows_itself_without_complaint(tmp_path):
    assert complaints(html_report(LEAKING), tmp_path) == []


@pytest.mark.parametrize(
    "more", ["<style>p { color: red }</style>", "<script>1</script>", '<img src="x.png">']
)
def test_what_somebody_put_into_it_is_not_carried_out(more, tmp_path):
    report = html_report(LEAKING).replace("</body>", f"{more}</body>")
    assert any("Content Security Policy" in line for line in complaints(report, tmp_path))
