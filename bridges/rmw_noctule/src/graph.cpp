// The graph.
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rcutils/strdup.h"
#include "rcutils/types/string_array.h"
#include "rmw/convert_rcutils_ret_to_rmw_ret.h"
#include "rmw/get_node_info_and_types.h"
#include "rmw/get_service_names_and_types.h"
#include "rmw/get_topic_endpoint_info.h"
#include "rmw/get_topic_names_and_types.h"
#include "rmw/names_and_types.h"
#include "rmw/sanity_checks.h"
#include "rmw/topic_endpoint_info_array.h"
#include "rmw/validate_namespace.h"
#include "rmw/validate_node_name.h"
#include "types.hpp"

namespace
{

using Names = std::map<std::string, std::set<std::string>>;
struct NodeNames {std::vector<std::string> names, namespaces, enclaves;};
struct End
{
  std::string node_name, node_namespace, type_name;
  rosidl_type_hash_t hash;
  rmw_qos_profile_t qos;
  uint8_t gid[RMW_GID_STORAGE_SIZE];
};

void visit_node(void * to, const char * namespace_, const char * name, const char * enclave)
{
  auto * nodes = static_cast<NodeNames *>(to);
  nodes->namespaces.push_back(namespace_);
  nodes->names.push_back(name);
  nodes->enclaves.push_back(enclave);
}

void visit_name(void * to, const char * name, const char * type_name)
{
  auto & types = (*static_cast<Names *>(to))[name];
  if (*type_name != '\0') {
    types.insert(type_name);
  }
}

void visit_entry(void * to, const nrmw_entry * entry)
{
  End end{entry->node_name, entry->node_namespace, entry->type_name, rosidl_get_zero_initialized_type_hash(),
    rmw_noctule::qos_of(entry->quality), {}};
  if (entry->rihs01 != nullptr) {
    end.hash.version = 1;
    std::memcpy(end.hash.value, entry->rihs01, ROSIDL_TYPE_HASH_SIZE);
  }
  std::memcpy(end.gid, entry->gid, RMW_GID_STORAGE_SIZE);
  static_cast<std::vector<End> *>(to)->push_back(end);
}

rmw_ret_t copy(const std::vector<std::string> & texts, rcutils_string_array_t & to, const rcutils_allocator_t & allocator)
{
  const rcutils_ret_t made = rcutils_string_array_init(&to, texts.size(), &allocator);
  if (made != RCUTILS_RET_OK) {
    return rmw_convert_rcutils_ret_to_rmw_ret(made);
  }
  for (size_t at = 0; at < texts.size(); ++at) {
    to.data[at] = rcutils_strdup(texts[at].c_str(), allocator);
    if (to.data[at] == nullptr) {
      const rcutils_ret_t finished = rcutils_string_array_fini(&to);
      static_cast<void>(finished);
      RMW_SET_ERROR_MSG("no memory for a name");
      return RMW_RET_BAD_ALLOC;
    }
  }
  return RMW_RET_OK;
}

rmw_ret_t copy(const Names & names, rmw_names_and_types_t & to, rcutils_allocator_t & allocator)
{
  rmw_ret_t done = rmw_names_and_types_init(&to, names.size(), &allocator);
  size_t at = 0;
  for (auto found = names.begin(); found != names.end() && done == RMW_RET_OK; ++found, ++at) {
    to.names.data[at] = rcutils_strdup(found->first.c_str(), allocator);
    const std::vector<std::string> types(found->second.begin(), found->second.end());
    done = to.names.data[at] == nullptr ? RMW_RET_BAD_ALLOC : copy(types, to.types[at], allocator);
  }
  if (done != RMW_RET_OK && to.names.data != nullptr) {
    const rmw_ret_t finished = rmw_names_and_types_fini(&to);
    static_cast<void>(finished);
  }
  return done;
}

rmw_ret_t check_names_and_types(
  const rmw_node_t * node, rcutils_allocator_t * allocator, rmw_names_and_types_t * names_and_types)
{
  CHECK_HANDLE(node);
  RCUTILS_CHECK_ALLOCATOR_WITH_MSG(allocator, "the allocator is not valid", return RMW_RET_INVALID_ARGUMENT);
  return rmw_names_and_types_check_zero(names_and_types);
}

rmw_ret_t check_node_name(const char * name, const char * namespace_)
{
  CHECK_GIVEN(name);
  CHECK_GIVEN(namespace_);
  int result = RMW_NODE_NAME_VALID;
  rmw_ret_t done = rmw_validate_node_name(name, &result, nullptr);
  if (done == RMW_RET_OK && result != RMW_NODE_NAME_VALID) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("\"%s\" is no name of a node", name);
    return RMW_RET_INVALID_ARGUMENT;
  }
  result = RMW_NAMESPACE_VALID;
  done = done == RMW_RET_OK ? rmw_validate_namespace(namespace_, &result, nullptr) : done;
  if (done == RMW_RET_OK && result != RMW_NAMESPACE_VALID) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("\"%s\" is no namespace", namespace_);
    return RMW_RET_INVALID_ARGUMENT;
  }
  return done;
}

