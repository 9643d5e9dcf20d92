#ifndef TYPE_DESCRIPTION_HPP_
#define TYPE_DESCRIPTION_HPP_

#include <string>

#include "rosidl_runtime_c/type_description/type_description__struct.h"

namespace rmw_noctule
{

// A type in the words of docs/spec/type-description.md; empty if it has a field that those have no word for (wchar, long double, fixed strings).
std::string describe(const rosidl_runtime_c__type_description__TypeDescription & described);

}  // namespace rmw_noctule

#endif  // TYPE_DESCRIPTION_HPP_
