// Quality of service.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "rmw/qos_profiles.h"
#include "types.hpp"

namespace rmw_noctule
{
namespace
{

constexpr rmw_time_t kInfinite = RMW_DURATION_INFINITE;

bool is_unset(const rmw_time_t & time)
{
  return rmw_time_equal(time, rmw_time_t(RMW_DURATION_UNSPECIFIED)) || rmw_time_equal(time, kInfinite);
}

int64_t ns_of(const rmw_time_t & time)
{
  return is_unset(time) ? 0 : rmw_time_total_nsec(time);
}

rmw_time_t time_of(int64_t ns)
{
  return ns == 0 ? kInfinite : rmw_time_from_nsec(ns);
}

// The weakest of what is offered.
struct Offered
{
  bool reliable = true;
  bool transient_local = true;
};

void weaken(void * to, const nrmw_entry * entry)
{
  auto * offered = static_cast<Offered *>(to);
  offered->reliable &= entry->quality.reliable;
  offered->transient_local &= entry->quality.transient_local;
}

}  // namespace

bool decide(
  const rmw_qos_profile_t & asked, const rmw_node_t * node, const char * topic, bool is_publisher,
  rmw_qos_profile_t & decided)
{
  if (
    asked.history == RMW_QOS_POLICY_HISTORY_UNKNOWN || asked.reliability == RMW_QOS_POLICY_RELIABILITY_UNKNOWN ||
    asked.durability == RMW_QOS_POLICY_DURABILITY_UNKNOWN || asked.liveliness == RMW_QOS_POLICY_LIVELINESS_UNKNOWN)
  {
    RMW_SET_ERROR_MSG("a policy of the QoS profile is unknown; name a value or the system default");
    return false;
  }
  decided = asked;
  Offered offered;
  const bool is_best = asked.reliability == RMW_QOS_POLICY_RELIABILITY_BEST_AVAILABLE ||
    asked.durability == RMW_QOS_POLICY_DURABILITY_BEST_AVAILABLE;
  if (is_best && !is_publisher) {
    nrmw_ends(context_of(node), topic, true, &offered, weaken);
  }
  if (asked.history == RMW_QOS_POLICY_HISTORY_SYSTEM_DEFAULT) {
    decided.history = RMW_QOS_POLICY_HISTORY_KEEP_LAST;
  }
  if (decided.history == RMW_QOS_POLICY_HISTORY_KEEP_LAST && asked.depth == RMW_QOS_POLICY_DEPTH_SYSTEM_DEFAULT) {
    decided.depth = 10;
  }
  if (asked.reliability == RMW_QOS_POLICY_RELIABILITY_SYSTEM_DEFAULT) {
    decided.reliability = RMW_QOS_POLICY_RELIABILITY_RELIABLE;
  } else if (asked.reliability == RMW_QOS_POLICY_RELIABILITY_BEST_AVAILABLE) {
    decided.reliability =
      offered.reliable ? RMW_QOS_POLICY_RELIABILITY_RELIABLE : RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
  }
  if (asked.durability == RMW_QOS_POLICY_DURABILITY_SYSTEM_DEFAULT) {
    decided.durability = RMW_QOS_POLICY_DURABILITY_VOLATILE;
  } else if (asked.durability == RMW_QOS_POLICY_DURABILITY_BEST_AVAILABLE) {
    decided.durability = offered.transient_local ?
      RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL : RMW_QOS_POLICY_DURABILITY_VOLATILE;
  }
  // A node of the bus is alive as long as discovery hears it; nobody has to say so.
  decided.liveliness = RMW_QOS_POLICY_LIVELINESS_AUTOMATIC;
  if (
    rmw_time_equal(asked.liveliness_lease_duration, rmw_time_t(RMW_QOS_LIVELINESS_LEASE_DURATION_BEST_AVAILABLE)) ||
    is_unset(asked.liveliness_lease_duration))
  {
    decided.liveliness_lease_duration = kInfinite;
  }
  if (rmw_time_equal(asked.deadline, rmw_time_t(RMW_QOS_DEADLINE_BEST_AVAILABLE)) || is_unset(asked.deadline)) {
    decided.deadline = kInfinite;
  }
  if (is_unset(asked.lifespan)) {
    decided.lifespan = kInfinite;
  }
  return true;
}

nrmw_quality quality_of(const rmw_qos_profile_t & qos)
{
  nrmw_quality quality{};
  quality.reliable = qos.reliability == RMW_QOS_POLICY_RELIABILITY_RELIABLE;
  quality.transient_local = qos.durability == RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL;
  quality.keep_all = qos.history == RMW_QOS_POLICY_HISTORY_KEEP_ALL;
  quality.depth = static_cast<uint32_t>(std::min<size_t>(qos.depth, UINT32_MAX));
  quality.deadline_ns = ns_of(qos.deadline);
  quality.lifespan_ns = ns_of(qos.lifespan);
  return quality;
}

rmw_qos_profile_t qos_of(const nrmw_quality & quality)
{
  rmw_qos_profile_t qos = rmw_qos_profile_default;
  // Without a depth it is a subscription of another context, which does not announce its history.
  const auto keep_last = quality.depth == 0 ? RMW_QOS_POLICY_HISTORY_UNKNOWN : RMW_QOS_POLICY_HISTORY_KEEP_LAST;
  qos.history = quality.keep_all ? RMW_QOS_POLICY_HISTORY_KEEP_ALL : keep_last;
  qos.depth = quality.depth;
  qos.reliability =
    quality.reliable ? RMW_QOS_POLICY_RELIABILITY_RELIABLE : RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
  qos.durability = quality.transient_local ?
    RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL : RMW_QOS_POLICY_DURABILITY_VOLATILE;
  qos.deadline = time_of(quality.deadline_ns);
  qos.lifespan = time_of(quality.lifespan_ns);
  qos.liveliness = RMW_QOS_POLICY_LIVELINESS_AUTOMATIC;
  qos.liveliness_lease_duration = kInfinite;
  return qos;
}

}  // namespace rmw_noctule

