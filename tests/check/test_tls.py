"""Whom a tenant trusts, and how it shows itself: files that do, and files that do not."""

import ssl

import pytest
import trustme

from kvfence.check.credentials import Secret
from kvfence.check.tls import ClientCertificate, context_of
from kvfence.protocol.errors import OperatorError


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A private authority and a client's certificate, with and without its key."""
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    own = authority.issue_cert("client@example.org")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    own.private_key_and_cert_chain_pem.write_to_path(folder / "both.pem")
    own.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    own.private_key_pem.write_to_path(folder / "key.pem")
    (folder / "rubbish.pem").write_text("no certificate")
    return folder


def test_the_usual_authorities_are_trusted_by_default():
    context = context_of(None, None)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert len(context.get_ca_certs()) > 20


def test_a_private_authority_is_the_only_one(files):
    context = context_of(files / "ca.pem", None)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert len(context.get_ca_certs()) == 1


@pytest.mark.parametrize(("certificate", "key"), [("both.pem", None), ("cert.pem", "key.pem")])
def test_a_client_certificate_is_taken(files, certificate, key):
    own = ClientCertificate(certificate=files / certificate, key=None if key is None else files / key)
    assert isinstance(context_of(None, own), ssl.SSLContext)


@pytest.mark.parametrize(
    ("authority", "certificate", "said"),
    [
        ("absent.pem", None, "the authority .*absent.pem cannot be used \\(No such file"),
        ("rubbish.pem", None, "in PEM format"),
        (None, "absent.pem", "client certificate .*absent.pem cannot be used \\(No such file"),
        (None, "cert.pem", "cannot be used"),
        (None, "rubbish.pem", "cannot be used"),
    ],
)
def test_files_that_do_not_do_are_named(files, authority, certificate, said):
    own = None if certificate is None else ClientCertificate(certificate=files / certificate)
    with pytest.raises(OperatorError, match=said):
        context_of(None if authority is None else files / authority, own)


def test_the_words_that_open_a_key_are_not_shown(files):
    own = ClientCertificate(certificate=files / "both.pem", password=Secret("open sesame"))
    assert "sesame" not in repr(own)
