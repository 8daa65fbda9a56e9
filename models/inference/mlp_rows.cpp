// The MLP of models/inference/numpy_mlp.py in one walk over tiles of rows, whose sums stay where the next product reads
// them. Its twin in numpy stands there.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tile_product.h"

extern "C" {

int64_t matrix_span() { return tile::SPAN; }

// found [count, widths[layers]] of the first layer's outputs
//
//     rows [count, widths[0]]  +  shift [widths[0]]  +  columns [count, depth], `stride` apart, x matrix
//
// of which each may be missing, through ReLU and layer after layer, the last one without a ReLU behind it. Weights are
// packed, of a layer with one output as they are.
void mlp_rows(int64_t count, const float *rows, const float *shift, const float *columns, int64_t depth, int64_t stride,
              const float *matrix, int64_t layers, const int64_t *widths, const float *const *weights,
              const float *const *biases, float *found) {
  const int64_t apart = tile::whole(*std::max_element(widths, widths + layers + 1));
  static thread_local std::vector<float> room;
  room.resize(2 * tile::ROWS * apart);
  for (int64_t start = 0; start < count; start += tile::ROWS) {
    const int64_t many = std::min<int64_t>(tile::ROWS, count - start);
    float *here = room.data(), *there = here + tile::ROWS * apart;
    int64_t width = widths[0];
    for (int64_t r = 0; r < many; ++r) {
      float *to = here + r * apart;
      if (rows) {
        std::copy_n(rows + (start + r) * width, width, to);
        if (shift)
          for (int64_t j = 0; j < width; ++j) to[j] += shift[j];
      } else if (shift) {
        std::copy_n(shift, width, to);
      } else {
        std::fill_n(to, width, 0.0f);
      }
    }
    if (columns) tile::add_product(many, columns + start * stride, depth, stride, matrix, width, here, apart);
    for (int64_t i = 0; i < layers; ++i, std::swap(here, there)) {
      tile::next_layer(many, here, width, widths[i + 1], weights[i], biases[i], there, apart);
      width = widths[i + 1];
    }
    for (int64_t r = 0; r < many; ++r) std::copy_n(here + r * apart, width, found + (start + r) * width);
  }
}
}
