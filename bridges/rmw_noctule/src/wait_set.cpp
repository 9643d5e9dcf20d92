// Wait sets.
#include <vector>

#include "rmw/allocators.h"
#include "events.hpp"
#include "types.hpp"

using rmw_noctule::Client;
using rmw_noctule::Service;
using rmw_noctule::Subscription;
using rmw_noctule::waitable_of;

namespace
{

struct WaitSet
{
  nrmw_signal * signal;
  std::vector<nrmw_waitable *> waitables;
};

// Each handle's waitable, in the order of the arguments of rmw_wait.
void collect(
  rmw_subscriptions_t * subscriptions, rmw_guard_conditions_t * guards, rmw_services_t * services,
  rmw_clients_t * clients, rmw_events_t * events, std::vector<nrmw_waitable *> & waitables)
{
  waitables.clear();
  for (size_t at = 0; subscriptions != nullptr && at < subscriptions->subscriber_count; ++at) {
    waitables.push_back(nrmw_reader_waitable(static_cast<Subscription *>(subscriptions->subscribers[at])->reader));
  }
  for (size_t at = 0; guards != nullptr && at < guards->guard_condition_count; ++at) {
    waitables.push_back(static_cast<nrmw_waitable *>(guards->guard_conditions[at]));
  }
  for (size_t at = 0; services != nullptr && at < services->service_count; ++at) {
    waitables.push_back(nrmw_server_waitable(static_cast<Service *>(services->services[at])->server));
  }
  for (size_t at = 0; clients != nullptr && at < clients->client_count; ++at) {
    waitables.push_back(nrmw_client_waitable(static_cast<Client *>(clients->clients[at])->client));
  }
  for (size_t at = 0; events != nullptr && at < events->event_count; ++at) {
    waitables.push_back(waitable_of(*static_cast<rmw_event_t *>(events->events[at])));
  }
}

// Handles without anything are replaced by null.
void clear(void ** handles, size_t count, nrmw_waitable * const * & waitable)
{
  for (size_t at = 0; at < count; ++at, ++waitable) {
    if (!nrmw_waitable_is_ready(*waitable)) {
      handles[at] = nullptr;
    }
  }
}

}  // namespace

extern "C"
{

rmw_wait_set_t * rmw_create_wait_set(rmw_context_t * context, size_t max_conditions)
{
  RMW_CHECK_ARGUMENT_FOR_NULL(context, nullptr);
  CHECK_OURS(context, return nullptr);
  rmw_wait_set_t * wait_set = rmw_wait_set_allocate();
  if (wait_set == nullptr) {
    RMW_SET_ERROR_MSG("no memory for a wait set");
    return nullptr;
  }
  auto * data = new WaitSet{nrmw_signal_new(), {}};
  data->waitables.reserve(max_conditions);
  wait_set->implementation_identifier = rmw_noctule_identifier;
  wait_set->guard_conditions = nullptr;
  wait_set->data = data;
  return wait_set;
}

rmw_ret_t rmw_destroy_wait_set(rmw_wait_set_t * wait_set)
{
  RMW_CHECK_FOR_NULL_WITH_MSG(wait_set, "no wait set is given", return RMW_RET_ERROR);
  CHECK_OURS(wait_set, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  auto * data = static_cast<WaitSet *>(wait_set->data);
  nrmw_signal_free(data->signal);
  delete data;
  rmw_wait_set_free(wait_set);
  return RMW_RET_OK;
}

rmw_ret_t rmw_wait(
  rmw_subscriptions_t * subscriptions, rmw_guard_conditions_t * guard_conditions, rmw_services_t * services,
  rmw_clients_t * clients, rmw_events_t * events, rmw_wait_set_t * wait_set, const rmw_time_t * wait_timeout)
{
  CHECK_HANDLE(wait_set);
  auto & data = *static_cast<WaitSet *>(wait_set->data);
  collect(subscriptions, guard_conditions, services, clients, events, data.waitables);
  const bool is_endless =
    wait_timeout == nullptr || rmw_time_equal(*wait_timeout, rmw_time_t(RMW_DURATION_INFINITE));
  const int64_t timeout_ns = is_endless ? -1 : rmw_time_total_nsec(*wait_timeout);
  const bool is_ready = nrmw_wait(data.signal, data.waitables.data(), data.waitables.size(), timeout_ns);
  nrmw_waitable * const * waitable = data.waitables.data();
  if (subscriptions != nullptr) {
    clear(subscriptions->subscribers, subscriptions->subscriber_count, waitable);
  }
  for (size_t at = 0; guard_conditions != nullptr && at < guard_conditions->guard_condition_count; ++at) {
    // A guard condition is taken by being waited for.
    if (!nrmw_waitable_clear(*waitable++)) {
      guard_conditions->guard_conditions[at] = nullptr;
    }
  }
  if (services != nullptr) {
    clear(services->services, services->service_count, waitable);
  }
  if (clients != nullptr) {
    clear(clients->clients, clients->client_count, waitable);
  }
  if (events != nullptr) {
    clear(events->events, events->event_count, waitable);
  }
  return is_ready ? RMW_RET_OK : RMW_RET_TIMEOUT;
}

}  // extern "C"
