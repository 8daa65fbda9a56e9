"""A folder as an object store: the three calls of Amazon's S3 that readers make, over HTTP on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlparse
from xml.sax.saxutils import escape

LISTED = "<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;x&quot;</ETag>"


@contextmanager
def object_store(root: Path) -> Iterator[str]:
    """The endpoint; a folder of `root` is a bucket, a file below it an object."""

    class Requests(_Requests):
        folder = root

    with ThreadingHTTPServer(("127.0.0.1", 0), Requests) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def access(endpoint: str) -> dict[str, str]:
    """The variables by which readers of S3 reach it."""
    return {
        "AWS_ENDPOINT": endpoint, "AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "none", "AWS_EC2_METADATA_DISABLED": "true",
    }


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder: Path

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        address = urlparse(self.path)
        asked = {name: values[0] for name, values in parse_qs(address.query, keep_blank_values=True).items()}
        bucket, _, key = unquote(address.path).lstrip("/").partition("/")
        if "list-type" in asked:
            found = _listing(self.folder / bucket, asked.get("prefix", ""), asked.get("delimiter", ""))
            return self._answer(200, found.encode(), {"Content-Type": "application/xml"})
        file = self.folder / bucket / key
        if not file.is_file():
            return self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>", {"Content-Type": "application/xml"})
        return self._object(file.read_bytes())

    def _object(self, content: bytes) -> None:
        headers = {"ETag": '"x"', "Last-Modified": formatdate(usegmt=True), "Accept-Ranges": "bytes"}
        wanted = self.headers.get("Range")
        if wanted is None:
            return self._answer(200, content, headers)
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start = int(first) if first else len(content) - int(last)
        end = min(int(last), len(content) - 1) if first and last else len(content) - 1
        headers["Content-Range"] = f"bytes {start}-{end}/{len(content)}"
        return self._answer(206, content[start : end + 1], headers)

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _listing(bucket: Path, prefix: str, delimiter: str) -> str:
    keys = sorted(file.relative_to(bucket).as_posix() for file in bucket.rglob("*") if file.is_file())
    inside = [key for key in keys if key.startswith(prefix)]
    cut = {key: key[len(prefix):].partition(delimiter) if delimiter else (key, "", "") for key in inside}
    folders = sorted({prefix + head + found for head, found, _ in cut.values() if found})
    objects = "".join(
        f"<Contents><Key>{escape(key)}</Key><Size>{(bucket / key).stat().st_size}</Size>{LISTED}</Contents>"
        for key, (_, found, _) in cut.items() if not found)
    below = "".join(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in folders)
    head = f"<Name>{bucket.name}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(inside)}</KeyCount>"
    whole = f"{head}<IsTruncated>false</IsTruncated>{objects}{below}"
    return f'<?xml version="1.0"?><ListBucketResult>{whole}</ListBucketResult>'
