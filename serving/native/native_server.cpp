// gRPC's own C++ server below a Python event loop: HTTP/2, framing, deadlines and flow control are one thread's work
// without the interpreter, which learns of calls in batches and answers each with one function.
//
// A call as the event loop sees it (native_call.h): CALL, with its first message where that is here already, else
// MESSAGE or NO_MESSAGE for the first read, which begins by itself; another of them for each `call_read`; WRITTEN for
// each `call_write`; CANCELLED where the caller has gone or its time is over; ENDED last, once it was finished and
// nothing of it is under way. Every call is finished once. What a record points to is there until the next
// `server_told`, and a call until the one after its ENDED. Of calls that the gate has refused (ranking_gate.h) there is
// a REFUSED for each method with their number, once `server_look` has been called.

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "native_call.h"
#include "ranking_gate.h"

namespace {

constexpr int64_t AT_ONCE = 64;  // events at most before the event loop is told
constexpr char FULL[] = "as many calls are open as may be; take their answers, or ask again later or elsewhere";
constexpr char LATE[] = "more comes than can be answered in time; send it again later or elsewhere, or with more time";

// What the gate is told: `count` methods, as "/package.Service/Method", and the metadata that names a tenant.
struct GateSettings {
  const char* const* methods;
  int64_t count;
  const char* tenant;
  double longest, otherwise;
  int64_t known_alone;
};

// This thread works for some microseconds at a time: where Linux lets a thread say so (6.12), it need not wait until
// others have had the milliseconds that they are given. Elsewhere nothing comes of it.
void take_short_turns() {
#ifdef SYS_sched_setattr
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t slice, deadline, period;
  } wanted{};
  wanted.size = sizeof wanted;
  wanted.nice = getpriority(PRIO_PROCESS, 0);
  wanted.slice = 500'000;  // nanoseconds
  syscall(SYS_sched_setattr, 0, &wanted, 0);
#endif
}