rmw_ret_t list(
  const rmw_node_t * node, rcutils_allocator_t * allocator, uint32_t wanted, rmw_names_and_types_t * names_and_types)
{
  const rmw_ret_t checked = check_names_and_types(node, allocator, names_and_types);
  if (checked != RMW_RET_OK) {
    return checked;
  }
  Names names;
  nrmw_names(rmw_noctule::context_of(node), wanted, nullptr, nullptr, &names, visit_name);
  return copy(names, *names_and_types, *allocator);
}

rmw_ret_t list_of(
  const rmw_node_t * node, rcutils_allocator_t * allocator, const char * name, const char * namespace_,
  uint32_t wanted, rmw_names_and_types_t * names_and_types)
{
  rmw_ret_t checked = check_names_and_types(node, allocator, names_and_types);
  checked = checked == RMW_RET_OK ? check_node_name(name, namespace_) : checked;
  if (checked != RMW_RET_OK) {
    return checked;
  }
  Names names;
  if (!nrmw_names(rmw_noctule::context_of(node), wanted, namespace_, name, &names, visit_name)) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("no node \"%s\" is known in namespace \"%s\"", name, namespace_);
    return RMW_RET_NODE_NAME_NON_EXISTENT;
  }
  return copy(names, *names_and_types, *allocator);
}

rmw_ret_t count(const rmw_node_t * node, const char * name, uint32_t wanted, size_t * to)
{
  CHECK_HANDLE(node);
  CHECK_GIVEN(name);
  CHECK_GIVEN(to);
  int result = RMW_TOPIC_VALID;
  const rmw_ret_t validated = rmw_validate_full_topic_name(name, &result, nullptr);
  if (validated != RMW_RET_OK) {
    return validated;
  }
  if (result != RMW_TOPIC_VALID) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("\"%s\" is no name of a topic", name);
    return RMW_RET_INVALID_ARGUMENT;
  }
  *to = nrmw_count(rmw_noctule::context_of(node), wanted, name);
  return RMW_RET_OK;
}

rmw_ret_t fill(
  const End & end, bool writes, rcutils_allocator_t & allocator, rmw_topic_endpoint_info_t & info)
{
  rmw_ret_t done = rmw_topic_endpoint_info_set_node_name(&info, end.node_name.c_str(), &allocator);
  if (done == RMW_RET_OK) {
    done = rmw_topic_endpoint_info_set_node_namespace(&info, end.node_namespace.c_str(), &allocator);
  }
  if (done == RMW_RET_OK) {
    done = rmw_topic_endpoint_info_set_topic_type(&info, end.type_name.c_str(), &allocator);
  }
  if (done == RMW_RET_OK) {
    done = rmw_topic_endpoint_info_set_topic_type_hash(&info, &end.hash);
  }
  if (done == RMW_RET_OK) {
    done = rmw_topic_endpoint_info_set_endpoint_type(
      &info, writes ? RMW_ENDPOINT_PUBLISHER : RMW_ENDPOINT_SUBSCRIPTION);
  }
  if (done == RMW_RET_OK) {
    done = rmw_topic_endpoint_info_set_gid(&info, end.gid, RMW_GID_STORAGE_SIZE);
  }
  return done == RMW_RET_OK ? rmw_topic_endpoint_info_set_qos_profile(&info, &end.qos) : done;
}

rmw_ret_t ends_of(
  const rmw_node_t * node, rcutils_allocator_t * allocator, const char * topic_name, bool writes,
  rmw_topic_endpoint_info_array_t * ends)
{
  CHECK_HANDLE(node);
  RCUTILS_CHECK_ALLOCATOR_WITH_MSG(allocator, "the allocator is not valid", return RMW_RET_INVALID_ARGUMENT);
  CHECK_GIVEN(topic_name);
  if (rmw_topic_endpoint_info_array_check_zero(ends) != RMW_RET_OK) {
    return RMW_RET_INVALID_ARGUMENT;
  }
  std::vector<End> found;
  nrmw_ends(rmw_noctule::context_of(node), topic_name, writes, &found, visit_entry);
  rmw_ret_t done = rmw_topic_endpoint_info_array_init_with_size(ends, found.size(), allocator);
  for (size_t at = 0; at < found.size() && done == RMW_RET_OK; ++at) {
    ends->info_array[at] = rmw_get_zero_initialized_topic_endpoint_info();
    done = fill(found[at], writes, *allocator, ends->info_array[at]);
  }
  if (done != RMW_RET_OK) {
    const rmw_ret_t finished = rmw_topic_endpoint_info_array_fini(ends, allocator);
    static_cast<void>(finished);
  }
  return done;
}

rmw_ret_t nodes_of(
  const rmw_node_t * node, rcutils_string_array_t * names, rcutils_string_array_t * namespaces,
  rcutils_string_array_t * enclaves)
{
  NodeNames nodes;
  nrmw_nodes(rmw_noctule::context_of(node), &nodes, visit_node);
  const rcutils_allocator_t allocator = rcutils_get_default_allocator();
  rmw_ret_t done = copy(nodes.names, *names, allocator);
  if (done == RMW_RET_OK) {
    done = copy(nodes.namespaces, *namespaces, allocator);
  }
  if (done == RMW_RET_OK && enclaves != nullptr) {
    done = copy(nodes.enclaves, *enclaves, allocator);
  }
  return done;
}

}  // namespace

