// Types that lie in memory as they lie in CDR, so that a message can be written and read where it is.
#ifndef PLAIN_HPP_
#define PLAIN_HPP_

#include <cstddef>

#include "rosidl_runtime_c/message_type_support_struct.h"

namespace rmw_noctule
{

// bytes: of a message in CDR, without its header; 0: the type is not plain. size: of a message in memory, with what fills it up at its end.
struct Plain
{
  size_t bytes = 0;
  size_t size = 0;

  explicit operator bool() const {return bytes != 0;}
};

// Layout of a type from its introspection; a type without it is not plain.
Plain plain_of(const rosidl_message_type_support_t * type_support);

}  // namespace rmw_noctule

#endif  // PLAIN_HPP_
