// One call of gRPC's asynchronous interface, what is told of it, and how its parts go to Python and back.

#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

enum Kind : int64_t { CALL, MESSAGE, NO_MESSAGE, WRITTEN, CANCELLED, ENDED, REFUSED };

struct Call;

// `data` and `size` are a message, -1 bytes long where a CALL has none yet; `size` alone says whether one that ENDED was
// cancelled, or how many were REFUSED. `deadline` is of `now`'s clock.
struct Told {
  Call* call;
  int64_t kind;
  const char* data = nullptr;
  int64_t size = 0;
  const char* method = nullptr;
  int64_t method_size = 0;
  double deadline = 0;
};

enum Step { ARRIVED, READ, WROTE, FINISHED, DONE, STEPS };

struct Tag {
  Call* call;
  Step step;
};

struct Call {
  Call() {
    for (int step = 0; step < STEPS; ++step) tags[step] = {this, static_cast<Step>(step)};
    context.AsyncNotifyWhenDone(&tags[DONE]);
  }

  bool under_way() const { return !done || !finished || reading || writing; }

  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream{&context};
  grpc::ByteBuffer received;
  grpc::Slice message;
  std::string text;  // of the last question about it
  std::string tenant;
  Tag tags[STEPS];
  bool told = false, gated = false, passed = false;
  bool reading = false, writing = false, finishing = false, finished = false, done = false;
};

// Seconds of Linux's monotonic clock, as Python's.
inline double now() {
  gpr_timespec when = gpr_now(GPR_CLOCK_MONOTONIC);
  return static_cast<double>(when.tv_sec) + 1e-9 * when.tv_nsec;
}

inline double monotonic(gpr_timespec when) {
  when = gpr_convert_clock_type(when, GPR_CLOCK_MONOTONIC);
  if (gpr_time_cmp(when, gpr_inf_future(GPR_CLOCK_MONOTONIC)) == 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(when.tv_sec) + 1e-9 * when.tv_nsec;
}

inline grpc::ByteBuffer buffer(const char* data, int64_t size) {
  grpc::Slice slice(data, static_cast<size_t>(size));
  return grpc::ByteBuffer(&slice, 1);
}

// A part behind its size in four bytes.
inline void append(std::string& into, grpc::string_ref part) {
  uint32_t size = part.size();
  into.append(reinterpret_cast<const char*>(&size), sizeof size).append(part.data(), part.size());
}

inline grpc::string_ref next_part(const char*& place) {
  uint32_t size;
  std::memcpy(&size, place, sizeof size);
  grpc::string_ref part(place + sizeof size, size);
  place += sizeof size + size;
  return part;
}