namespace
{

// Adds a sentence, as far as there is room.
void note(char * reason, size_t reason_size, const char * sentence)
{
  if (reason == nullptr) {
    return;
  }
  const size_t length = strnlen(reason, reason_size);
  if (length < reason_size) {
    std::snprintf(reason + length, reason_size - length, "%s", sentence);
  }
}

template<typename Policy>
bool is_open(Policy policy, Policy system_default, Policy unknown)
{
  return policy == system_default || policy == unknown;
}

}  // namespace

extern "C" rmw_ret_t rmw_qos_profile_check_compatible(
  const rmw_qos_profile_t publisher, const rmw_qos_profile_t subscription,
  rmw_qos_compatibility_type_t * compatibility, char * reason, size_t reason_size)
{
  CHECK_GIVEN(compatibility);
  if (reason == nullptr && reason_size != 0) {
    RMW_SET_ERROR_MSG("no place for the reason is given, but it has a size");
    return RMW_RET_INVALID_ARGUMENT;
  }
  if (reason != nullptr && reason_size > 0) {
    reason[0] = '\0';
  }
  *compatibility = RMW_QOS_COMPATIBILITY_OK;
  const auto is = [&](rmw_qos_compatibility_type_t found, const char * sentence) {
      // A certain fault comes before a possible one.
      if (*compatibility != RMW_QOS_COMPATIBILITY_ERROR) {
        *compatibility = found;
      }
      note(reason, reason_size, sentence);
    };
  const bool reliability_is_open =
    is_open(publisher.reliability, RMW_QOS_POLICY_RELIABILITY_SYSTEM_DEFAULT, RMW_QOS_POLICY_RELIABILITY_UNKNOWN);
  if (subscription.reliability == RMW_QOS_POLICY_RELIABILITY_RELIABLE) {
    if (publisher.reliability == RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT) {
      is(RMW_QOS_COMPATIBILITY_ERROR, "ERROR: Best effort publisher and reliable subscription;");
    } else if (reliability_is_open) {
      is(RMW_QOS_COMPATIBILITY_WARNING, "WARNING: Publisher may be best effort and subscription is reliable;");
    }
  } else if (
    publisher.reliability == RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT &&
    is_open(subscription.reliability, RMW_QOS_POLICY_RELIABILITY_SYSTEM_DEFAULT, RMW_QOS_POLICY_RELIABILITY_UNKNOWN))
  {
    is(RMW_QOS_COMPATIBILITY_WARNING, "WARNING: Publisher is best effort and subscription may be reliable;");
  }
  const bool durability_is_open =
    is_open(publisher.durability, RMW_QOS_POLICY_DURABILITY_SYSTEM_DEFAULT, RMW_QOS_POLICY_DURABILITY_UNKNOWN);
  if (subscription.durability == RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL) {
    if (publisher.durability == RMW_QOS_POLICY_DURABILITY_VOLATILE) {
      is(RMW_QOS_COMPATIBILITY_ERROR, "ERROR: Volatile publisher and transient local subscription;");
    } else if (durability_is_open) {
      is(RMW_QOS_COMPATIBILITY_WARNING, "WARNING: Publisher may be volatile and subscription is transient local;");
    }
  } else if (
    publisher.durability == RMW_QOS_POLICY_DURABILITY_VOLATILE &&
    is_open(subscription.durability, RMW_QOS_POLICY_DURABILITY_SYSTEM_DEFAULT, RMW_QOS_POLICY_DURABILITY_UNKNOWN))
  {
    is(RMW_QOS_COMPATIBILITY_WARNING, "WARNING: Publisher is volatile and subscription may be transient local;");
  }
  const int64_t offered = rmw_noctule::quality_of(publisher).deadline_ns;
  const int64_t asked = rmw_noctule::quality_of(subscription).deadline_ns;
  if (asked != 0 && offered == 0) {
    is(RMW_QOS_COMPATIBILITY_ERROR, "ERROR: Subscription has a deadline, but publisher does not;");
  } else if (asked != 0 && offered > asked) {
    is(RMW_QOS_COMPATIBILITY_ERROR, "ERROR: Subscription deadline is less than publisher deadline;");
  }
  return RMW_RET_OK;
}
