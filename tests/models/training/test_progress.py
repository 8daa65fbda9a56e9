from __future__ import annotations

from models.training.progress import batch_counter


def test_batches_of_all_epochs_are_one_count_that_ends_at_the_whole():
    said: list[tuple[str, int, int]] = []
    count = batch_counter(lambda *progress: said.append(progress), "dnn", epochs=2)
    for _ in range(2):
        for done in (1, 2, 3):
            count(done, 3)
    assert said == [("dnn", done, 6) for done in (1, 2, 3, 4, 5, 6)]
