// Subscriptions.
#include <cstring>
#include <memory>

#include "rmw/allocators.h"
#include "rmw/get_network_flow_endpoints.h"
#include "topic_name.hpp"
#include "types.hpp"

using rmw_noctule::Subscription;

namespace
{

Subscription * of(const rmw_subscription_t * subscription) {return static_cast<Subscription *>(subscription->data);}

void fill(const nrmw_message & message, rmw_message_info_t & info)
{
  info = rmw_get_zero_initialized_message_info();
  // A publisher whose clock is not known yet: there is no better guess than its arrival.
  info.source_timestamp = message.source_ns == INT64_MIN ? message.received_ns : message.source_ns;
  info.received_timestamp = message.received_ns;
  info.publication_sequence_number = static_cast<uint64_t>(message.number);
  info.reception_sequence_number = message.received;
  info.publisher_gid.implementation_identifier = rmw_noctule_identifier;
  std::memcpy(info.publisher_gid.data, message.gid, sizeof(message.gid));
  info.from_intra_process = false;
}

rmw_ret_t take(const Subscription & subscription, void * ros_message, bool * taken, rmw_message_info_t * info)
{
  *taken = false;
  nrmw_message message{};
  if (!nrmw_reader_take(subscription.reader, &message)) {
    return RMW_RET_OK;
  }
  const bool is_read = subscription.type.read(message.bytes, message.length, ros_message);
  if (is_read && info != nullptr) {
    fill(message, *info);
  }
  nrmw_message_free(&message);
  *taken = is_read;
  return is_read ? RMW_RET_OK : RMW_RET_ERROR;
}

rmw_ret_t take_serialized(
  const Subscription & subscription, rmw_serialized_message_t * serialized, bool * taken, rmw_message_info_t * info)
{
  *taken = false;
  nrmw_message message{};
  if (!nrmw_reader_take(subscription.reader, &message)) {
    return RMW_RET_OK;
  }
  rmw_ret_t done = RMW_RET_OK;
  if (serialized->buffer_capacity < message.length) {
    done = rmw_serialized_message_resize(serialized, message.length);
  }
  if (done == RMW_RET_OK) {
    std::memcpy(serialized->buffer, message.bytes, message.length);
    serialized->buffer_length = message.length;
    *taken = true;
    if (info != nullptr) {
      fill(message, *info);
    }
  }
  nrmw_message_free(&message);
  return done;
}

// Whether messages are lent; else the error is set.
bool lends(const rmw_subscription_t * subscription)
{
  if (!subscription->can_loan_messages) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING(
      "%s has strings or sequences, or lies in memory otherwise than in CDR: no message of it is lent; take copies",
      of(subscription)->type.name().c_str());
  }
  return subscription->can_loan_messages;
}

rmw_ret_t take_loaned(
  const rmw_subscription_t * subscription, void ** loaned_message, bool * taken, rmw_message_info_t * info)
{
  if (!lends(subscription)) {
    return RMW_RET_UNSUPPORTED;
  }
  CHECK_GIVEN(loaned_message);
  CHECK_GIVEN(taken);
  if (*loaned_message != nullptr) {
    RMW_SET_ERROR_MSG("the place for a loan has one already; give it back, and set it to null");
    return RMW_RET_INVALID_ARGUMENT;
  }
  *taken = false;
  Subscription & data = *of(subscription);
  nrmw_message message{};
  if (!nrmw_reader_take(data.reader, &message)) {
    return RMW_RET_OK;
  }
  if (info != nullptr) {
    fill(message, *info);
  }
  *loaned_message = data.loans.lend(data.type, data.plain, message);
  *taken = *loaned_message != nullptr;
  return *taken ? RMW_RET_OK : RMW_RET_ERROR;
}

}  // namespace

