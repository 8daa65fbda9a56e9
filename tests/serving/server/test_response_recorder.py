from __future__ import annotations

from serving.proto import sluice_pb2 as pb
from serving.server.response_recorder import context_as_text
from serving.server.translation import to_value


def test_context_is_text_that_casts_back():
    request = pb.RankRequest(context={
        "device": pb.Value(text="phone"), "hour": pb.Value(integer=7), "price": pb.Value(number=0.1),
        "new": pb.Value(flag=True), "empty": pb.Value(), "moods": to_value(("calm", "late")),
    })
    assert context_as_text(request.context) == {
        "device": "phone", "hour": "7", "price": "0.1", "new": "true", "moods": '["calm", "late"]'}
