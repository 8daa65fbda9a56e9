// Products of a few rows with a matrix, sums in registers: for networks of a few hundred wide over a few hundred rows,
// where a BLAS spends as long on laying its operands out anew as on the product.
//
// A matrix [depth, width] lies packed as [spans, depth, SPAN], the last span filled up with zeros
// (models/inference/packed_matrix.py). A row's result hangs on the row alone, not on those it is computed beside.

#pragma once

#include <cstdint>

namespace tile {

#ifdef __AVX512F__
constexpr int LANES = 16, ROWS = 12;  // 24 of 32 registers hold sums
#else
constexpr int LANES = 8, ROWS = 6;  // 12 of 16
#endif
constexpr int SPAN = 2 * LANES;

typedef float Lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

inline const Lanes &at(const float *from) { return *reinterpret_cast<const Lanes *>(from); }
inline Lanes &at(float *to) { return *reinterpret_cast<Lanes *>(to); }

inline int64_t whole(int64_t width) { return (width + SPAN - 1) / SPAN * SPAN; }

// sums [COUNT, whole(width)], `apart` from row to row, += rows [COUNT, depth] x packed
template <int COUNT>
void add_product_of(const float *rows, int64_t depth, int64_t stride, const float *packed, int64_t width, float *sums,
                    int64_t apart) {
  for (int64_t start = 0; start < width; start += SPAN, packed += depth * SPAN) {
    Lanes left[COUNT], right[COUNT];
#pragma GCC unroll 12
    for (int r = 0; r < COUNT; ++r) {
      left[r] = at(sums + r * apart + start);
      right[r] = at(sums + r * apart + start + LANES);
    }
    for (int64_t k = 0; k < depth; ++k) {
      const Lanes first = at(packed + k * SPAN), second = at(packed + k * SPAN + LANES);
#pragma GCC unroll 12
      for (int r = 0; r < COUNT; ++r) {
        const float value = rows[r * stride + k];
        left[r] += value * first;
        right[r] += value * second;
      }
    }
#pragma GCC unroll 12
    for (int r = 0; r < COUNT; ++r) {
      at(sums + r * apart + start) = left[r];
      at(sums + r * apart + start + LANES) = right[r];
    }
  }
}

// The same of 1 to ROWS rows.
template <int COUNT = ROWS>
void add_product(int64_t count, const float *rows, int64_t depth, int64_t stride, const float *packed, int64_t width,
                 float *sums, int64_t apart) {
  if (count == COUNT) return add_product_of<COUNT>(rows, depth, stride, packed, width, sums, apart);
  if constexpr (COUNT > 1) add_product<COUNT - 1>(count, rows, depth, stride, packed, width, sums, apart);
}

inline float dot(const float *one, const float *other, int64_t width) {
  Lanes left{}, right{};
  int64_t j = 0;
  for (; j + SPAN <= width; j += SPAN) {
    left += at(one + j) * at(other + j);
    right += at(one + j + LANES) * at(other + j + LANES);
  }
  left += right;
  float sum = 0.0f;
  for (int lane = 0; lane < LANES; ++lane) sum += left[lane];
  for (; j < width; ++j) sum += one[j] * other[j];
  return sum;
}

// there [count, next] = bias + ReLU(here [count, width]) x weight, both `apart` from row to row; here keeps its ReLU, and
// what is no number stays so. The weight of one output is not packed.
inline void next_layer(int64_t count, float *here, int64_t width, int64_t next, const float *weight, const float *bias,
                       float *there, int64_t apart) {
  for (int64_t r = 0; r < count; ++r) {
    float *own = here + r * apart, *to = there + r * apart;
    for (int64_t j = 0; j < width; ++j) own[j] = own[j] < 0.0f ? 0.0f : own[j];
    if (next == 1)
      to[0] = bias[0] + dot(own, weight, width);
    else
      for (int64_t j = 0; j < next; ++j) to[j] = bias[j];
  }
  if (next > 1) add_product(count, here, width, apart, weight, next, there, apart);
}

}  // namespace tile