extern "C"
{

rmw_subscription_t * rmw_create_subscription(
  const rmw_node_t * node, const rosidl_message_type_support_t * type_support, const char * topic_name,
  const rmw_qos_profile_t * qos_profile, const rmw_subscription_options_t * options)
{
  RMW_CHECK_ARGUMENT_FOR_NULL(node, nullptr);
  CHECK_OURS(node, return nullptr);
  RMW_CHECK_ARGUMENT_FOR_NULL(type_support, nullptr);
  RMW_CHECK_ARGUMENT_FOR_NULL(qos_profile, nullptr);
  RMW_CHECK_ARGUMENT_FOR_NULL(options, nullptr);
  if (!rmw_noctule::is_topic_name(topic_name, *qos_profile)) {
    return nullptr;
  }
  if (options->require_unique_network_flow_endpoints == RMW_UNIQUE_NETWORK_FLOW_ENDPOINTS_STRICTLY_REQUIRED) {
    RMW_SET_ERROR_MSG("rmw_noctule has one network flow for a node; do not require unique ones");
    return nullptr;
  }
  auto data = std::make_unique<Subscription>();
  if (
    !data->type.init(type_support) ||
    !rmw_noctule::decide(*qos_profile, node, topic_name, false, data->qos))
  {
    return nullptr;
  }
  data->topic = topic_name;
  data->plain = rmw_noctule::plain_of(type_support);
  const nrmw_topic topic =
    rmw_noctule::topic_of(rmw_noctule::node_of(node), topic_name, data->type, data->plain, data->qos);
  nrmw_error error{};
  data->reader = nrmw_reader_open(rmw_noctule::node_of(node), &topic, options->ignore_local_publications, &error);
  if (data->reader == nullptr) {
    rmw_noctule::fail("the subscription cannot be opened", error);
    return nullptr;
  }
  auto * subscription = new rmw_subscription_t{};
  subscription->implementation_identifier = rmw_noctule_identifier;
  subscription->topic_name = data->topic.c_str();
  subscription->options = *options;
  subscription->can_loan_messages = static_cast<bool>(data->plain);
  subscription->is_cft_enabled = false;
  subscription->data = data.release();
  return subscription;
}

rmw_ret_t rmw_destroy_subscription(rmw_node_t * node, rmw_subscription_t * subscription)
{
  CHECK_GIVEN(node);
  CHECK_GIVEN(subscription);
  CHECK_OURS(node, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  CHECK_OURS(subscription, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  nrmw_reader_free(of(subscription)->reader);
  delete of(subscription);
  delete subscription;
  return RMW_RET_OK;
}

rmw_ret_t rmw_subscription_count_matched_publishers(const rmw_subscription_t * subscription, size_t * publisher_count)
{
  CHECK_GIVEN(subscription);
  CHECK_GIVEN(publisher_count);
  CHECK_OURS(subscription, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  *publisher_count = nrmw_reader_matched(of(subscription)->reader);
  return RMW_RET_OK;
}

rmw_ret_t rmw_subscription_get_actual_qos(const rmw_subscription_t * subscription, rmw_qos_profile_t * qos)
{
  CHECK_GIVEN(subscription);
  CHECK_GIVEN(qos);
  CHECK_OURS(subscription, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  *qos = of(subscription)->qos;
  return RMW_RET_OK;
}

rmw_ret_t rmw_take(
  const rmw_subscription_t * subscription, void * ros_message, bool * taken, rmw_subscription_allocation_t *)
{
  CHECK_HANDLE(subscription);
  CHECK_GIVEN(ros_message);
  CHECK_GIVEN(taken);
  return take(*of(subscription), ros_message, taken, nullptr);
}

rmw_ret_t rmw_take_with_info(
  const rmw_subscription_t * subscription, void * ros_message, bool * taken, rmw_message_info_t * message_info,
  rmw_subscription_allocation_t *)
{
  CHECK_HANDLE(subscription);
  CHECK_GIVEN(ros_message);
  CHECK_GIVEN(taken);
  CHECK_GIVEN(message_info);
  return take(*of(subscription), ros_message, taken, message_info);
}

rmw_ret_t rmw_take_sequence(
  const rmw_subscription_t * subscription, size_t count, rmw_message_sequence_t * message_sequence,
  rmw_message_info_sequence_t * message_info_sequence, size_t * taken, rmw_subscription_allocation_t *)
{
  CHECK_HANDLE(subscription);
  CHECK_GIVEN(message_sequence);
  CHECK_GIVEN(message_info_sequence);
  CHECK_GIVEN(taken);
  if (count == 0) {
    RMW_SET_ERROR_MSG("a sequence of no messages is asked for; ask for one at least");
    return RMW_RET_INVALID_ARGUMENT;
  }
  if (count > message_sequence->capacity || count > message_info_sequence->capacity) {
    RMW_SET_ERROR_MSG("more messages are asked for than the sequences have room for");
    return RMW_RET_INVALID_ARGUMENT;
  }
  *taken = 0;
  rmw_ret_t done = RMW_RET_OK;
  while (*taken < count && done == RMW_RET_OK) {
    bool is_taken = false;
    done = take(
      *of(subscription), message_sequence->data[*taken], &is_taken, &message_info_sequence->data[*taken]);
    if (!is_taken) {
      break;
    }
    ++*taken;
  }
  message_sequence->size = *taken;
  message_info_sequence->size = *taken;
  return done;
}

rmw_ret_t rmw_take_serialized_message(
  const rmw_subscription_t * subscription, rmw_serialized_message_t * serialized_message, bool * taken,
  rmw_subscription_allocation_t *)
{
  CHECK_HANDLE(subscription);
  CHECK_GIVEN(serialized_message);
  CHECK_GIVEN(taken);
  return take_serialized(*of(subscription), serialized_message, taken, nullptr);
}

rmw_ret_t rmw_take_serialized_message_with_info(
  const rmw_subscription_t * subscription, rmw_serialized_message_t * serialized_message, bool * taken,
  rmw_message_info_t * message_info, rmw_subscription_allocation_t *)
{
  CHECK_HANDLE(subscription);
  CHECK_GIVEN(serialized_message);
  CHECK_GIVEN(taken);
  CHECK_GIVEN(message_info);
  return take_serialized(*of(subscription), serialized_message, taken, message_info);
}

rmw_ret_t rmw_take_loaned_message(
  const rmw_subscription_t * subscription, void ** loaned_message, bool * taken, rmw_subscription_allocation_t *)
{
  CHECK_HANDLE(subscription);
  return take_loaned(subscription, loaned_message, taken, nullptr);
}

rmw_ret_t rmw_take_loaned_message_with_info(
  const rmw_subscription_t * subscription, void ** loaned_message, bool * taken, rmw_message_info_t * message_info,
  rmw_subscription_allocation_t *)
{
  CHECK_HANDLE(subscription);
  CHECK_GIVEN(message_info);
  return take_loaned(subscription, loaned_message, taken, message_info);
}

rmw_ret_t rmw_return_loaned_message_from_subscription(
  const rmw_subscription_t * subscription, void * loaned_message)
{
  CHECK_HANDLE(subscription);
  if (!lends(subscription)) {
    return RMW_RET_UNSUPPORTED;
  }
  CHECK_GIVEN(loaned_message);
  if (!of(subscription)->loans.give_back(loaned_message)) {
    RMW_SET_ERROR_MSG("this subscription has lent no such message");
    return RMW_RET_ERROR;
  }
  return RMW_RET_OK;
}

rmw_ret_t rmw_take_dynamic_message(
  const rmw_subscription_t *, rosidl_dynamic_typesupport_dynamic_data_t *, bool *, rmw_subscription_allocation_t *)
{
  RMW_SET_ERROR_MSG("rmw_noctule has no dynamic messages");
  return RMW_RET_UNSUPPORTED;
}

rmw_ret_t rmw_take_dynamic_message_with_info(
  const rmw_subscription_t *, rosidl_dynamic_typesupport_dynamic_data_t *, bool *, rmw_message_info_t *,
  rmw_subscription_allocation_t *)
{
  RMW_SET_ERROR_MSG("rmw_noctule has no dynamic messages");
  return RMW_RET_UNSUPPORTED;
}

rmw_ret_t rmw_serialization_support_init(
  const char *, rcutils_allocator_t *, rosidl_dynamic_typesupport_serialization_support_t *)
{
  RMW_SET_ERROR_MSG("rmw_noctule has no dynamic messages");
  return RMW_RET_UNSUPPORTED;
}

rmw_ret_t rmw_subscription_set_content_filter(
  rmw_subscription_t *, const rmw_subscription_content_filter_options_t *)
{
  RMW_SET_ERROR_MSG("rmw_noctule does not filter by content; filter in the callback");
  return RMW_RET_UNSUPPORTED;
}

rmw_ret_t rmw_subscription_get_content_filter(
  const rmw_subscription_t *, rcutils_allocator_t *, rmw_subscription_content_filter_options_t *)
{
  RMW_SET_ERROR_MSG("rmw_noctule does not filter by content; filter in the callback");
  return RMW_RET_UNSUPPORTED;
}

rmw_ret_t rmw_init_subscription_allocation(
  const rosidl_message_type_support_t *, const rosidl_runtime_c__Sequence__bound *, rmw_subscription_allocation_t *)
{
  RMW_SET_ERROR_MSG("rmw_noctule needs no allocation for messages; pass none");
  return RMW_RET_UNSUPPORTED;
}

rmw_ret_t rmw_fini_subscription_allocation(rmw_subscription_allocation_t *)
{
  RMW_SET_ERROR_MSG("rmw_noctule needs no allocation for messages; pass none");
  return RMW_RET_UNSUPPORTED;
}

rmw_ret_t rmw_subscription_get_network_flow_endpoints(
  const rmw_subscription_t *, rcutils_allocator_t *, rmw_network_flow_endpoint_array_t *)
{
  RMW_SET_ERROR_MSG("rmw_noctule does not list network flows; `noctule topics` shows which node sends to which");
  return RMW_RET_UNSUPPORTED;
}

rmw_ret_t rmw_subscription_set_on_new_message_callback(
  rmw_subscription_t * subscription, rmw_event_callback_t callback, const void * user_data)
{
  CHECK_HANDLE(subscription);
  nrmw_waitable_listen(nrmw_reader_waitable(of(subscription)->reader), callback, user_data);
  return RMW_RET_OK;
}

}  // extern "C"
