// Walks over the rows of embeddings that plain torch makes several of on a CPU, of models/layers/embedding.py,
// models/optimisation/row_adam.py and models/distributed/routing.py, which say what each computes; every function has a
// twin in plain torch. Rows are split among threads in a fixed way.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

// What a loop reads and writes is apart, which a compiler has to be told: else it would read every other value anew after
// each that is written, one at a time.
#define APART __restrict

constexpr int64_t AHEAD = 16, LINE = 64 / sizeof(float);  // rows; floats of one line of a cache

inline void ask(const float *from, int64_t width) {
  for (int64_t i = 0; i < width; i += LINE) __builtin_prefetch(from + i);
  __builtin_prefetch(from + width - 1);
}

// at(place) is where the vector of row and column `place` lies.
template <typename At>
void join(const int32_t *rows, int64_t count, int64_t width, int64_t dim, int64_t singles, const int64_t *ends,
          int64_t several, int64_t stride, int threads, At at, float *joined) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    float *APART to = joined + i * stride;
    int64_t column = 0, first = i * width;
    for (; column < singles; ++column, to += dim) {
      const float *APART from = at(first + column);
#pragma omp simd
      for (int64_t j = 0; j < dim; ++j) to[j] = from[j];
    }
    for (int64_t span = 0; span < several; ++span, to += dim) {
      std::fill(to, to + dim, 0.0f);
      float present = 0.0f;
      for (; column < ends[span]; ++column) {
        if (!rows[first + column]) continue;
        const float *APART from = at(first + column);
        present += 1.0f;
#pragma omp simd
        for (int64_t j = 0; j < dim; ++j) to[j] += from[j];
      }
      if (present > 1.0f) {
#pragma omp simd
        for (int64_t j = 0; j < dim; ++j) to[j] /= present;
      }
    }
  }
}

// Distinct rows and the sum of what is added to each; place[row] is where a row stands among them, -1 for none.
struct RowSums {
  int64_t dim;
  int32_t *place;
  int64_t *distinct;
  float *total;
  int64_t found = 0;

  void add(int32_t row, const float *APART from, float share) {
    if (!row) return;
    int32_t at = place[row];
    if (at < 0) {
      float *APART to = total + found * dim;
#pragma omp simd
      for (int64_t j = 0; j < dim; ++j) to[j] = share * from[j];
      distinct[found] = row;
      place[row] = static_cast<int32_t>(found++);
      return;
    }
    float *APART to = total + at * dim;
#pragma omp simd
    for (int64_t j = 0; j < dim; ++j) to[j] += share * from[j];
  }

  void clear() {
    for (int64_t i = 0; i < found; ++i) place[distinct[i]] = -1;
  }
};

// The inputs of one block, as of read_rows, whose rows are `stride` apart; `tables` numbers the table of each column.
struct Inputs {
  int64_t count, width, singles, several, stride;
  const int32_t *rows;
  const int64_t *ends, *tables;
  const float *joined;

  // Of the tables from `first` to `last`.
  void add_to(RowSums &sums, int64_t first, int64_t last) const {
    auto asked = [=](int64_t column) { return tables[column] >= first && tables[column] < last; };
    std::vector<int64_t> own;
    for (int64_t column = 0; column < singles; ++column) {
      if (asked(column)) own.push_back(column);
    }
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t column : own) sums.add(rows[i * width + column], joined + i * stride + column * sums.dim, 1.0f);
    }
    for (int64_t span = 0, begin = singles; span < several; begin = ends[span++]) {
      if (!asked(begin)) continue;
      for (int64_t i = 0; i < count; ++i) {
        const int32_t *of_row = rows + i * width;
        float present = 0.0f;
        for (int64_t column = begin; column < ends[span]; ++column) present += of_row[column] != 0;
        const float *from = joined + i * stride + (singles + span) * sums.dim;
        for (int64_t column = begin; column < ends[span]; ++column) sums.add(of_row[column], from, 1.0f / present);
      }
    }
  }

  int64_t last_table() const { return width ? *std::max_element(tables, tables + width) : 0; }

  int64_t ids_of(int64_t first, int64_t last) const {
    return count * std::count_if(tables, tables + width, [=](int64_t table) { return table >= first && table < last; });
  }
};

}  // namespace

extern "C" {

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

// Ids [count, width] with those above `unknown` in its place where the draw of their column, one of [count, drawn], is
// below the column's share.
void dropped_ids(const int32_t *ids, int64_t count, int64_t width, const float *draws, int64_t drawn,
                 const int64_t *draw, const float *share, int32_t unknown, int threads, int32_t *kept) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    const int32_t *APART from = ids + i * width;
    const float *APART by = draws + i * drawn;
    int32_t *APART to = kept + i * width;
    for (int64_t column = 0; column < width; ++column) {
      bool gone = (from[column] > unknown) & (by[draw[column]] < share[column]);
      to[column] = gone ? unknown : from[column];
    }
  }
}

