from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue.catalogue import Catalogue
from serving.catalogue.change import Change


def test_what_one_worker_takes_another_one_shows_and_a_later_one_too(
    loaded: LoadedBundle, bundle_folder: Path, tmp_path: Path
) -> None:
    now = time.time_ns() // 1000
    bid = Change(item="i05", kind="bid", version=1, event_time=now, arrived=now, value="9.5")

    def bid_of(catalogue: Catalogue) -> float:
        bids = catalogue.bundle.bids
        assert bids is not None
        return float(bids[catalogue.bundle.items.row("i05")])

    with closing(Catalogue(loaded, bundle_folder, tmp_path)) as one, \
            closing(Catalogue(loaded, bundle_folder, tmp_path)) as other:
        other.follower.start()
        assert one.writing.submit(one.record, [bid]).result() == ([True], 1)
        end = time.monotonic() + 60
        while other.follower.applied < 1 and time.monotonic() < end:
            time.sleep(0.01)
        assert bid_of(other) == 9.5
        assert other.reading.submit(other.stored).result() == 1
    with closing(Catalogue(loaded, bundle_folder, tmp_path)) as later:
        assert bid_of(later) == 9.5
