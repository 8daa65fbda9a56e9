"""What a run leaves out because its log has no times, users or items: name -> reason with the cure."""

from __future__ import annotations

from contracts.config.config import Config

_TIMES = "the log has no times: rows were dealt out by hash, and no drift over time can be seen; set log.event_time"
_USERS = "the log has no users; set log.user_id"
_ITEMS = "the log has no items to choose from; set log.item_id"


def skipped(config: Config) -> dict[str, str]:
    """Empty where nothing is left out."""
    log, found = config.log, {}
    if log.event_time is None:
        found["split_in_time"] = _TIMES
    if log.user_id is None:
        found |= dict.fromkeys(("gauc", "online_users"), _USERS)
    if log.item_id is None:
        names = ("online_items", "two_tower", "pre_ranker", "item_index", "serving")
        found |= dict.fromkeys(names, _ITEMS)
    return found
