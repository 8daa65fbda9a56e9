"""Keys of the configuration that had another name before version 0.2: old -> new, refused with the new name."""

RENAMED = {
    "statistics": "pair_rates",
    "crosses.held_share": "crosses.holdout_share",
    "crosses.structure_rate": "crosses.edge_learning_rate",
    "prerank.clicks": "prerank.click_loss_weight",
    "prerank.top": "prerank.recall_at",
    "prerank.judged_requests": "prerank.evaluation_requests",
    "prerank.gate_rate": "prerank.gate_learning_rate",
    "prerank.item_part": "prerank.item_side",
    "federated.lost": "federated.dropout_rate",
    "federated.own": "federated.overrides",
    "federated.least_clients": "federated.min_clients",
    "federated.largest_weight": "federated.max_samples",
    "train.outside_rows": "train.lightgbm_rows",
}
