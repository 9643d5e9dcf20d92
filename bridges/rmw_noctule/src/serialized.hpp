#ifndef SERIALIZED_HPP_
#define SERIALIZED_HPP_

#include "rmw/serialized_message.h"

namespace rmw_noctule
{

// CDR of version 1, big-endian or little-endian.
inline bool is_cdr(const rmw_serialized_message_t & message)
{
  return message.buffer != nullptr && message.buffer_length >= 4 && message.buffer[0] == 0 && message.buffer[1] <= 1;
}

}  // namespace rmw_noctule

#endif  // SERIALIZED_HPP_
