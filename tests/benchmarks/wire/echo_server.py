"""A server of gRPC itself that says back what it hears."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc

METHOD = "/t.Echo/Say"


class Echo(grpc.GenericRpcHandler):
    """Says back what it hears; `refuse`, `vanish` and `sleep` are heard as orders."""

    def __init__(self) -> None:
        self.left = threading.Event()
        self.deadline = 0.0

    def service(self, call_details):
        return grpc.unary_unary_rpc_method_handler(self.say) if call_details.method == METHOD else None

    def say(self, heard, context):
        self.deadline = context.time_remaining()
        if heard == b"refuse":
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "full")
        if heard == b"sleep":
            context.add_callback(self.left.set)
            self.left.wait(10)
        return heard


@contextmanager
def echo(*options):
    server, handler = grpc.server(ThreadPoolExecutor(4), options=options), Echo()
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield handler, port
    finally:
        server.stop(None)
