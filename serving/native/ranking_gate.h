// Who is refused before the interpreter hears of it, as serving/balancer/configuration.py has it for several workers:
//
//   ahead      calls under way x the seconds that lie between two answers while there is something to do, in the mean
//   refused    who would wait longer than half of its time, or than `longest` once there has been as much to wait for
//              through STANDING: a burst passes. Not while its tenant has fewer of the calls under way than tenants
//              that have called lately would have evenly, unless it would wait twice as long
//
// A call is under way from when its request is here until its answer is given to gRPC, which its caller need not take.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <unordered_map>

class RankingGate {
 public:
  static constexpr size_t LONGEST_NAME = 64, MOST_TENANTS = 65536;  // what is longer, or more, is not told apart

  // `known_alone`: tenants count once one of their calls was let in by who looks at tokens.
  RankingGate(double longest, double otherwise, bool known_alone)
      : longest_(longest), otherwise_(otherwise), known_alone_(known_alone) {}

  // Until answers have told it.
  void guess_pace(double seconds) {
    if (!answered_) pace_ = seconds;
  }

  bool refuses(const std::string& tenant, double remaining, double now) {
    forget(now);
    double ahead = pace_ * under_way_, time = std::isinf(remaining) ? otherwise_ : remaining;
    bool stands = ahead > longest_ && now - short_ >= STANDING;
    if (ahead <= longest_) short_ = now;
    if (ahead > time || ahead > 2 * longest_) return true;
    if (2 * ahead <= time && !stands) return false;
    auto found = tenants_.find(tenant);
    int64_t own = found == tenants_.end() ? 0 : found->second.under_way;
    return own * std::max<int64_t>(lately_, 1) >= under_way_;
  }

  void begin(const std::string& tenant, double now) {
    if (under_way_++ == 0) since_ = now;
    Tenant& one = of(tenant);
    ++one.under_way;
    if (!known_alone_) seen(one, now);
  }

  // `answered` and not refused, which takes no time to speak of.
  void end(const std::string& tenant, bool known, bool answered, double now) {
    --under_way_;
    if (answered) {
      double took = now - since_;  // one that stalls says little of the others: it counts as twice the pace
      pace_ += SMOOTHING * ((pace_ > 0 ? std::min(took, 2 * pace_) : took) - pace_);
      answered_ = true;
      since_ = now;
    }
    auto found = tenants_.find(tenant);
    Tenant& one = found == tenants_.end() ? others_ : found->second;
    one.under_way -= one.under_way > 0;
    if (known) seen(one, now);
  }

 private:
  static constexpr double LATELY = 10, STANDING = 0.5, SMOOTHING = 0.05;  // seconds, seconds, of the pace

  struct Tenant {
    int64_t under_way = 0;
    double last = -LATELY;
    bool counted = false;
  };

  Tenant& of(const std::string& tenant) {
    auto found = tenants_.find(tenant);
    if (found != tenants_.end()) return found->second;
    return tenants_.size() < MOST_TENANTS ? tenants_[tenant] : others_;
  }

  void seen(Tenant& one, double now) {
    one.last = now;
    lately_ += !one.counted;
    one.counted = true;
  }

  void forget(double now) {
    if (now < looked_ + 1) return;
    looked_ = now;
    for (auto one = tenants_.begin(); one != tenants_.end();) {
      if (one->second.counted && now - one->second.last > LATELY) {
        one->second.counted = false;
        --lately_;
      }
      one = one->second.counted || one->second.under_way ? std::next(one) : tenants_.erase(one);
    }
  }

  const double longest_, otherwise_;
  const bool known_alone_;
  double pace_ = 0, looked_ = 0, since_ = 0;
  double short_ = 0;  // when there was less to wait for than `longest`
  bool answered_ = false;
  int64_t under_way_ = 0, lately_ = 0;
  std::unordered_map<std::string, Tenant> tenants_;
  Tenant others_;
};
