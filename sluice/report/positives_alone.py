"""What figures of a log of positives alone mean: in the report and on the terminal."""

from __future__ import annotations

from contracts.summaries.features import DrawnRows


def meaning(drawn: DrawnRows) -> str:
    """Of AUC, losses and probabilities; how the rows came about."""
    how = f"an item by its takes so far to the power {drawn.popularity:g}" if drawn.popularity else "every item alike"
    if drawn.candidates:
        how += (f", but {drawn.retrieved / max(drawn.negatives, 1):.0%} of them evenly from what an item-to-item "
                f"retrieval, fitted before that day, had for the user ({drawn.candidates:.0%} where it had anything)")
    left_out = ", ".join(f"{count:,} {what}" for count, what in (
        (drawn.newcomers, "that were the first of their item"), (drawn.repeats, "that repeated one of the user's own"),
        (drawn.exhausted, "of users who had taken all there was")) if count)
    return (
        f"The log holds positives alone: {drawn.per_positive} rows were drawn for each of {drawn.positives:,} takes, "
        f"{how}, of {drawn.items:,} items"
        + (f"; takes without drawn rows, which teach histories alone: {left_out}" if left_out else "")
        + ". AUC, GAUC, NDCG, log loss, ECE and predicted over observed are against those drawn rows. A probability "
        "that the server answers with is none of a click: it is that of this item being the one taken when the user "
        "takes something, among all items that there are for the user; over all of them it adds up to about 1."
    )
