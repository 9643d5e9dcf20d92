// Messages in CDR, by the type support for Fast CDR that rosidl generates.
#ifndef TYPE_SUPPORT_HPP_
#define TYPE_SUPPORT_HPP_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "noctule_rmw.h"
#include "rosidl_runtime_c/message_type_support_struct.h"
#include "rosidl_runtime_c/service_type_support_struct.h"
#include "rosidl_typesupport_fastrtps_cpp/message_type_support.h"

namespace rmw_noctule
{

// CDR's header: little-endian, version 1 (DDSI-RTPS 2.3, table 10.2).
constexpr size_t kHeaderBytes = 4;

class MessageType
{
public:
  // False if the type has no support that this rmw reads; the error of rmw is set.
  bool init(const rosidl_message_type_support_t * type_support);

  const std::string & name() const {return name_;}
  const rosidl_message_type_support_t * type_support() const {return type_support_;}
  // 32 bytes of ROS 2's hash of the type; nullptr if it is not known.
  const uint8_t * rihs01() const;
  // The type in the words of docs/spec/type-description.md; empty if it has no such.
  std::string description() const;
  // Of a message with its header; 0: the type has no bound.
  size_t bytes_max() const;
  size_t bytes_of(const void * message) const;
  // Into a buffer of bytes_of(message), which may be more than it takes: how many bytes it took; 0: failed, and the error is set.
  size_t write(const void * message, uint8_t * buffer, size_t length) const;
  bool read(const uint8_t * buffer, size_t length, void * message) const;

private:
  const rosidl_message_type_support_t * type_support_ = nullptr;
  const message_type_support_callbacks_t * callbacks_ = nullptr;
  std::string name_;
};

class ServiceType
{
public:
  bool init(const rosidl_service_type_support_t * type_support);

  MessageType request;
  MessageType response;
  const uint8_t * rihs01() const;

private:
  const rosidl_service_type_support_t * type_support_ = nullptr;
};

}  // namespace rmw_noctule

#endif  // TYPE_SUPPORT_HPP_
