#include "type_support.hpp"

#include <cstring>
#include <exception>
#include <set>

#include "fastcdr/Cdr.h"
#include "fastcdr/FastBuffer.h"
#include "rcutils/error_handling.h"
#include "rmw/error_handling.h"
#include "rosidl_runtime_c/type_hash.h"
#include "rosidl_typesupport_fastrtps_c/identifier.h"
#include "rosidl_typesupport_fastrtps_cpp/identifier.hpp"
#include "rosidl_typesupport_fastrtps_cpp/service_type_support.h"
#include "type_description.hpp"

namespace rmw_noctule
{
namespace
{

// rosidl's look-up leaves an error message where it finds nothing.
const rosidl_message_type_support_t * find(const rosidl_message_type_support_t * of)
{
  for (const char * identifier :
    {rosidl_typesupport_fastrtps_c__identifier, rosidl_typesupport_fastrtps_cpp::typesupport_identifier})
  {
    if (const auto * found = get_message_typesupport_handle(of, identifier)) {
      return found;
    }
    rcutils_reset_error();
  }
  return nullptr;
}

const rosidl_service_type_support_t * find(const rosidl_service_type_support_t * of)
{
  for (const char * identifier :
    {rosidl_typesupport_fastrtps_c__identifier, rosidl_typesupport_fastrtps_cpp::typesupport_identifier})
  {
    if (const auto * found = get_service_typesupport_handle(of, identifier)) {
      return found;
    }
    rcutils_reset_error();
  }
  return nullptr;
}

// "std_msgs::msg" and "std_msgs__msg" are "std_msgs/msg".
std::string bus_name(const char * namespace_, const char * name)
{
  std::string text = std::string(namespace_) + "/" + name;
  for (const char * separator : {"::", "__"}) {
    const size_t at = text.find(separator);
    if (at != std::string::npos && at < std::strlen(namespace_)) {
      text.replace(at, 2, "/");
    }
  }
  return text;
}

const uint8_t * bytes_of_hash(const rosidl_type_hash_t * hash)
{
  return hash != nullptr && hash->version == 1 ? hash->value : nullptr;
}

}  // namespace

bool MessageType::init(const rosidl_message_type_support_t * type_support)
{
  type_support_ = find(type_support);
  if (type_support_ == nullptr) {
    RMW_SET_ERROR_MSG(
      "the type has no type support for Fast CDR; build its package with rosidl_typesupport_fastrtps_c and _cpp");
    return false;
  }
  callbacks_ = static_cast<const message_type_support_callbacks_t *>(type_support_->data);
  name_ = bus_name(callbacks_->message_namespace_, callbacks_->message_name_);
  return true;
}

const uint8_t * MessageType::rihs01() const
{
  const auto get = type_support_->get_type_hash_func;
  return get != nullptr ? bytes_of_hash(get(type_support_)) : nullptr;
}

std::string MessageType::description() const
{
  const auto get = type_support_->get_type_description_func;
  const auto * described = get != nullptr ? get(type_support_) : nullptr;
  return described != nullptr ? describe(*described) : std::string();
}

size_t MessageType::bytes_max() const
{
  char bounds = ROSIDL_TYPESUPPORT_FASTRTPS_UNBOUNDED_TYPE;
  const size_t bytes = callbacks_->max_serialized_size(bounds);
  // The largest size does not count the padding of every possible beginning.
  return bounds == ROSIDL_TYPESUPPORT_FASTRTPS_UNBOUNDED_TYPE ? 0 : bytes + kHeaderBytes + 8;
}

size_t MessageType::bytes_of(const void * message) const
{
  return callbacks_->get_serialized_size(message) + kHeaderBytes;
}

size_t MessageType::write(const void * message, uint8_t * buffer, size_t length) const
{
  using eprosima::fastcdr::Cdr;
  try {
    eprosima::fastcdr::FastBuffer place(reinterpret_cast<char *>(buffer), length);
    Cdr cdr(place, Cdr::LITTLE_ENDIANNESS, eprosima::fastcdr::CdrVersion::XCDRv1);
    cdr.set_encoding_flag(eprosima::fastcdr::EncodingAlgorithmFlag::PLAIN_CDR);
    cdr.serialize_encapsulation();
    return callbacks_->cdr_serialize(message, cdr) ? cdr.get_serialized_data_length() : 0;
  } catch (const std::exception & error) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("a %s cannot be serialized: %s", name_.c_str(), error.what());
    return 0;
  }
}

bool MessageType::read(const uint8_t * buffer, size_t length, void * message) const
{
  using eprosima::fastcdr::Cdr;
  try {
    // Fast CDR writes only if it is asked to.
    char * bytes = const_cast<char *>(reinterpret_cast<const char *>(buffer));
    eprosima::fastcdr::FastBuffer place(bytes, length);
    Cdr cdr(place, Cdr::DEFAULT_ENDIAN, eprosima::fastcdr::CdrVersion::XCDRv1);
    cdr.read_encapsulation();
    return callbacks_->cdr_deserialize(cdr, message);
  } catch (const std::exception & error) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("bytes that are no %s were received: %s", name_.c_str(), error.what());
    return false;
  }
}

bool ServiceType::init(const rosidl_service_type_support_t * type_support)
{
  type_support_ = find(type_support);
  if (type_support_ == nullptr) {
    RMW_SET_ERROR_MSG(
      "the service has no type support for Fast CDR; build its package with rosidl_typesupport_fastrtps_c and _cpp");
    return false;
  }
  const auto * members = static_cast<const service_type_support_callbacks_t *>(type_support_->data);
  return request.init(members->request_members_) && response.init(members->response_members_);
}

const uint8_t * ServiceType::rihs01() const
{
  const auto get = type_support_->get_type_hash_func;
  return get != nullptr ? bytes_of_hash(get(type_support_)) : nullptr;
}

}  // namespace rmw_noctule
