"""URLs of S3: the options that pyarrow read, as arguments of s3fs."""

from typing import Any

import pytest

from ambermq.tools.dataset.s3_url import s3_location, shown_url
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

_PART = {"default_block_size": 10 << 20}


@pytest.mark.parametrize(
    ("url", "plain", "expected"),
    [
        ("s3://b/p", "s3://b/p", {}),
        ("s3://b", "s3://b", {}),
        ("s3://k:s%2F@b/a%20b", "s3://b/a b", {"key": "k", "secret": "s/"}),
        ("s3://b/p?region=eu-central-1", "s3://b/p", {"client_kwargs": {"region_name": "eu-central-1"}}),
        ("s3://b/p?region=us-east-1", "s3://b/p", {"config_kwargs": {"region_name": "us-east-1"}}),
        ("s3://b/p?endpoint_override=h:9", "s3://b/p", {"endpoint_url": "https://h:9"}),
        ("s3://b/p?scheme=http&endpoint_override=h:9", "s3://b/p", {"endpoint_url": "http://h:9"}),
        ("s3://b/p?endpoint_override=http%3A%2F%2Fh", "s3://b/p", {"endpoint_url": "http://h"}),
        ("s3://b/p?tls_verify_certificates=false", "s3://b/p", {"client_kwargs": {"verify": False}}),
        ("s3://b/p?tls_ca_file_path=/ca.pem", "s3://b/p", {"client_kwargs": {"verify": "/ca.pem"}}),
        ("s3a://b/p?allow_delayed_open=true&smart_defaults=standard", "s3a://b/p", {}),
    ],
)
def test_options_are_arguments(url: str, plain: str, expected: dict[str, Any]) -> None:
    """Each option that has an effect, decoded."""
    assert s3_location(url) == (plain, expected | _PART, False)


def test_a_bucket_is_made_on_request() -> None:
    """Else s3fs would make the bucket of a mistyped URL."""
    assert s3_location("s3://b/p?allow_bucket_creation=true").makes_directories


def test_an_unknown_option_is_one_message() -> None:
    """With what is known, and without the secret."""
    with pytest.raises(ToolError, match=r"s3://k@b/p\?regoin=x: unknown option 'regoin'.*one of region, ") as caught:
        s3_location("s3://k:secret@b/p?regoin=x")
    assert caught.value.exit_code == ExitCode.USAGE
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("s3://k:s@b/p?x", "s3://k@b/p?x"),
        ("s3://k:s/t@b/p?x", "s3://k@b/p?x"),
        ("s3://b/p@q:r", "s3://b/p@q:r"),
        ("/a:b@c", "/a:b@c"),
    ],
)
def test_a_shown_url_has_no_password(url: str, expected: str) -> None:
    """Paths stay as they are."""
    assert shown_url(url) == expected
