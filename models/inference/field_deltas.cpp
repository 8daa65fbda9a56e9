// What each field of a request and of its items adds to a DNN's first layer, and the logit's slope along it, in one walk
// (models/inference/field_deltas.py, which says what is computed, and does it in numpy where this is not).

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tile_product.h"

namespace {

// Fields of one block: columns[ends[f - 1] .. ends[f]) are those of field f, the last `further` of no field. Of each
// field, and of these, `weights` [its columns, width] are packed, one after the other.
struct Fields {
  int64_t count, further;
  const int64_t *ends, *columns;
  const float *weights;

  int64_t first(int64_t field) const { return field ? ends[field - 1] : 0; }
  int64_t width() const { return first(count) + further; }
};

// rows [many, width] of the block, `stride` apart -> in the order of `columns`
void put_in_order(const Fields &fields, int64_t many, const float *rows, int64_t stride, float *ordered) {
  for (int64_t r = 0; r < many; ++r)
    for (int64_t place = 0; place < fields.width(); ++place)
      ordered[r * fields.width() + place] = rows[r * stride + fields.columns[place]];
}

// sums [many, width], `apart` from row to row, += what a field's columns of `ordered` add
void add_field(const Fields &fields, int64_t field, int64_t many, const float *ordered, int64_t width, float *sums,
               int64_t apart) {
  const int64_t first = fields.first(field), depth = field < fields.count ? fields.ends[field] - first : fields.further;
  tile::add_product(many, ordered + first, depth, fields.width(), fields.weights + first * tile::whole(width), width, sums,
                    apart);
}

// The network behind a first layer of widths[0]; `weights` and `back`, transposed, are packed, of a layer with one
// output they are as they are.
struct Network {
  int64_t layers;
  const int64_t *widths;
  const float *const *weights, *const *biases, *const *back;

  int64_t apart() const { return tile::whole(*std::max_element(widths, widths + layers + 1)); }
};

// hidden [many, widths[0]] -> logits [many], and their slopes [many, apart] along it
void slopes_of(const Network &network, int64_t many, const float *hidden, float *logits, float *slopes) {
  const int64_t apart = network.apart(), size = tile::ROWS * apart;
  static thread_local std::vector<float> room;
  room.resize((network.layers + 2) * size);
  float *held = room.data(), *other = held + (network.layers + 1) * size;
  for (int64_t r = 0; r < many; ++r)
    std::copy_n(hidden + r * network.widths[0], network.widths[0], held + r * apart);
  for (int64_t i = 0; i < network.layers; ++i)
    tile::next_layer(many, held + i * size, network.widths[i], network.widths[i + 1], network.weights[i],
                     network.biases[i], held + (i + 1) * size, apart);
  for (int64_t r = 0; r < many; ++r) logits[r] = held[network.layers * size + r * apart];
  for (int64_t r = 0; r < many; ++r) slopes[r * apart] = 1.0f;
  float *along = slopes;
  for (int64_t i = network.layers - 1; i >= 0; --i) {
    const int64_t width = network.widths[i], next = network.widths[i + 1];
    const float *kept = held + i * size;
    for (int64_t r = 0; r < many; ++r) {
      for (int64_t j = 0; j < width; ++j)
        other[r * apart + j] = next == 1 ? along[r * apart] * network.back[i][j] : 0.0f;
    }
    if (next > 1) tile::add_product(many, along, next, apart, network.back[i], width, other, apart);
    for (int64_t place = 0; place < many * apart; ++place)
      if (!(kept[place] > 0.0f)) other[place] = 0.0f;
    std::swap(along, other);
  }
  if (along != slopes) std::copy_n(along, many * apart, slopes);
}

}  // namespace

