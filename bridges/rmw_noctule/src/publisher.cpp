// Publishers.
#include <algorithm>
#include <iterator>
#include <memory>

#include "rmw/allocators.h"
#include "rmw/get_network_flow_endpoints.h"
#include "rmw/validate_full_topic_name.h"
#include "serialized.hpp"
#include "topic_name.hpp"
#include "types.hpp"

using rmw_noctule::Publisher;

namespace
{

Publisher * of(const rmw_publisher_t * publisher) {return static_cast<Publisher *>(publisher->data);}

rmw_ret_t sent(int done, const nrmw_error & error)
{
  if (done == 0) {
    return RMW_RET_OK;
  }
  rmw_noctule::fail("the message was not published", error);
  return done == 1 ? RMW_RET_TIMEOUT : RMW_RET_ERROR;
}

rmw_ret_t send(const Publisher & publisher, const uint8_t * bytes, size_t length)
{
  nrmw_error error{};
  return sent(nrmw_writer_publish(publisher.writer, bytes, length, &error), error);
}

// Whether messages are lent; else the error is set.
bool lends(const rmw_publisher_t * publisher)
{
  if (!publisher->can_loan_messages) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING(
      "%s has strings or sequences, or lies in memory otherwise than in CDR: no message of it is lent; publish one of your own",
      of(publisher)->type.name().c_str());
  }
  return publisher->can_loan_messages;
}

}  // namespace

extern "C"
{

rmw_publisher_t * rmw_create_publisher(
  const rmw_node_t * node, const rosidl_message_type_support_t * type_support, const char * topic_name,
  const rmw_qos_profile_t * qos_profile, const rmw_publisher_options_t * options)
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
  auto data = std::make_unique<Publisher>();
  if (
    !data->type.init(type_support) ||
    !rmw_noctule::decide(*qos_profile, node, topic_name, true, data->qos))
  {
    return nullptr;
  }
  data->context = node->context;
  data->topic = topic_name;
  data->plain = rmw_noctule::plain_of(type_support);
  const nrmw_topic topic =
    rmw_noctule::topic_of(rmw_noctule::node_of(node), topic_name, data->type, data->plain, data->qos);
  nrmw_error error{};
  data->writer = nrmw_writer_open(rmw_noctule::node_of(node), &topic, &error);
  if (data->writer == nullptr) {
    rmw_noctule::fail("the publisher cannot be opened", error);
    return nullptr;
  }
  auto * publisher = new rmw_publisher_t{};
  publisher->implementation_identifier = rmw_noctule_identifier;
  publisher->topic_name = data->topic.c_str();
  publisher->options = *options;
  publisher->can_loan_messages = static_cast<bool>(data->plain);
  publisher->data = data.release();
  return publisher;
}