class Server {
 public:
  Server(const char* address, int wake, int64_t most, const char* const* names, const int32_t* values,
         int64_t arguments, const GateSettings& gate, int* port)
      : wake_(wake),
        most_(most),
        tenant_(gate.tenant),
        gate_(gate.longest, gate.otherwise, gate.known_alone) {
    for (int64_t place = 0; place < gate.count; ++place) refused_[gate.methods[place]] = 0;
    grpc::ServerBuilder builder;
    for (int64_t place = 0; place < arguments; ++place) builder.AddChannelArgument(names[place], values[place]);
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), port);
    builder.RegisterAsyncGenericService(&service_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || *port == 0) return;
    await_call();
    thread_ = std::thread([this] { run(); });
  }

  bool serves() const { return thread_.joinable(); }

  ~Server() {
    for (Call* call : ended_) delete call;
  }

  int64_t told(Told* into, int64_t room) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (Call* call : ended_) delete call;
    ended_.clear();
    int64_t count = 0;
    for (; count < room && !records_.empty(); ++count) {
      into[count] = records_.front();
      records_.pop_front();
      if (into[count].kind == ENDED) ended_.push_back(into[count].call);
    }
    if (records_.empty()) {
      uint64_t times;
      if (read(wake_, &times, sizeof times) < 0) times = 0;  // nobody has been woken
      woken_ = false;
    }
    return count;
  }

  void look(double pace) {
    std::lock_guard<std::mutex> lock(mutex_);
    gate_.guess_pace(pace);
    for (auto& [method, count] : refused_) {
      if (count) tell_now({nullptr, REFUSED, nullptr, count, method.data(), static_cast<int64_t>(method.size())});
      count = 0;
    }
  }

  void read_next(Call* call) {
    std::shared_lock<std::shared_mutex> open(closing_);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (closed_ || call->finishing) return tell_now({call, NO_MESSAGE});
      call->reading = true;
    }
    call->stream.Read(&call->received, &call->tags[READ]);
  }

  void write(Call* call, const char* data, int64_t size) {
    std::shared_lock<std::shared_mutex> open(closing_);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (closed_ || call->finishing) return tell_now({call, WRITTEN});
      call->writing = true;
    }
    call->stream.Write(buffer(data, size), &call->tags[WROTE]);
  }

  void finish(Call* call, const char* data, int64_t size, const grpc::Status& status) {
    std::shared_lock<std::shared_mutex> open(closing_);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (call->finishing) return;
      call->finishing = true;
      leave_gate(call, status.error_code());
      if (closed_) {
        call->finished = true;
        end(call);
        return wake();
      }
    }
    if (data != nullptr)
      call->stream.WriteAndFinish(buffer(data, size), grpc::WriteOptions(), status, &call->tags[FINISHED]);
    else
      call->stream.Finish(status, &call->tags[FINISHED]);
  }

  // Takes no further call, gives those under way so many seconds, and ends the thread.
  void stop(double seconds) {
    server_->Shutdown(std::chrono::system_clock::now() +
                      std::chrono::duration_cast<std::chrono::system_clock::duration>(
                          std::chrono::duration<double>(seconds)));
    {
      std::unique_lock<std::shared_mutex> alone(closing_);
      closed_ = true;
      queue_->Shutdown();
    }
    thread_.join();
  }

 private:
  void await_call() {
    Call* call = new Call;
    service_.RequestCall(&call->context, &call->stream, queue_.get(), queue_.get(), &call->tags[ARRIVED]);
  }

  // What comes at once is told at once: of a call with its message the event loop is woken once.
  void run() {
    void* tag;
    bool ok;
    take_short_turns();
    for (int64_t events = 0;; ++events) {
      if (events % AT_ONCE == 0) tell_fresh();
      auto found = queue_->AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_MONOTONIC));
      if (found == grpc::CompletionQueue::TIMEOUT) {
        tell_fresh();
        if (!queue_->Next(&tag, &ok)) found = grpc::CompletionQueue::SHUTDOWN;
      }
      if (found == grpc::CompletionQueue::SHUTDOWN) return tell_fresh();
      Tag taken = *static_cast<Tag*>(tag);
      if (taken.step == ARRIVED)
        arrived(taken.call, ok);
      else
        moved(taken.call, taken.step, ok);
    }
  }

  void arrived(Call* call, bool ok) {
    std::shared_lock<std::shared_mutex> open(closing_);
    if (!ok) {
      delete call;
      return;
    }
    if (closed_) {  // what it waits for is DONE, after which it goes
      std::lock_guard<std::mutex> lock(mutex_);
      ++open_;
      call->finishing = call->finished = true;
      return;
    }
    await_call();
    const char* why = nullptr;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (++open_ > most_)
        why = FULL;
      else if (at_gate(call) && late(call))
        why = LATE;
      (why ? call->finishing : call->reading) = true;
      if (!why) fresh_.push_back(call);
    }
    if (why)
      call->stream.Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, why}, &call->tags[FINISHED]);
    else
      call->stream.Read(&call->received, &call->tags[READ]);
  }

  bool at_gate(Call* call) {
    if (!refused_.count(call->context.method())) return false;
    auto& metadata = call->context.client_metadata();
    auto named = metadata.find(tenant_);
    if (named != metadata.end())
      call->tenant.assign(named->second.data(), std::min(named->second.size(), RankingGate::LONGEST_NAME));
    call->gated = true;
    return true;
  }

  bool late(Call* call) {
    double time = now();
    bool refused = gate_.refuses(call->tenant, monotonic(call->context.raw_deadline()) - time, time);
    if (refused) ++refused_.at(call->context.method());
    return refused;
  }

  // Once its request is here. False for one that is refused after all, since many have come at once; of a call that the
  // event loop knows already it is too late to say so.
  bool pass_gate(Call* call) {
    if (!call->gated || call->passed) return true;
    if (!call->told && late(call)) {
      call->finishing = true;
      fresh_.erase(std::find(fresh_.begin(), fresh_.end(), call));
      return false;
    }
    call->passed = true;
    gate_.begin(call->tenant, now());
    return true;
  }

  void leave_gate(Call* call, grpc::StatusCode code) {
    bool known = code != grpc::StatusCode::UNAUTHENTICATED && code != grpc::StatusCode::CANCELLED;
    if (call->passed) gate_.end(call->tenant, known, code == grpc::StatusCode::OK, now());
    call->gated = call->passed = false;
  }

  void refuse(Call* call) {
    std::shared_lock<std::shared_mutex> open(closing_);
    if (!closed_) return call->stream.Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, LATE}, &call->tags[FINISHED]);
    std::lock_guard<std::mutex> lock(mutex_);
    call->finished = true;
    end(call);
  }

  void moved(Call* call, Step step, bool ok) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (step == READ) {
      call->reading = false;
      if (ok && !call->finishing && !pass_gate(call)) {
        lock.unlock();
        return refuse(call);
      }
      bool received = ok && call->received.DumpToSingleSlice(&call->message).ok();
      auto* data = reinterpret_cast<const char*>(call->message.begin());
      if (received && !call->told)
        introduce(call, data, static_cast<int64_t>(call->message.size()));
      else if (received)
        records_.push_back({call, MESSAGE, data, static_cast<int64_t>(call->message.size())});
      else {
        introduce(call);
        records_.push_back({call, NO_MESSAGE});
      }
    } else if (step == WROTE) {
      call->writing = false;
      records_.push_back({call, WRITTEN});
    } else if (step == FINISHED) {
      call->finished = true;
    } else {
      call->done = true;
      if (!call->finishing) {
        introduce(call);
        records_.push_back({call, CANCELLED});
      }
    }
    end(call);
  }

  void tell_fresh() {
    std::lock_guard<std::mutex> lock(mutex_);
    while (!fresh_.empty()) introduce(fresh_.back());
    wake();
  }

  void introduce(Call* call, const char* message = nullptr, int64_t size = -1) {
    if (call->told) return;
    call->told = true;
    fresh_.erase(std::find(fresh_.begin(), fresh_.end(), call));
    const std::string& method = call->context.method();
    records_.push_back({call, CALL, message, size, method.data(), static_cast<int64_t>(method.size()),
                        monotonic(call->context.raw_deadline())});
  }

  void end(Call* call) {
    if (call->under_way()) return;
    --open_;
    if (call->told)
      records_.push_back({call, ENDED, nullptr, call->context.IsCancelled()});
    else
      delete call;
  }

  void tell_now(Told record) {
    records_.push_back(record);
    wake();
  }

  void wake() {
    if (woken_ || records_.empty()) return;
    uint64_t once = 1;
    woken_ = ::write(wake_, &once, sizeof once) == sizeof once;
  }

  const int wake_;
  const int64_t most_;
  const std::string tenant_;
  int64_t open_ = 0;
  bool woken_ = false;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_mutex closing_;  // shared by whoever begins an operation; before mutex_
  bool closed_ = false;
  std::mutex mutex_;  // of all below, and of the calls' flags
  RankingGate gate_;
  std::map<std::string, int64_t> refused_;  // by method of the gate, since the last look
  std::deque<Told> records_;
  std::vector<Call*> fresh_;  // not told of yet: their messages may be here already
  std::vector<Call*> ended_;
  std::thread thread_;
};

}  // namespace

