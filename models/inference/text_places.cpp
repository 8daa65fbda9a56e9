// Places of texts in a vocabulary of contracts/features/text_keys.py, whose arrays these are: hashed as text_hash.py
// there says, found by bisection of all hashes at once, and compared. Its twin in numpy is TextKeys.places_arrow.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int64_t WORD = 8, ABSENT = -1;
constexpr uint64_t GOLDEN = 0x9E3779B97F4A7C15;

uint64_t finalised(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EB;
  return word ^ (word >> 31);
}

uint64_t hash_of(const uint8_t *text, int64_t length) {
  uint64_t sum = 0, word;
  int64_t j = 0;
  for (; j < length / WORD; ++j) {
    std::memcpy(&word, text + WORD * j, WORD);
    sum += finalised(word + (j + 1) * GOLDEN);
  }
  word = 0;
  std::memcpy(&word, text + WORD * j, length % WORD);
  sum += finalised(word + (j + 1) * GOLDEN);
  return finalised(length * GOLDEN + sum);
}

}  // namespace

extern "C" {

// places [wanted] of the texts that are bytes starts[i] to starts[i + 1] of `texts`, ABSENT of those that are not among
// the `count` of offsets, blob, hashes and ranks.
void text_places(int64_t count, const int64_t *offsets, const uint8_t *blob, const uint64_t *hashes,
                 const int32_t *ranks, int64_t wanted, const int64_t *starts, const uint8_t *texts, int64_t *places) {
  static thread_local std::vector<uint64_t> hash;
  hash.resize(wanted);
  for (int64_t i = 0; i < wanted; ++i) {
    hash[i] = hash_of(texts + starts[i], starts[i + 1] - starts[i]);
    places[i] = 0;
  }
  // A step for all before the next: their reads, most of which miss the caches, go on side by side.
  int64_t length = count;
  for (; length > 1; length -= length / 2)
    for (int64_t i = 0; i < wanted; ++i)
      places[i] += hashes[places[i] + length / 2 - 1] < hash[i] ? length / 2 : 0;
  for (int64_t i = 0; i < wanted; ++i) {
    int64_t at = places[i] + (length && hashes[places[i]] < hash[i]);
    places[i] = at;
    if (at < count) __builtin_prefetch(&ranks[at]);
  }
  for (int64_t i = 0; i < wanted; ++i)
    if (places[i] < count) __builtin_prefetch(&offsets[ranks[places[i]]]);
  for (int64_t i = 0; i < wanted; ++i)
    if (places[i] < count) __builtin_prefetch(&blob[offsets[ranks[places[i]]]]);
  for (int64_t i = 0; i < wanted; ++i) {
    const int64_t size = starts[i + 1] - starts[i];
    int64_t at = places[i], found = ABSENT;
    for (; found == ABSENT && at < count && hashes[at] == hash[i]; ++at) {
      const int64_t rank = ranks[at];
      if (offsets[rank + 1] - offsets[rank] == size && !std::memcmp(blob + offsets[rank], texts + starts[i], size))
        found = rank;
    }
    places[i] = found;
  }
}
}