extern "C" {

// deltas [1 + request fields + item fields x items, width]: zeros, one row of each of the request's fields, one of each
// item of every other field. hidden [items, width] is `shared`, which all items have, and all that items add; logits
// [items]; estimates [items, fields], by how much each logit falls without a field, to first order. Fields have their
// `places` among them, the request's first. The items' further columns are of no field: owners [further, fields] says
// whose parts they count for, `crossed` are their weights transposed and packed.
void field_deltas(int64_t items, int64_t fields, const int64_t *places, const float *request, int64_t request_fields,
                  const int64_t *request_ends, const int64_t *request_columns, const float *request_weights,
                  const float *changed, int64_t stride, int64_t item_fields, int64_t further, const int64_t *item_ends,
                  const int64_t *item_columns, const float *item_weights, const float *crossed, const float *owners,
                  const float *shared, int64_t layers, const int64_t *widths, const float *const *weights,
                  const float *const *biases, const float *const *back, float *deltas, float *hidden, float *logits,
                  float *estimates) {
  const Network network{layers, widths, weights, biases, back};
  const Fields asked{request_fields, 0, request_ends, request_columns, request_weights};
  const Fields offered{item_fields, further, item_ends, item_columns, item_weights};
  const int64_t width = widths[0], apart = network.apart(), beside = tile::whole(further);
  static thread_local std::vector<float> room;
  room.resize(std::max(asked.width(), tile::ROWS * offered.width()) + tile::ROWS * (2 * apart + beside));
  float *sums = room.data(), *slopes = sums + tile::ROWS * apart, *falls = slopes + tile::ROWS * apart;
  float *ordered = falls + tile::ROWS * beside;
  std::fill_n(deltas, width, 0.0f);
  put_in_order(asked, 1, request, 0, ordered);
  for (int64_t f = 0; f < request_fields; ++f) {
    std::fill_n(sums, apart, 0.0f);
    add_field(asked, f, 1, ordered, width, sums, apart);
    std::copy_n(sums, width, deltas + (1 + f) * width);
  }
  float *of_items = deltas + (1 + request_fields) * width;
  for (int64_t start = 0; start < items; start += tile::ROWS) {
    const int64_t many = std::min<int64_t>(tile::ROWS, items - start);
    float *own = hidden + start * width;
    put_in_order(offered, many, changed + start * stride, stride, ordered);
    for (int64_t r = 0; r < many; ++r) std::copy_n(shared, width, sums + r * apart);
    if (further) add_field(offered, item_fields, many, ordered, width, sums, apart);
    for (int64_t r = 0; r < many; ++r) std::copy_n(sums + r * apart, width, own + r * width);
    for (int64_t f = 0; f < item_fields; ++f) {
      float *to = of_items + (f * items + start) * width;
      std::fill_n(sums, many * apart, 0.0f);
      add_field(offered, f, many, ordered, width, sums, apart);
      for (int64_t r = 0; r < many; ++r)
        for (int64_t j = 0; j < width; ++j) {
          to[r * width + j] = sums[r * apart + j];
          own[r * width + j] += sums[r * apart + j];
        }
    }
    slopes_of(network, many, own, logits + start, slopes);
    if (further) {
      std::fill_n(falls, many * beside, 0.0f);
      tile::add_product(many, slopes, width, apart, crossed, further, falls, beside);
    }
    for (int64_t r = 0; r < many; ++r) {
      float *to = estimates + (start + r) * fields;
      const float *slope = slopes + r * apart, *known = ordered + r * offered.width() + offered.first(item_fields);
      std::fill_n(to, fields, 0.0f);
      for (int64_t f = 0; f < request_fields; ++f) to[places[f]] = tile::dot(slope, deltas + (1 + f) * width, width);
      for (int64_t f = 0; f < item_fields; ++f)
        to[places[request_fields + f]] = tile::dot(slope, of_items + (f * items + start + r) * width, width);
      for (int64_t c = 0; c < further; ++c) {
        const float fall = falls[r * beside + c] * known[c];
        for (int64_t f = 0; f < fields; ++f) to[f] += fall * owners[c * fields + f];
      }
    }
  }
}
}
