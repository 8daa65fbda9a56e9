// Batch normalisation, ReLU and dropout in two walks over a batch each way, of models/layers/norm_relu_dropout.py, which has
// the formulas and a twin in plain torch. Rows are split among threads in a fixed way: one seed and one number of threads
// give one result. There may be fewer of these than asked for (OMP_THREAD_LIMIT, OMP_DYNAMIC).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include <omp.h>

namespace {

// Lanes of one register and more: what the compiler's own vectors compute side by side.
template <int N>
struct Lanes {
  typedef float Floats __attribute__((vector_size(4 * N)));
  typedef uint32_t Words __attribute__((vector_size(4 * N)));
  typedef uint16_t Halves __attribute__((vector_size(2 * N)));
  typedef uint8_t Bytes __attribute__((vector_size(N)));
};

template <int N>
using Floats = typename Lanes<N>::Floats;

template <typename To>
inline To read(const void *from) {
  To found;
  std::memcpy(&found, from, sizeof(found));
  return found;
}

struct Half {  // bfloat16: the upper half of a float
  uint16_t bits;
};

// Values as they lie in memory, N of them as integers: what masks choose among at the price of the narrower type.
template <int N>
inline auto raw(const float *from) {
  return read<typename Lanes<N>::Words>(from);
}

template <int N>
inline auto raw(const Half *from) {
  return read<typename Lanes<N>::Halves>(from);
}

template <int N>
inline Floats<N> wide(typename Lanes<N>::Words values) {
  return (Floats<N>)values;
}

template <int N>
inline Floats<N> wide(typename Lanes<N>::Halves values) {
  return (Floats<N>)(__builtin_convertvector(values, typename Lanes<N>::Words) << 16);
}

template <int N>
inline void narrow(Floats<N> value, typename Lanes<N>::Words &found) {
  found = (typename Lanes<N>::Words)value;
}

template <int N>
inline void narrow(Floats<N> value, typename Lanes<N>::Halves &found) {  // to the nearest, ties to even; NaN stays NaN
  using Words = typename Lanes<N>::Words;
  Words bits = (Words)value, none = Words{} + 0x7FC0;
  Words rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  found = __builtin_convertvector(value != value ? none : rounded, typename Lanes<N>::Halves);
}

template <int N, typename T>
inline Floats<N> load(const T *from) {
  return wide<N>(raw<N>(from));
}

template <int N, typename T>
inline void store(T *place, Floats<N> value) {
  decltype(raw<N>(place)) found;
  narrow<N>(value, found);
  std::memcpy(place, &found, sizeof(found));
}

// work(lanes, i) for the columns of a row, as many side by side as there are.
template <typename Work>
inline void columns(int64_t width, Work work) {
  int64_t i = 0;
  for (; i + 16 <= width; i += 16) work(std::integral_constant<int, 16>(), i);
  for (; i + 4 <= width; i += 4) work(std::integral_constant<int, 4>(), i);
  for (; i < width; ++i) work(std::integral_constant<int, 1>(), i);
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
constexpr int64_t TOGETHER = 4;  // rows whose terms are added before a sum is written

// Sums of two columns of terms over all rows: term(lanes, row, i, first, second) adds to those of columns i, i + 1, ...
template <typename Term>
void sums(int64_t rows, int64_t width, int threads, double *first, double *second, Term term) {
  std::vector<double> parts(2 * width * threads, 0.0);
#pragma omp parallel num_threads(threads)
  {
    int thread = omp_get_thread_num();
    Rows range = mine(rows, omp_get_num_threads(), thread);
    double *own = parts.data() + 2 * width * thread;
    std::vector<float> block(2 * width);
    float *one = block.data(), *other = one + width;
    for (int64_t start = range.begin; start < range.end; start += BLOCK) {
      std::fill(block.begin(), block.end(), 0.0f);
      int64_t end = std::min(start + BLOCK, range.end), row = start;
      auto add = [&](auto together) {
        columns(width, [&](auto lanes, int64_t i) {
          auto a = load<lanes>(one + i), b = load<lanes>(other + i);
          for (int64_t n = 0; n < together; ++n) term(lanes, row + n, i, a, b);
          store<lanes>(one + i, a);
          store<lanes>(other + i, b);
        });
        row += together;
      };
      while (row + TOGETHER <= end) add(std::integral_constant<int64_t, TOGETHER>());
      while (row < end) add(std::integral_constant<int64_t, 1>());
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
                  uint64_t seed, int threads, float *mean, float *var, float *rstd, T *y) {
  std::vector<double> first(width), second(width);
  std::vector<float> shift(width), slope(width), start(width);
  for (int64_t i = 0; i < width; ++i) shift[i] = load<1>(z + i)[0];
  const float *off = shift.data();
  sums(rows, width, threads, first.data(), second.data(), [=](auto lanes, int64_t row, int64_t i, auto &sum, auto &square) {
    auto value = load<lanes>(z + row * width + i) - load<lanes>(off + i);
    sum += value;
    square += value * value;
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
    uint64_t *random = drawn.data();
    const uint8_t *bytes = reinterpret_cast<const uint8_t *>(random);
    const float *by = slope.data(), *from_zero = start.data();
    for (int64_t row = range.begin; row < range.end; ++row) {
      if (drop) {
#pragma omp simd
        for (int64_t word = 0; word < words; ++word) random[word] = mixed(seed + row * words + word);
      }
      columns(width, [=](auto lanes, int64_t i) {
        Floats<lanes> value = load<lanes>(by + i) * load<lanes>(z + row * width + i) + load<lanes>(from_zero + i);
        decltype(raw<lanes>(y)) kept, none{};
        narrow<lanes>(value <= 0.0f ? Floats<lanes>{} : value * scale, kept);  // a NaN stays
        auto drawn = __builtin_convertvector(read<typename Lanes<lanes>::Bytes>(bytes + i), typename Lanes<lanes>::Halves);
        decltype(kept) least = none + static_cast<uint16_t>(drop);
        kept = __builtin_convertvector(drawn, decltype(kept)) < least ? none : kept;
        std::memcpy(y + row * width + i, &kept, sizeof(kept));
      });
    }
  }
}

template <typename T>
void norm_backward(const T *dy, const T *z, const T *y, int64_t rows, int64_t width, const float *gamma,
                   const float *mean, const float *rstd, int drop, int threads, float *dgamma, float *dbeta, T *dz) {
  float scale = 256.0f / (256 - drop);
  auto passed = [=](auto lanes, int64_t at) {
    decltype(raw<lanes>(y)) none{};
    return wide<lanes>(raw<lanes>(y + at) == 0 ? none : raw<lanes>(dy + at)) * scale;
  };
  std::vector<double> first(width), second(width);
  sums(rows, width, threads, first.data(), second.data(), [=](auto lanes, int64_t row, int64_t i, auto &sum, auto &product) {
    auto gradient = passed(lanes, row * width + i);
    sum += gradient;
    product += gradient * (load<lanes>(z + row * width + i) - load<lanes>(mean + i));
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
    const float *by = slope.data(), *flat = level.data(), *steep = tilt.data();
    for (int64_t row = range.begin; row < range.end; ++row) {
      columns(width, [=](auto lanes, int64_t i) {
        auto off = load<lanes>(z + row * width + i) - load<lanes>(mean + i);
        auto rest = passed(lanes, row * width + i) - load<lanes>(flat + i) - load<lanes>(steep + i) * off;
        store<lanes>(dz + row * width + i, load<lanes>(by + i) * rest);
      });
    }
  }
}

}  // namespace

extern "C" {

void norm_relu_dropout_forward(const void *z, int half, int64_t rows, int64_t width, const float *gamma,
                               const float *beta, float eps, int drop, uint64_t seed, int threads, float *mean,
                               float *var, float *rstd, void *y) {
  if (half) {
    norm_forward(static_cast<const Half *>(z), rows, width, gamma, beta, eps, drop, seed, threads, mean, var, rstd,
                 static_cast<Half *>(y));
  } else {
    norm_forward(static_cast<const float *>(z), rows, width, gamma, beta, eps, drop, seed, threads, mean, var, rstd,
                 static_cast<float *>(y));
  }
}

void norm_relu_dropout_backward(const void *dy, const void *z, const void *y, int half, int64_t rows,
                                int64_t width, const float *gamma, const float *mean, const float *rstd, int drop,
                                int threads, float *dgamma, float *dbeta, void *dz) {
  if (half) {
    norm_backward(static_cast<const Half *>(dy), static_cast<const Half *>(z), static_cast<const Half *>(y), rows, width, gamma, mean, rstd,
                  drop, threads, dgamma, dbeta, static_cast<Half *>(dz));
  } else {
    norm_backward(static_cast<const float *>(dy), static_cast<const float *>(z), static_cast<const float *>(y), rows, width, gamma, mean, rstd,
                  drop, threads, dgamma, dbeta, static_cast<float *>(dz));
  }
}
}
