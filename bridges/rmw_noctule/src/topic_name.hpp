#ifndef TOPIC_NAME_HPP_
#define TOPIC_NAME_HPP_

#include <cstring>

#include "rmw/validate_full_topic_name.h"
#include "types.hpp"

namespace rmw_noctule
{

// Whether a topic or a service may have this name; the error of rmw is set if not.
inline bool is_topic_name(const char * name, const rmw_qos_profile_t & qos)
{
  if (name == nullptr || std::strlen(name) == 0) {
    RMW_SET_ERROR_MSG("no name is given");
    return false;
  }
  if (qos.avoid_ros_namespace_conventions) {
    return true;
  }
  int result = RMW_TOPIC_VALID;
  if (rmw_validate_full_topic_name(name, &result, nullptr) != RMW_RET_OK) {
    return false;
  }
  if (result != RMW_TOPIC_VALID) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING(
      "\"%s\" is no name of a topic: %s", name, rmw_full_topic_name_validation_result_string(result));
    return false;
  }
  return true;
}

// Arguments for opening a publisher or a subscription; pointers are those of the arguments.
inline nrmw_topic topic_of(
  nrmw_node * node, const char * name, const MessageType & type, const Plain & plain, const rmw_qos_profile_t & qos)
{
  nrmw_topic topic{};
  topic.name = name;
  topic.type_name = type.name().c_str();
  topic.type_hash = nrmw_node_describe(node, type.description().c_str());
  topic.rihs01 = type.rihs01();
  topic.quality = quality_of(qos);
  topic.bytes_max = type.bytes_max();
  topic.is_plain = static_cast<bool>(plain);
  return topic;
}

}  // namespace rmw_noctule

#endif  // TOPIC_NAME_HPP_