extern "C"
{

rmw_ret_t rmw_get_node_names(
  const rmw_node_t * node, rcutils_string_array_t * node_names, rcutils_string_array_t * node_namespaces)
{
  CHECK_HANDLE(node);
  if (
    rmw_check_zero_rmw_string_array(node_names) != RMW_RET_OK ||
    rmw_check_zero_rmw_string_array(node_namespaces) != RMW_RET_OK)
  {
    return RMW_RET_INVALID_ARGUMENT;
  }
  return nodes_of(node, node_names, node_namespaces, nullptr);
}

rmw_ret_t rmw_get_node_names_with_enclaves(
  const rmw_node_t * node, rcutils_string_array_t * node_names, rcutils_string_array_t * node_namespaces,
  rcutils_string_array_t * enclaves)
{
  CHECK_HANDLE(node);
  if (
    rmw_check_zero_rmw_string_array(node_names) != RMW_RET_OK ||
    rmw_check_zero_rmw_string_array(node_namespaces) != RMW_RET_OK ||
    rmw_check_zero_rmw_string_array(enclaves) != RMW_RET_OK)
  {
    return RMW_RET_INVALID_ARGUMENT;
  }
  return nodes_of(node, node_names, node_namespaces, enclaves);
}

rmw_ret_t rmw_get_topic_names_and_types(
  const rmw_node_t * node, rcutils_allocator_t * allocator, bool no_demangle,
  rmw_names_and_types_t * topic_names_and_types)
{
  return list(node, allocator, no_demangle ? NRMW_ALL_TOPICS : NRMW_TOPICS, topic_names_and_types);
}

rmw_ret_t rmw_get_service_names_and_types(
  const rmw_node_t * node, rcutils_allocator_t * allocator, rmw_names_and_types_t * service_names_and_types)
{
  return list(node, allocator, NRMW_SERVICES, service_names_and_types);
}

rmw_ret_t rmw_get_subscriber_names_and_types_by_node(
  const rmw_node_t * node, rcutils_allocator_t * allocator, const char * node_name, const char * node_namespace,
  bool, rmw_names_and_types_t * topic_names_and_types)
{
  return list_of(node, allocator, node_name, node_namespace, NRMW_SUBSCRIBED, topic_names_and_types);
}

rmw_ret_t rmw_get_publisher_names_and_types_by_node(
  const rmw_node_t * node, rcutils_allocator_t * allocator, const char * node_name, const char * node_namespace,
  bool, rmw_names_and_types_t * topic_names_and_types)
{
  return list_of(node, allocator, node_name, node_namespace, NRMW_PUBLISHED, topic_names_and_types);
}

rmw_ret_t rmw_get_service_names_and_types_by_node(
  const rmw_node_t * node, rcutils_allocator_t * allocator, const char * node_name, const char * node_namespace,
  rmw_names_and_types_t * service_names_and_types)
{
  return list_of(node, allocator, node_name, node_namespace, NRMW_SERVED, service_names_and_types);
}

rmw_ret_t rmw_get_client_names_and_types_by_node(
  const rmw_node_t * node, rcutils_allocator_t * allocator, const char * node_name, const char * node_namespace,
  rmw_names_and_types_t * service_names_and_types)
{
  return list_of(node, allocator, node_name, node_namespace, NRMW_CALLED, service_names_and_types);
}

rmw_ret_t rmw_count_publishers(const rmw_node_t * node, const char * topic_name, size_t * count_)
{
  return count(node, topic_name, NRMW_PUBLISHED, count_);
}

rmw_ret_t rmw_count_subscribers(const rmw_node_t * node, const char * topic_name, size_t * count_)
{
  return count(node, topic_name, NRMW_SUBSCRIBED, count_);
}

rmw_ret_t rmw_count_clients(const rmw_node_t * node, const char * service_name, size_t * count_)
{
  return count(node, service_name, NRMW_CALLED, count_);
}

rmw_ret_t rmw_count_services(const rmw_node_t * node, const char * service_name, size_t * count_)
{
  return count(node, service_name, NRMW_SERVED, count_);
}

rmw_ret_t rmw_get_publishers_info_by_topic(
  const rmw_node_t * node, rcutils_allocator_t * allocator, const char * topic_name, bool,
  rmw_topic_endpoint_info_array_t * publishers_info)
{
  return ends_of(node, allocator, topic_name, true, publishers_info);
}

rmw_ret_t rmw_get_subscriptions_info_by_topic(
  const rmw_node_t * node, rcutils_allocator_t * allocator, const char * topic_name, bool,
  rmw_topic_endpoint_info_array_t * subscriptions_info)
{
  return ends_of(node, allocator, topic_name, false, subscriptions_info);
}

}  // extern "C"
