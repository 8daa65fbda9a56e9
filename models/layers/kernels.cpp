// Passes over a batch that plain torch makes several of on a CPU. Compiled by models/layers/kernels.py, which says what
// each computes; every function has a twin in plain torch. Rows are split among threads in a fixed way: one seed and
// one number of threads give one result. There may be fewer of these than asked for (OMP_THREAD_LIMIT, OMP_DYNAMIC).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include <omp.h>

namespace {

struct Half {  // bfloat16: the upper half of a float
  uint16_t bits;
};

inline float load(float value) { return value; }

inline float load(Half value) {
  uint32_t wide = static_cast<uint32_t>(value.bits) << 16;
  float found;
  std::memcpy(&found, &wide, sizeof(found));
  return found;
}

inline void store(float &place, float value) { place = value; }

inline void store(Half &place, float value) {  // to the nearest, ties to even; NaN stays NaN
  uint32_t wide;
  std::memcpy(&wide, &value, sizeof(wide));
  uint32_t rounded = (wide + 0x7FFF + ((wide >> 16) & 1)) >> 16;
  place.bits = static_cast<uint16_t>(value != value ? 0x7FC0 : rounded);
}

inline uint64_t mixed(uint64_t state) {  // splitmix64
  state += 0x9E3779B97F4A7C15ULL;
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9ULL;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EBULL;
  return state ^ (state >> 31);
}

struct Rows {
  int64_t begin, end;
};

inline Rows mine(int64_t rows, int threads, int thread) {
  return {rows * thread / threads, rows * (thread + 1) / threads};
}

constexpr int64_t BLOCK = 64;  // rows summed in float before they join a double

// What a loop reads and writes is apart, which a compiler has to be told: bytes may lie anywhere, so that it would read
// every other value anew after each that is written, one at a time.
#define APART __restrict

// Sums of two columns of terms over all rows: term(row, first [width], second [width]) adds to its two floats a column.
template <typename Term>
void sums(int64_t rows, int64_t width, int threads, double *first, double *second, Term term) {
  std::vector<double> parts(2 * width * threads, 0.0);
#pragma omp parallel num_threads(threads)
  {
    int thread = omp_get_thread_num();
    Rows range = mine(rows, omp_get_num_threads(), thread);
    double *own = parts.data() + 2 * width * thread;
    std::vector<float> block(2 * width);
    for (int64_t start = range.begin; start < range.end; start += BLOCK) {
      std::fill(block.begin(), block.end(), 0.0f);
      for (int64_t row = start; row < std::min(start + BLOCK, range.end); ++row) {
        term(row, block.data(), block.data() + width);
      }
      for (int64_t i = 0; i < 2 * width; ++i) own[i] += block[i];
    }
  }
  for (int64_t i = 0; i < width; ++i) {
    first[i] = second[i] = 0.0;
    for (int thread = 0; thread < threads; ++thread) {
      first[i] += parts[2 * width * thread + i];
      second[i] += parts[2 * width * thread + width + i];
    }
  }
}

template <typename T>
void norm_forward(const T *z, int64_t rows, int64_t width, const float *gamma, const float *beta, float eps, int drop,
                  uint64_t seed, int threads, float *mean, float *var, float *rstd, T *y, uint8_t *kept) {
  std::vector<double> first(width), second(width);
  std::vector<float> shift(width), slope(width), start(width);
  for (int64_t i = 0; i < width; ++i) shift[i] = load(z[i]);
  const float *APART off = shift.data();
  sums(rows, width, threads, first.data(), second.data(), [=](int64_t row, float *APART sum, float *APART square) {
    const T *APART from = z + row * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      float value = load(from[i]) - off[i];
      sum[i] += value;
      square[i] += value * value;
    }
  });
  for (int64_t i = 0; i < width; ++i) {
    double apart = first[i] / rows;
    mean[i] = static_cast<float>(shift[i] + apart);
    var[i] = static_cast<float>(std::max(second[i] / rows - apart * apart, 0.0));
    rstd[i] = 1.0f / std::sqrt(var[i] + eps);
    slope[i] = gamma[i] * rstd[i];
    start[i] = beta[i] - slope[i] * mean[i];
  }
  float scale = 256.0f / (256 - drop);
  int64_t words = (width + 7) / 8;
#pragma omp parallel num_threads(threads)
  {
    Rows range = mine(rows, omp_get_num_threads(), omp_get_thread_num());
    std::vector<uint64_t> drawn(words, ~0ULL);
    uint64_t *APART random = drawn.data();
    const float *APART by = slope.data(), *APART from_zero = start.data();
    for (int64_t row = range.begin; row < range.end; ++row) {
      if (drop) {
#pragma omp simd
        for (int64_t word = 0; word < words; ++word) random[word] = mixed(seed + row * words + word);
      }
      const uint8_t *bytes = reinterpret_cast<const uint8_t *>(random);
      const T *APART from = z + row * width;
      T *APART to = y + row * width;
      uint8_t *APART keep = kept + row * width;
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) {
        float value = by[i] * load(from[i]) + from_zero[i];
        bool alive = !(value <= 0.0f) & (bytes[i] >= drop);  // && would be a branch
        keep[i] = alive;
        store(to[i], alive ? value * scale : 0.0f);
      }
    }
  }
}

