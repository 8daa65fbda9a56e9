"""What a client of the small world saw, as raw values."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from contracts.artifacts import LABEL, USER
from contracts.features.feature_spec import FIRST_ID, PADDING
from tests.federated import small_world


def raw_events(out, user):
    """Field -> values of a user's training rows in the order of the log, and their labels."""
    table = pq.read_table(out.examples("train"))
    table = table.filter(pc.equal(table.column(USER), user))

    def keys(name):
        return [small_world.key(name, each - FIRST_ID) for each in table.column(name).to_pylist()]

    histories = [[small_world.key("item", each - FIRST_ID) for each in row if each != PADDING]
                 for row in table.column("history").to_pylist()]
    events = {"city": keys("city"), "item": keys("item"), "genre": keys("genre"), "history": histories,
              "price": np.array(table.column("price").to_pylist())}
    return events, table.column(LABEL).to_pylist()
