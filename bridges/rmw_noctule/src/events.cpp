// Events of publishers and subscriptions.
#include "events.hpp"

#include <algorithm>
#include <limits>

#include "rmw/events_statuses/events_statuses.h"
#include "rmw/qos_policy_kind.h"
#include "types.hpp"

namespace
{

// NRMW_MATCHED … for an event; a number of no kind if it is none of a publisher, or of a subscription.
constexpr uint32_t kNone = 99;

uint32_t kind_of(rmw_event_type_t type)
{
  switch (type) {
    case RMW_EVENT_PUBLICATION_MATCHED: case RMW_EVENT_SUBSCRIPTION_MATCHED: return NRMW_MATCHED;
    case RMW_EVENT_OFFERED_DEADLINE_MISSED: case RMW_EVENT_REQUESTED_DEADLINE_MISSED: return NRMW_DEADLINE;
    case RMW_EVENT_OFFERED_QOS_INCOMPATIBLE: case RMW_EVENT_REQUESTED_QOS_INCOMPATIBLE:
      return NRMW_INCOMPATIBLE_QOS;
    case RMW_EVENT_PUBLISHER_INCOMPATIBLE_TYPE: case RMW_EVENT_SUBSCRIPTION_INCOMPATIBLE_TYPE:
      return NRMW_INCOMPATIBLE_TYPE;
    case RMW_EVENT_LIVELINESS_LOST: case RMW_EVENT_LIVELINESS_CHANGED: return NRMW_LIVELINESS;
    case RMW_EVENT_MESSAGE_LOST: return NRMW_LOST;
    default: return kNone;
  }
}

bool is_of_publisher(rmw_event_type_t type)
{
  return type >= RMW_EVENT_LIVELINESS_LOST && type < RMW_EVENT_INVALID;
}

int32_t narrow(uint64_t count)
{
  return static_cast<int32_t>(std::min<uint64_t>(count, std::numeric_limits<int32_t>::max()));
}

template<typename Status>
void fill(const nrmw_status & from, void * to)
{
  auto * status = static_cast<Status *>(to);
  status->total_count = narrow(from.total);
  status->total_count_change = narrow(from.total_change);
}

void fill_matched(const nrmw_status & from, void * to)
{
  auto * status = static_cast<rmw_matched_status_t *>(to);
  status->total_count = from.total;
  status->total_count_change = from.total_change;
  status->current_count = from.current;
  status->current_count_change = static_cast<int32_t>(from.current_change);
}

void fill_liveliness(const nrmw_status & from, void * to)
{
  auto * status = static_cast<rmw_liveliness_changed_status_t *>(to);
  *status = {};
  status->alive_count = narrow(from.current);
  status->alive_count_change = static_cast<int32_t>(from.current_change);
}

rmw_qos_policy_kind_t policy_of(uint32_t policy)
{
  switch (policy) {
    case NRMW_POLICY_DURABILITY: return RMW_QOS_POLICY_DURABILITY;
    case NRMW_POLICY_DEADLINE: return RMW_QOS_POLICY_DEADLINE;
    case NRMW_POLICY_RELIABILITY: return RMW_QOS_POLICY_RELIABILITY;
    default: return RMW_QOS_POLICY_INVALID;
  }
}

rmw_ret_t init(rmw_event_t * event, void * source, rmw_event_type_t type, bool is_publisher)
{
  if (event->implementation_identifier != nullptr) {
    RMW_SET_ERROR_MSG("the event is initialized already; finalize it first");
    return RMW_RET_INVALID_ARGUMENT;
  }
  if (kind_of(type) == kNone || is_of_publisher(type) != is_publisher) {
    RMW_SET_ERROR_MSG("a publisher, or a subscription, has no event of this kind");
    return RMW_RET_UNSUPPORTED;
  }
  event->implementation_identifier = rmw_noctule_identifier;
  event->data = source;
  event->event_type = type;
  return RMW_RET_OK;
}

nrmw_status take(const rmw_event_t & event)
{
  const uint32_t kind = kind_of(event.event_type);
  if (is_of_publisher(event.event_type)) {
    return nrmw_writer_status(static_cast<rmw_noctule::Publisher *>(event.data)->writer, kind);
  }
  return nrmw_reader_status(static_cast<rmw_noctule::Subscription *>(event.data)->reader, kind);
}

}  // namespace

nrmw_waitable * rmw_noctule::waitable_of(const rmw_event_t & event)
{
  const uint32_t kind = kind_of(event.event_type);
  if (is_of_publisher(event.event_type)) {
    return nrmw_writer_event(static_cast<Publisher *>(event.data)->writer, kind);
  }
  return nrmw_reader_event(static_cast<Subscription *>(event.data)->reader, kind);
}

extern "C"
{

rmw_ret_t rmw_publisher_event_init(
  rmw_event_t * rmw_event, const rmw_publisher_t * publisher, rmw_event_type_t event_type)
{
  CHECK_GIVEN(rmw_event);
  CHECK_HANDLE(publisher);
  return init(rmw_event, publisher->data, event_type, true);
}

rmw_ret_t rmw_subscription_event_init(
  rmw_event_t * rmw_event, const rmw_subscription_t * subscription, rmw_event_type_t event_type)
{
  CHECK_GIVEN(rmw_event);
  CHECK_HANDLE(subscription);
  return init(rmw_event, subscription->data, event_type, false);
}

rmw_ret_t rmw_event_set_callback(rmw_event_t * event, rmw_event_callback_t callback, const void * user_data)
{
  CHECK_HANDLE(event);
  nrmw_waitable_listen(rmw_noctule::waitable_of(*event), callback, user_data);
  return RMW_RET_OK;
}

rmw_ret_t rmw_take_event(const rmw_event_t * event_handle, void * event_info, bool * taken)
{
  CHECK_HANDLE(event_handle);
  CHECK_GIVEN(event_info);
  CHECK_GIVEN(taken);
  const nrmw_status status = take(*event_handle);
  switch (event_handle->event_type) {
    case RMW_EVENT_PUBLICATION_MATCHED: case RMW_EVENT_SUBSCRIPTION_MATCHED:
      fill_matched(status, event_info);
      break;
    case RMW_EVENT_LIVELINESS_CHANGED:
      fill_liveliness(status, event_info);
      break;
    case RMW_EVENT_LIVELINESS_LOST:
      // A publisher is alive as long as its node is.
      *static_cast<rmw_liveliness_lost_status_t *>(event_info) = {};
      break;
    case RMW_EVENT_OFFERED_QOS_INCOMPATIBLE: case RMW_EVENT_REQUESTED_QOS_INCOMPATIBLE:
      fill<rmw_qos_incompatible_event_status_t>(status, event_info);
      static_cast<rmw_qos_incompatible_event_status_t *>(event_info)->last_policy_kind = policy_of(status.policy);
      break;
    case RMW_EVENT_MESSAGE_LOST:
      fill<rmw_message_lost_status_t>(status, event_info);
      break;
    case RMW_EVENT_PUBLISHER_INCOMPATIBLE_TYPE: case RMW_EVENT_SUBSCRIPTION_INCOMPATIBLE_TYPE:
      fill<rmw_incompatible_type_status_t>(status, event_info);
      break;
    default:
      fill<rmw_offered_deadline_missed_status_t>(status, event_info);
      break;
  }
  *taken = true;
  return RMW_RET_OK;
}

}  // extern "C"
