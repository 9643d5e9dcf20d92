#include "plain.hpp"

#include <algorithm>

#include "rcutils/error_handling.h"
#include "rosidl_typesupport_introspection_c/field_types.h"
#include "rosidl_typesupport_introspection_c/identifier.h"
#include "rosidl_typesupport_introspection_c/message_introspection.h"
#include "rosidl_typesupport_introspection_cpp/identifier.hpp"
#include "rosidl_typesupport_introspection_cpp/message_introspection.hpp"

namespace rmw_noctule
{
namespace
{

using MembersOfC = rosidl_typesupport_introspection_c__MessageMembers;
using MembersOfCpp = rosidl_typesupport_introspection_cpp::MessageMembers;

// Of a field in CDR and in memory; 0: it may be of another length in one of the two. Both languages number types alike.
size_t width_of(uint8_t type)
{
  switch (type) {
    case rosidl_typesupport_introspection_c__ROS_TYPE_BOOLEAN:
    case rosidl_typesupport_introspection_c__ROS_TYPE_OCTET:
    case rosidl_typesupport_introspection_c__ROS_TYPE_CHAR:
    case rosidl_typesupport_introspection_c__ROS_TYPE_UINT8:
    case rosidl_typesupport_introspection_c__ROS_TYPE_INT8:
      return 1;
    case rosidl_typesupport_introspection_c__ROS_TYPE_UINT16:
    case rosidl_typesupport_introspection_c__ROS_TYPE_INT16:
      return 2;
    case rosidl_typesupport_introspection_c__ROS_TYPE_FLOAT:
    case rosidl_typesupport_introspection_c__ROS_TYPE_UINT32:
    case rosidl_typesupport_introspection_c__ROS_TYPE_INT32:
      return 4;
    case rosidl_typesupport_introspection_c__ROS_TYPE_DOUBLE:
    case rosidl_typesupport_introspection_c__ROS_TYPE_UINT64:
    case rosidl_typesupport_introspection_c__ROS_TYPE_INT64:
      return 8;
    default:
      return 0;
  }
}

// Whether the fields of a struct that begins at `start` in memory lie there as in CDR, which has come to `at`; then it comes to their end.
template<typename Members>
bool lies_as_in_cdr(const Members & members, size_t start, size_t & at)
{
  for (uint32_t index = 0; index < members.member_count_; ++index) {
    const auto & member = members.members_[index];
    if (member.is_array_ && (member.is_upper_bound_ || member.array_size_ == 0)) {
      return false;
    }
    const size_t place = start + member.offset_;
    const size_t count = member.is_array_ ? member.array_size_ : 1;
    if (member.type_id_ == rosidl_typesupport_introspection_c__ROS_TYPE_MESSAGE) {
      const auto & inner = *static_cast<const Members *>(member.members_->data);
      // If the second lies like the first, all do: each begins at a multiple of its alignment.
      for (size_t element = 0; element < std::min<size_t>(count, 2); ++element) {
        if (!lies_as_in_cdr(inner, place + element * inner.size_of_, at)) {
          return false;
        }
      }
      at += count > 2 ? (count - 2) * inner.size_of_ : 0;
      continue;
    }
    const size_t width = width_of(member.type_id_);
    if (width == 0) {
      return false;
    }
    at = (at + width - 1) / width * width;
    if (at != place) {
      return false;
    }
    at += count * width;
  }
  return true;
}

template<typename Members>
Plain plain_by(const rosidl_message_type_support_t * type_support, const char * identifier)
{
  const auto * found = get_message_typesupport_handle(type_support, identifier);
  if (found == nullptr) {
    // It leaves an error message where it finds nothing.
    rcutils_reset_error();
    return {};
  }
  const auto & members = *static_cast<const Members *>(found->data);
  size_t bytes = 0;
  return lies_as_in_cdr(members, 0, bytes) ? Plain{bytes, members.size_of_} : Plain{};
}

}  // namespace

Plain plain_of(const rosidl_message_type_support_t * type_support)
{
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
  // Published bytes are little-endian.
  return {};
#endif
  const Plain plain = plain_by<MembersOfC>(type_support, rosidl_typesupport_introspection_c__identifier);
  return plain ? plain : plain_by<MembersOfCpp>(
    type_support, rosidl_typesupport_introspection_cpp::typesupport_identifier);
}

}  // namespace rmw_noctule
