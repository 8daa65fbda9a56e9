"""The columns that a search looks at, of a wide log: what it takes grows with the square of their number.

    I(column; label) - (values seen - 1) / (2 N)     mutual information in nats on a sample, less what chance adds to it
                                                     (Miller 1955)

Two columns that say something together alone are found among `most` columns, and missed where a wide log has more.
"""

from __future__ import annotations

import numpy as np

from contracts.features.feature_spec import FeatureSpec
from models.cross_search.columns import CrossColumns, crossable, read
from models.cross_search.crossable_pairs import entropy
from models.examples.batches import ExampleSet

ROWS = 100_000  # of the sample


def narrowed(spec: FeatureSpec, examples: ExampleSet, most: int, seed: int) -> FeatureSpec:
    """The spec without the fields that say least alone, so that at most so many columns can be crossed; one that has no
    more stays as it is. What cannot be crossed stays, too, and what other fields are made of."""
    every = spec.model_copy()  # what is asked of a spec it remembers, and what is made of it would, too
    if len(crossable(every)) <= most:
        return spec
    columns = read(examples, every, ROWS, seed)
    said, slots = dict[str, float](), dict[str, int]()
    referred = {name for field in spec.fields for name in (field.of, *field.parts)}
    for place, slot in enumerate(columns.slots):
        said[slot.field] = max(said.get(slot.field, -np.inf), information(columns, place))
        slots[slot.field] = slots.get(slot.field, 0) + 1
    dropped, room = set[str](), most
    for name in sorted(said, key=lambda name: (-said[name], name)):
        if slots[name] <= room:
            room -= slots[name]
        elif name not in referred:
            dropped.add(name)
    return spec.model_copy(update={"fields": tuple(field for field in spec.fields if field.name not in dropped)})


def information(columns: CrossColumns, place: int) -> float:
    """Nats that a column tells of a label of 0 and 1."""
    codes, size = columns.codes([place])
    clicked = columns.label > 0
    both = entropy(2 * codes + clicked, 2 * size)
    found = entropy(codes, size) + entropy(clicked.astype(np.int64), 2) - both
    return found - (len(np.unique(codes)) - 1) / (2 * columns.rows)