template <typename T>
void norm_backward(const T *dy, const T *z, const uint8_t *kept, int64_t rows, int64_t width, const float *gamma,
                   const float *mean, const float *rstd, int drop, int threads, float *dgamma, float *dbeta, T *dz) {
  float scale = 256.0f / (256 - drop);
  std::vector<double> first(width), second(width);
  sums(rows, width, threads, first.data(), second.data(), [=](int64_t row, float *APART sum, float *APART product) {
    const T *APART from = dy + row * width, *APART value = z + row * width;
    const uint8_t *APART keep = kept + row * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      float gradient = load(from[i]) * (scale * keep[i]);
      sum[i] += gradient;
      product[i] += gradient * (load(value[i]) - mean[i]);
    }
  });
  std::vector<float> slope(width), level(width), tilt(width);
  for (int64_t i = 0; i < width; ++i) {
    dbeta[i] = static_cast<float>(first[i]);
    dgamma[i] = static_cast<float>(second[i] * rstd[i]);
    slope[i] = gamma[i] * rstd[i];
    level[i] = dbeta[i] / rows;
    tilt[i] = dgamma[i] * rstd[i] / rows;
  }
#pragma omp parallel num_threads(threads)
  {
    Rows range = mine(rows, omp_get_num_threads(), omp_get_thread_num());
    const float *APART by = slope.data(), *APART flat = level.data(), *APART steep = tilt.data();
    for (int64_t row = range.begin; row < range.end; ++row) {
      const T *APART from = dy + row * width, *APART value = z + row * width;
      const uint8_t *APART keep = kept + row * width;
      T *APART to = dz + row * width;
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) {
        float gradient = load(from[i]) * (scale * keep[i]);
        store(to[i], by[i] * (gradient - flat[i] - steep[i] * (load(value[i]) - mean[i])));
      }
    }
  }
}

}  // namespace