rmw_ret_t rmw_destroy_publisher(rmw_node_t * node, rmw_publisher_t * publisher)
{
  CHECK_GIVEN(node);
  CHECK_GIVEN(publisher);
  CHECK_OURS(node, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  CHECK_OURS(publisher, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  nrmw_writer_free(of(publisher)->writer);
  delete of(publisher);
  delete publisher;
  return RMW_RET_OK;
}

rmw_ret_t rmw_publish(const rmw_publisher_t * publisher, const void * ros_message, rmw_publisher_allocation_t *)
{
  RMW_CHECK_FOR_NULL_WITH_MSG(publisher, "no publisher is given", return RMW_RET_INVALID_ARGUMENT);
  CHECK_OURS(publisher, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  RMW_CHECK_FOR_NULL_WITH_MSG(ros_message, "no message is given", return RMW_RET_INVALID_ARGUMENT);
  const Publisher & data = *of(publisher);
  // Kept from one message to the next, and given back after a large one.
  constexpr size_t kKeptBytes = 1 << 20;
  static thread_local std::vector<uint8_t> buffer;
  buffer.resize(data.type.bytes_of(ros_message));
  const size_t length = data.type.write(ros_message, buffer.data(), buffer.size());
  if (length == 0) {
    return RMW_RET_ERROR;
  }
  const rmw_ret_t done = send(data, buffer.data(), length);
  if (buffer.capacity() > kKeptBytes) {
    std::vector<uint8_t>().swap(buffer);
  }
  return done;
}

rmw_ret_t rmw_publish_serialized_message(
  const rmw_publisher_t * publisher, const rmw_serialized_message_t * serialized_message,
  rmw_publisher_allocation_t *)
{
  RMW_CHECK_FOR_NULL_WITH_MSG(publisher, "no publisher is given", return RMW_RET_INVALID_ARGUMENT);
  CHECK_OURS(publisher, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  RMW_CHECK_FOR_NULL_WITH_MSG(serialized_message, "no message is given", return RMW_RET_INVALID_ARGUMENT);
  if (!rmw_noctule::is_cdr(*serialized_message)) {
    RMW_SET_ERROR_MSG("the serialized message does not begin with the header of CDR version 1");
    return RMW_RET_ERROR;
  }
  return send(*of(publisher), serialized_message->buffer, serialized_message->buffer_length);
}

// The loan begins behind the header of CDR, which lies there before it.
rmw_ret_t rmw_borrow_loaned_message(
  const rmw_publisher_t * publisher, const rosidl_message_type_support_t * type_support, void ** ros_message)
{
  CHECK_HANDLE(publisher);
  if (!lends(publisher)) {
    return RMW_RET_UNSUPPORTED;
  }
  CHECK_GIVEN(type_support);
  CHECK_GIVEN(ros_message);
  if (*ros_message != nullptr) {
    RMW_SET_ERROR_MSG("the place for a loan has one already; give it back or publish it, and set it to null");
    return RMW_RET_INVALID_ARGUMENT;
  }
  const Publisher & data = *of(publisher);
  nrmw_error error{};
  uint8_t * place = nrmw_writer_lend(data.writer, rmw_noctule::kHeaderBytes + data.plain.size, &error);
  if (place == nullptr) {
    rmw_noctule::fail("no message is lent", error);
    return RMW_RET_ERROR;
  }
  constexpr uint8_t kHeader[rmw_noctule::kHeaderBytes] = {0, 1, 0, 0};
  std::copy(std::begin(kHeader), std::end(kHeader), place);
  *ros_message = place + rmw_noctule::kHeaderBytes;
  return RMW_RET_OK;
}

rmw_ret_t rmw_return_loaned_message_from_publisher(const rmw_publisher_t * publisher, void * loaned_message)
{
  CHECK_HANDLE(publisher);
  if (!lends(publisher)) {
    return RMW_RET_UNSUPPORTED;
  }
  CHECK_GIVEN(loaned_message);
  const uint8_t * place = static_cast<uint8_t *>(loaned_message) - rmw_noctule::kHeaderBytes;
  if (!nrmw_writer_give_back(of(publisher)->writer, place)) {
    RMW_SET_ERROR_MSG("this publisher has lent no such message");
    return RMW_RET_ERROR;
  }
  return RMW_RET_OK;
}

rmw_ret_t rmw_publish_loaned_message(
  const rmw_publisher_t * publisher, void * ros_message, rmw_publisher_allocation_t *)
{
  CHECK_HANDLE(publisher);
  if (!lends(publisher)) {
    return RMW_RET_UNSUPPORTED;
  }
  CHECK_GIVEN(ros_message);
  const Publisher & data = *of(publisher);
  const uint8_t * place = static_cast<uint8_t *>(ros_message) - rmw_noctule::kHeaderBytes;
  nrmw_error error{};
  const size_t length = rmw_noctule::kHeaderBytes + data.plain.bytes;
  return sent(nrmw_writer_publish_lent(data.writer, place, length, &error), error);
}

rmw_ret_t rmw_publisher_count_matched_subscriptions(const rmw_publisher_t * publisher, size_t * subscription_count)
{
  CHECK_GIVEN(publisher);
  CHECK_GIVEN(subscription_count);
  CHECK_OURS(publisher, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  *subscription_count = nrmw_writer_matched(of(publisher)->writer);
  return RMW_RET_OK;
}

rmw_ret_t rmw_publisher_get_actual_qos(const rmw_publisher_t * publisher, rmw_qos_profile_t * qos)
{
  CHECK_GIVEN(publisher);
  CHECK_GIVEN(qos);
  CHECK_OURS(publisher, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  *qos = of(publisher)->qos;
  return RMW_RET_OK;
}

rmw_ret_t rmw_publisher_assert_liveliness(const rmw_publisher_t * publisher)
{
  CHECK_HANDLE(publisher);
  // A node is alive as long as discovery hears it.
  return RMW_RET_OK;
}

rmw_ret_t rmw_publisher_wait_for_all_acked(const rmw_publisher_t * publisher, rmw_time_t wait_timeout)
{
  CHECK_HANDLE(publisher);
  const bool is_endless = rmw_time_equal(wait_timeout, rmw_time_t(RMW_DURATION_INFINITE));
  const int64_t timeout_ns = is_endless ? -1 : rmw_time_total_nsec(wait_timeout);
  return nrmw_writer_wait_for_acknowledgments(of(publisher)->writer, timeout_ns) ? RMW_RET_OK : RMW_RET_TIMEOUT;
}

rmw_ret_t rmw_get_gid_for_publisher(const rmw_publisher_t * publisher, rmw_gid_t * gid)
{
  CHECK_HANDLE(publisher);
  CHECK_GIVEN(gid);
  *gid = rmw_gid_t{};
  gid->implementation_identifier = rmw_noctule_identifier;
  nrmw_writer_gid(of(publisher)->writer, gid->data);
  return RMW_RET_OK;
}

rmw_ret_t rmw_init_publisher_allocation(
  const rosidl_message_type_support_t *, const rosidl_runtime_c__Sequence__bound *, rmw_publisher_allocation_t *)
{
  RMW_SET_ERROR_MSG("rmw_noctule needs no allocation for messages; pass none");
  return RMW_RET_UNSUPPORTED;
}

rmw_ret_t rmw_fini_publisher_allocation(rmw_publisher_allocation_t *)
{
  RMW_SET_ERROR_MSG("rmw_noctule needs no allocation for messages; pass none");
  return RMW_RET_UNSUPPORTED;
}

rmw_ret_t rmw_publisher_get_network_flow_endpoints(
  const rmw_publisher_t *, rcutils_allocator_t *, rmw_network_flow_endpoint_array_t *)
{
  RMW_SET_ERROR_MSG("rmw_noctule does not list network flows; `noctule topics` shows which node sends to which");
  return RMW_RET_UNSUPPORTED;
}

}  // extern "C"