// Vectors [count, width, dim] of rows [count, width] -> inputs, `stride` apart from row to row: the vectors of the
// first `singles` columns as they are, then of each of `several` spans, which end at `ends`, the mean over rows that
// are not 0.
void joined_rows(const int32_t *rows, int64_t count, int64_t width, int64_t dim, int64_t singles, const int64_t *ends,
                 int64_t several, int64_t stride, int threads, const float *vectors, float *joined) {
  auto at = [=](int64_t place) { return vectors + place * dim; };
  join(rows, count, width, dim, singles, ends, several, stride, threads, at, joined);
}

// The same, of vectors that lie in a table [., dim].
void read_rows(const int32_t *rows, int64_t count, int64_t width, int64_t dim, int64_t singles, const int64_t *ends,
               int64_t several, int64_t stride, int threads, const float *table, float *joined) {
  int64_t last = count * width - 1;
  auto at = [=](int64_t place) {
    ask(table + rows[std::min(place + AHEAD, last)] * dim, dim);
    return table + rows[place] * dim;
  };
  join(rows, count, width, dim, singles, ends, several, stride, threads, at, joined);
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

// Gradients of the inputs of read_rows, of several blocks -> the distinct rows of their table but the padding, and the
// sums of their vectors' gradients: every thread sums some of the tables. `place` as of summed_rows; `distinct` and
// `total` have room for every id. Returns how many there are.
int64_t summed_inputs(const Inputs *inputs, int64_t blocks, int64_t dim, int threads, int32_t *place,
                      int64_t *distinct, float *total) {
  int64_t tables = 0;
  for (int64_t block = 0; block < blocks; ++block) tables = std::max(tables, inputs[block].last_table() + 1);
  std::vector<RowSums> parts;
  for (int64_t thread = 0, before = 0; thread < threads; ++thread) {
    parts.push_back({dim, place, distinct + before, total + before * dim});
    for (int64_t block = 0; block < blocks; ++block) {
      before += inputs[block].ids_of(tables * thread / threads, tables * (thread + 1) / threads);
    }
  }
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int64_t thread = 0; thread < threads; ++thread) {
    RowSums own = parts[thread];
    for (int64_t block = 0; block < blocks; ++block) {
      inputs[block].add_to(own, tables * thread / threads, tables * (thread + 1) / threads);
    }
    own.clear();
    parts[thread].found = own.found;
  }
  int64_t found = 0;
  for (const RowSums &part : parts) {
    std::memmove(distinct + found, part.distinct, part.found * sizeof(int64_t));
    std::memmove(total + found * dim, part.total, part.found * dim * sizeof(float));
    found += part.found;
  }
  return found;
}

// Rows of a sparse gradient in any order and number -> the distinct ones, in the order of their first appearance, and
// their summed values, which are left out where all rows are distinct; `place` [size of the table] is all -1, before and
// after. Returns how many there are.
int64_t summed_rows(const int64_t *rows, const float *values, int64_t count, int64_t width, int32_t *place,
                    int64_t *distinct, float *total) {
  int64_t found = 0, met = 0;
  for (int64_t i = 0; i < count; ++i) {
    int32_t &at = place[rows[i]];
    if (at >= 0) continue;
    distinct[found] = rows[i];
    at = static_cast<int32_t>(found++);
  }
  for (int64_t i = 0; i < count && found < count; ++i) {
    int64_t at = place[rows[i]];
    const float *APART from = values + i * width;
    float *APART to = total + at * width;
    if (at == met) {
      std::memcpy(to, from, width * sizeof(float));
      ++met;
      continue;
    }
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) to[j] += from[j];
  }
  for (int64_t i = 0; i < found; ++i) place[distinct[i]] = -1;
  return found;
}

// Adam of models/optimisation/row_adam.py on distinct rows, in place; l2 and pace may be null. `moments` second moments
// a row: its width, or one. Rows lie anywhere in the table: memory is asked for those to come.
void row_adam(float *weight, float *mean, float *square, float *seen, const float *l2, const float *pace,
              const int64_t *rows, const float *gradient, int64_t count, int64_t width, int64_t moments, float rate,
              float decay, float beta1, float beta2, float eps, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    int64_t row = rows[i], later = rows[std::min(i + AHEAD, count - 1)];
    ask(weight + later * width, width);
    ask(mean + later * width, width);
    ask(square + later * moments, moments);
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
