from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from contracts.thread_name import OWN, name_thread


@pytest.mark.skipif(sys.platform != "linux", reason="names lie in /proc")
def test_the_system_shows_the_first_letters() -> None:
    seen = list[str]()

    def work() -> None:
        name_thread()
        seen.append(Path(OWN).read_text().strip())

    thread = threading.Thread(target=work, name="measuring-recalls")
    thread.start()
    thread.join()
    assert seen == ["measuring-recal"]
