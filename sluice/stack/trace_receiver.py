"""Takes traces by OTLP over HTTP, as a collector does, and remembers the names of the spans by trace."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType


class TraceReceiver:
    """`with TraceReceiver() as receiver: ... receiver.address ... receiver.spans(trace_id)`."""

    def __init__(self) -> None:
        self._spans: dict[str, set[str]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> TraceReceiver:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def address(self) -> str:
        """What OTEL_EXPORTER_OTLP_ENDPOINT is to be."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def spans(self, trace: str) -> set[str]:
        """Names of the spans that have come of a trace, given as 32 hexadecimal digits."""
        return self._spans.get(trace, set())

    def _take(self, body: bytes) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self._spans.setdefault(span.trace_id.hex(), set()).add(span.name)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        take = self._take

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    import gzip

                    body = gzip.decompress(body)
                take(body)
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """It has nothing to say."""

        return Handler