extern "C" {

// Null where the address cannot be had.
Server* server_begun(const char* address, int wake, int64_t most, const char* const* names, const int32_t* values,
                     int64_t arguments, const GateSettings* gate, int32_t* port) {
  auto* server = new Server(address, wake, most, names, values, arguments, *gate, port);
  if (server->serves()) return server;
  delete server;
  return nullptr;
}

int64_t server_told(Server* server, Told* into, int64_t room) { return server->told(into, room); }

void server_look(Server* server, double pace) { server->look(pace); }

void server_stop(Server* server, double seconds) { server->stop(seconds); }

void server_end(Server* server) { delete server; }

void call_read(Server* server, Call* call) { server->read_next(call); }

void call_write(Server* server, Call* call, const char* data, int64_t size) { server->write(call, data, size); }

// `data` is null for no message; `trailing` holds keys and values in turn, each behind its size in four bytes.
void call_finish(Server* server, Call* call, const char* data, int64_t size, int32_t code, const char* details,
                 int64_t details_size, const char* trailing, int64_t trailing_size) {
  for (const char* place = trailing; place < trailing + trailing_size;) {
    grpc::string_ref key = next_part(place), value = next_part(place);
    call->context.AddTrailingMetadata({key.data(), key.size()}, {value.data(), value.size()});
  }
  server->finish(call, data, size,
                 {static_cast<grpc::StatusCode>(code), {details, static_cast<size_t>(details_size)}});
}

// As `call_finish` takes its metadata; there until the call is asked again.
const char* call_metadata(Call* call, int64_t* size) {
  call->text.clear();
  for (auto& [key, value] : call->context.client_metadata()) {
    append(call->text, key);
    append(call->text, value);
  }
  *size = static_cast<int64_t>(call->text.size());
  return call->text.data();
}

// Of the first with this name, null where there is none.
const char* call_value(Call* call, const char* name, int64_t* size) {
  auto& metadata = call->context.client_metadata();
  auto found = metadata.find(name);
  if (found == metadata.end()) return nullptr;
  *size = static_cast<int64_t>(found->second.size());
  return found->second.data();
}

const char* call_peer(Call* call) {
  call->text = call->context.peer();
  return call->text.c_str();
}

}  // extern "C"
