"""URLs of S3, as arguments of s3fs. Pure.

    s3://[KEY:SECRET@]BUCKET/PATH[?OPTION=VALUE&...]

    region                      region of the bucket
    endpoint_override, scheme   HOST:PORT of a server that speaks S3, and http or https (the default)
    tls_verify_certificates     false: certificates are not checked
    tls_ca_file_path            file of the certificates that are trusted; so does tls_ca_dir_path
    allow_bucket_creation       true: a missing bucket is made
    allow_bucket_deletion, allow_delayed_open, smart_defaults: accepted, and without effect

Rule 1. The options are those that pyarrow's file systems read, so URLs from before s3fs keep their meaning.
Rule 2. An unknown option is an error. Without KEY and SECRET the environment and the files of AWS say them.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote

from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["S3_SCHEMES", "S3Location", "s3_location", "shown_url"]

S3_SCHEMES: Final = ("s3://", "s3a://")
_OPTIONS: Final = (
    "region",
    "endpoint_override",
    "scheme",
    "tls_verify_certificates",
    "tls_ca_file_path",
    "tls_ca_dir_path",
    "allow_bucket_creation",
    "allow_bucket_deletion",
    "allow_delayed_open",
    "smart_defaults",
)
_HOME_REGION: Final = "us-east-1"
_PART_BYTES: Final = 10 << 20
"""What a file that is written holds back in memory, and a part of an upload: s3fs takes 50 MiB for each open file."""


class S3Location(NamedTuple):
    """A URL, read."""

    url: str
    """Without key, secret and options."""
    arguments: Mapping[str, Any]
    """Of S3FileSystem."""
    makes_directories: bool
    """Whether a missing bucket is made."""


def s3_location(url: str) -> S3Location:
    """Return what a URL of S3 says; ToolError with exit code 2 if an option is unknown."""
    rest, _, query = url.partition("?")
    scheme, _, rest = rest.partition("://")
    authority, slash, path = rest.partition("/")
    credentials, _, bucket = authority.rpartition("@")
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name in options:
        if name not in _OPTIONS:
            raise ToolError(
                f"unknown option {name!r} of a URL of S3",
                where=shown_url(url),
                expected=f"one of {', '.join(_OPTIONS)}",
                code=ExitCode.USAGE,
            )
    arguments = {**_credentials(credentials), **_endpoint(options), "default_block_size": _PART_BYTES}
    return S3Location(
        f"{scheme}://{bucket}{slash}{unquote(path)}", arguments, options.get("allow_bucket_creation") == "true"
    )


def shown_url(url: str) -> str:
    """Return a URL for a message, without the password in it."""
    scheme, separator, rest = url.partition("://")
    # A secret of AWS may have slashes, which belong encoded into a URL, and are often not.
    credentials, at, place = rest.rpartition("@")
    return f"{scheme}{separator}{credentials.partition(':')[0]}{at}{place}" if separator else url


def _credentials(text: str) -> dict[str, str]:
    key, _, secret = text.partition(":")
    return {"key": unquote(key), "secret": unquote(secret)} if text else {}


def _endpoint(options: Mapping[str, str]) -> dict[str, Any]:
    client: dict[str, Any] = {}
    arguments: dict[str, Any] = {}
    if options.get("region") == _HOME_REGION:
        # As an argument of the client it would also be the location of a new bucket, which S3 refuses for this region.
        arguments["config_kwargs"] = {"region_name": _HOME_REGION}
    elif "region" in options:
        client["region_name"] = options["region"]
    if options.get("tls_verify_certificates") == "false":
        client["verify"] = False
    elif trusted := options.get("tls_ca_file_path") or options.get("tls_ca_dir_path"):
        client["verify"] = trusted
    if client:
        arguments["client_kwargs"] = client
    if endpoint := options.get("endpoint_override"):
        is_whole = "://" in endpoint
        arguments["endpoint_url"] = endpoint if is_whole else f"{options.get('scheme', 'https')}://{endpoint}"
    return arguments
