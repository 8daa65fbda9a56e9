// The walk of models/examples/taken_rows.py, which says what it computes. Rows are split among threads in a fixed way.

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace {

constexpr int64_t AHEAD = 32;  // rows

template <typename Value>
void take(const int64_t *rows, int64_t begin, int64_t end, const char *from, char *to) {
  const Value *values = reinterpret_cast<const Value *>(from);
  Value *found = reinterpret_cast<Value *>(to);
  for (int64_t i = begin; i < end; ++i) {
    __builtin_prefetch(values + rows[std::min(i + AHEAD, end - 1)]);
    found[i] = values[rows[i]];
  }
}

void take_wide(const int64_t *rows, int64_t begin, int64_t end, int64_t bytes, const char *from, char *to) {
  for (int64_t i = begin; i < end; ++i) {
    const char *later = from + rows[std::min(i + AHEAD, end - 1)] * bytes;
    for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(later + at);
    __builtin_prefetch(later + bytes - 1);
    std::memcpy(to + i * bytes, from + rows[i] * bytes, bytes);
  }
}

}  // namespace

extern "C" {

// `told` [tensors, 3]: where one lies, where its rows go, bytes of a row. Returns -1, or the place of a row that is none
// of `size`; nothing is taken then.
int64_t taken_rows(const int64_t *rows, int64_t count, int64_t size, const int64_t *told, int64_t tensors,
                   int threads) {
  for (int64_t i = 0; i < count; ++i) {
    if (rows[i] < 0 || rows[i] >= size) return i;
  }
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int64_t thread = 0; thread < threads; ++thread) {
    int64_t begin = count * thread / threads, end = count * (thread + 1) / threads;
    for (int64_t number = 0; number < tensors; ++number) {
      const char *from = reinterpret_cast<const char *>(told[3 * number]);
      char *to = reinterpret_cast<char *>(told[3 * number + 1]);
      int64_t bytes = told[3 * number + 2];
      if (bytes == 4) {
        take<int32_t>(rows, begin, end, from, to);
      } else if (bytes == 8) {
        take<int64_t>(rows, begin, end, from, to);
      } else if (bytes) {
        take_wide(rows, begin, end, bytes, from, to);
      }
    }
  }
  return -1;
}
}
