// Serialization without a topic.
#include "serialized.hpp"
#include "types.hpp"

extern "C"
{

rmw_ret_t rmw_serialize(
  const void * ros_message, const rosidl_message_type_support_t * type_support,
  rmw_serialized_message_t * serialized_message)
{
  CHECK_GIVEN(ros_message);
  CHECK_GIVEN(type_support);
  CHECK_GIVEN(serialized_message);
  rmw_noctule::MessageType type;
  if (!type.init(type_support)) {
    return RMW_RET_ERROR;
  }
  const size_t length = type.bytes_of(ros_message);
  if (serialized_message->buffer_capacity < length) {
    const rmw_ret_t resized = rmw_serialized_message_resize(serialized_message, length);
    if (resized != RMW_RET_OK) {
      RMW_SET_ERROR_MSG("no memory for the serialized message");
      return resized;
    }
  }
  const size_t written = type.write(ros_message, serialized_message->buffer, length);
  if (written == 0) {
    return RMW_RET_ERROR;
  }
  serialized_message->buffer_length = written;
  return RMW_RET_OK;
}

rmw_ret_t rmw_deserialize(
  const rmw_serialized_message_t * serialized_message, const rosidl_message_type_support_t * type_support,
  void * ros_message)
{
  CHECK_GIVEN(serialized_message);
  CHECK_GIVEN(type_support);
  CHECK_GIVEN(ros_message);
  rmw_noctule::MessageType type;
  if (!type.init(type_support)) {
    return RMW_RET_ERROR;
  }
  if (!rmw_noctule::is_cdr(*serialized_message)) {
    RMW_SET_ERROR_MSG("the serialized message does not begin with the header of CDR version 1");
    return RMW_RET_ERROR;
  }
  const bool is_read = type.read(serialized_message->buffer, serialized_message->buffer_length, ros_message);
  return is_read ? RMW_RET_OK : RMW_RET_ERROR;
}

rmw_ret_t rmw_get_serialized_message_size(
  const rosidl_message_type_support_t *, const rosidl_runtime_c__Sequence__bound *, size_t *)
{
  RMW_SET_ERROR_MSG("rmw_noctule does not compute sizes from bounds; serialize a message");
  return RMW_RET_UNSUPPORTED;
}

}  // extern "C"
