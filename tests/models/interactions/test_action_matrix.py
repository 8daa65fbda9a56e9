from __future__ import annotations

import torch

from models.interactions.action_matrix import action_matrix, compressed_rows, product, sparse
from models.interactions.interactions import from_lists


def test_a_cell_is_one_where_the_user_took_the_item_once_or_more():
    found = action_matrix(from_lists([[2, 4, 2], [], [3]], 5))
    assert found.to_dense().tolist() == [[0, 0, 1, 0, 1], [0, 0, 0, 0, 0], [0, 0, 0, 1, 0]]
    assert found.is_coalesced()


def test_a_sparse_matrix_is_its_places_and_values():
    found = sparse(torch.tensor([[0, 1], [1, 0]]), torch.tensor([2.0, 3.0]), 2, 2)
    assert found.to_dense().tolist() == [[0.0, 2.0], [3.0, 0.0]]


def test_a_product_of_sparse_matrices_is_sparse_and_without_a_warning():
    actions = action_matrix(from_lists([[2, 4], [2, 3]], 5))
    found = product(actions.T, actions)
    assert found.is_sparse
    assert found.is_coalesced()
    assert torch.equal(found.to_dense(), actions.to_dense().T @ actions.to_dense())


def test_compressed_rows_are_the_same_matrix():
    actions = action_matrix(from_lists([[2, 4], [2, 3]], 5))
    found = compressed_rows(actions)
    assert found.layout == torch.sparse_csr
    assert torch.equal(found.to_dense(), actions.to_dense())