extern "C" {

void norm_relu_dropout_forward(const void *z, int half, int64_t rows, int64_t width, const float *gamma,
                               const float *beta, float eps, int drop, uint64_t seed, int threads, float *mean,
                               float *var, float *rstd, void *y, uint8_t *kept) {
  if (half) {
    norm_forward(static_cast<const Half *>(z), rows, width, gamma, beta, eps, drop, seed, threads, mean, var, rstd,
                 static_cast<Half *>(y), kept);
  } else {
    norm_forward(static_cast<const float *>(z), rows, width, gamma, beta, eps, drop, seed, threads, mean, var, rstd,
                 static_cast<float *>(y), kept);
  }
}

void norm_relu_dropout_backward(const void *dy, const void *z, const uint8_t *kept, int half, int64_t rows,
                                int64_t width, const float *gamma, const float *mean, const float *rstd, int drop,
                                int threads, float *dgamma, float *dbeta, void *dz) {
  if (half) {
    norm_backward(static_cast<const Half *>(dy), static_cast<const Half *>(z), kept, rows, width, gamma, mean, rstd,
                  drop, threads, dgamma, dbeta, static_cast<Half *>(dz));
  } else {
    norm_backward(static_cast<const float *>(dy), static_cast<const float *>(z), kept, rows, width, gamma, mean, rstd,
                  drop, threads, dgamma, dbeta, static_cast<float *>(dz));
  }
}

// Local ids [count, .], `stride` apart from row to row, in the order of the columns that are wanted -> rows of the
// fused table [count, width]: id + offset of the column, and 0 for the padding.
void table_rows(const int32_t *ids, int64_t stride, const int64_t *order, const int32_t *offsets, int64_t count,
                int64_t width, int threads, int32_t *rows) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    const int32_t *APART from = ids + i * stride;
    int32_t *APART to = rows + i * width;
    for (int64_t column = 0; column < width; ++column) {
      int32_t id = from[order[column]];
      to[column] = id ? id + offsets[column] : 0;
    }
  }
}

// Vectors [count, width, dim] of rows [count, width] -> inputs, `stride` apart from row to row: the vectors of the
// first `singles` columns as they are, then of each of `several` spans, which end at `ends`, the mean over rows that
// are not 0.
void joined_rows(const int32_t *rows, int64_t count, int64_t width, int64_t dim, int64_t singles, const int64_t *ends,
                 int64_t several, int64_t stride, int threads, const float *vectors, float *joined) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    const float *APART from = vectors + i * width * dim;
    float *APART to = joined + i * stride;
    std::memcpy(to, from, singles * dim * sizeof(float));
    int64_t column = singles;
    for (int64_t span = 0; span < several; ++span) {
      float *APART sum = to + (singles + span) * dim;
      std::fill(sum, sum + dim, 0.0f);
      float present = 0.0f;
      for (; column < ends[span]; ++column) {
        if (!rows[i * width + column]) continue;
        present += 1.0f;
#pragma omp simd
        for (int64_t j = 0; j < dim; ++j) sum[j] += from[column * dim + j];
      }
      if (present > 1.0f) {
#pragma omp simd
        for (int64_t j = 0; j < dim; ++j) sum[j] /= present;
      }
    }
  }
}

// Gradients of the inputs of joined_rows -> those of its vectors, which row 0, whose vector is zero, has as well.
void parted_rows(const int32_t *rows, int64_t count, int64_t width, int64_t dim, int64_t singles, const int64_t *ends,
                 int64_t several, int64_t stride, int threads, float *vectors, const float *joined) {
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> share(dim);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < count; ++i) {
      const float *APART from = joined + i * stride;
      float *APART to = vectors + i * width * dim;
      std::memcpy(to, from, singles * dim * sizeof(float));
      int64_t column = singles;
      for (int64_t span = 0; span < several; ++span) {
        const float *APART sum = from + (singles + span) * dim;
        float present = 0.0f;
        for (int64_t at = column; at < ends[span]; ++at) present += rows[i * width + at] != 0;
#pragma omp simd
        for (int64_t j = 0; j < dim; ++j) share[j] = sum[j] / std::max(present, 1.0f);
        for (; column < ends[span]; ++column) std::memcpy(to + column * dim, share.data(), dim * sizeof(float));
      }
    }
  }
}

// Zeros in place of the values [count, width] of one row of the table.
void cleared_rows(const int32_t *rows, int64_t count, int64_t width, int64_t row, float *values) {
  for (int64_t i = 0; i < count; ++i) {
    if (rows[i] == row) std::fill(values + i * width, values + (i + 1) * width, 0.0f);
  }
}

// Rows of a sparse gradient in any order and number -> the distinct ones, in the order of their first appearance, and
// their summed values; `place` [size of the table] is all -1, before and after. Returns how many there are.
int64_t summed_rows(const int64_t *rows, const float *values, int64_t count, int64_t width, int32_t *place,
                    int64_t *distinct, float *total) {
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    int64_t row = rows[i];
    const float *from = values + i * width;
    if (place[row] < 0) {
      place[row] = static_cast<int32_t>(found);
      distinct[found] = row;
      std::memcpy(total + found * width, from, width * sizeof(float));
      ++found;
    } else {
      float *to = total + place[row] * width;
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) to[j] += from[j];
    }
  }
  for (int64_t i = 0; i < found; ++i) place[distinct[i]] = -1;
  return found;
}

// Adam of models/optimisation/row_adam.py on distinct rows, in place; l2 and pace may be null. `moments` second moments a
// row: its width, or one.
void row_adam(float *weight, float *mean, float *square, float *seen, const float *l2, const float *pace,
              const int64_t *rows, const float *gradient, int64_t count, int64_t width, int64_t moments, float rate, float decay, float beta1, float beta2,
              float eps, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    int64_t row = rows[i];
    float *w = weight + row * width, *m = mean + row * width, *v = square + row * moments;
    const float *g = gradient + i * width;
    seen[row] += 1.0f;
    float first = 1.0f - std::pow(beta1, seen[row]), second = 1.0f - std::pow(beta2, seen[row]);
    float pull = l2 ? l2[row] : 0.0f, step = pace ? rate * pace[row] : rate;
    if (moments < width) {
      float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
      for (int64_t j = 0; j < width; ++j) {
        float slope = g[j] + pull * w[j];
        sum += slope * slope;
      }
      v[0] += (1.0f - beta2) * (sum / static_cast<float>(width) - v[0]);
      float root = std::sqrt(v[0] / second) + eps;
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) {
        float slope = g[j] + pull * w[j];
        m[j] += (1.0f - beta1) * (slope - m[j]);
        w[j] -= step * (m[j] / first / root + decay * w[j]);
      }
      continue;
    }
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) {
      float slope = g[j] + pull * w[j];
      m[j] += (1.0f - beta1) * (slope - m[j]);
      v[j] += (1.0f - beta2) * (slope * slope - v[j]);
      w[j] -= step * (m[j] / first / (std::sqrt(v[j] / second) + eps) + decay * w[j]);
    }
  }
}

// Distinct rows of a table dealt to `owners` processes by row modulo their number, grouped by owner and numbered as
// the owner numbers them; inverse[i] is the place of rows[i] among them, counts[p] how many are p's. Returns how many.
int64_t routed_rows(const int64_t *rows, int64_t count, int64_t owners, int64_t *local, int64_t *inverse,
                    int64_t *counts) {
  int bits = 4;
  while ((int64_t{1} << bits) < 2 * count) ++bits;
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  std::vector<int64_t> keys(mask + 1, -1), places(mask + 1), distinct;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t slot = (static_cast<uint64_t>(rows[i]) * 0x9E3779B97F4A7C15ull) >> (64 - bits);
    while (keys[slot] >= 0 && keys[slot] != rows[i]) slot = (slot + 1) & mask;
    if (keys[slot] < 0) {
      keys[slot] = rows[i];
      places[slot] = static_cast<int64_t>(distinct.size());
      distinct.push_back(rows[i]);
      ++counts[rows[i] % owners];
    }
    inverse[i] = places[slot];
  }
  std::vector<int64_t> next(owners, 0), moved(distinct.size());
  for (int64_t owner = 1; owner < owners; ++owner) next[owner] = next[owner - 1] + counts[owner - 1];
  for (size_t i = 0; i < distinct.size(); ++i) {
    moved[i] = next[distinct[i] % owners]++;
    local[moved[i]] = distinct[i] / owners;
  }
  for (int64_t i = 0; i < count; ++i) inverse[i] = moved[inverse[i]];
  return static_cast<int64_t>(distinct.size());
}
}
