// Nodes and guard conditions.
#include <memory>

#include "rmw/allocators.h"
#include "rmw/validate_full_topic_name.h"
#include "rmw/validate_namespace.h"
#include "rmw/validate_node_name.h"
#include "types.hpp"

using rmw_noctule::Node;

namespace
{

bool is_valid(const char * name, const char * namespace_)
{
  int result = RMW_NODE_NAME_VALID;
  if (rmw_validate_node_name(name, &result, nullptr) != RMW_RET_OK) {
    return false;
  }
  if (result != RMW_NODE_NAME_VALID) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING(
      "\"%s\" is no name of a node: %s", name, rmw_node_name_validation_result_string(result));
    return false;
  }
  result = RMW_NAMESPACE_VALID;
  if (rmw_validate_namespace(namespace_, &result, nullptr) != RMW_RET_OK) {
    return false;
  }
  if (result != RMW_NAMESPACE_VALID) {
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING(
      "\"%s\" is no namespace: %s", namespace_, rmw_namespace_validation_result_string(result));
    return false;
  }
  return true;
}

}  // namespace

extern "C"
{

rmw_node_t * rmw_create_node(rmw_context_t * context, const char * name, const char * namespace_)
{
  RMW_CHECK_ARGUMENT_FOR_NULL(context, nullptr);
  RMW_CHECK_FOR_NULL_WITH_MSG(context->impl, "the context is not initialized", return nullptr);
  CHECK_OURS(context, return nullptr);
  if (context->impl->is_shut_down) {
    RMW_SET_ERROR_MSG("the context is shut down; it opens no nodes any more");
    return nullptr;
  }
  RMW_CHECK_ARGUMENT_FOR_NULL(name, nullptr);
  RMW_CHECK_ARGUMENT_FOR_NULL(namespace_, nullptr);
  if (!is_valid(name, namespace_)) {
    return nullptr;
  }
  nrmw_error error{};
  nrmw_node * opened = nrmw_node_open(context->impl->context, namespace_, name, &error);
  if (opened == nullptr) {
    rmw_noctule::fail("the node cannot be opened", error);
    return nullptr;
  }
  auto data = std::make_unique<Node>();
  data->node = opened;
  data->name = name;
  data->namespace_ = namespace_;
  data->graph = rmw_guard_condition_t{rmw_noctule_identifier, nrmw_node_graph(opened), context};
  rmw_node_t * node = rmw_node_allocate();
  if (node == nullptr) {
    nrmw_node_free(opened);
    RMW_SET_ERROR_MSG("no memory for a node");
    return nullptr;
  }
  node->implementation_identifier = rmw_noctule_identifier;
  node->name = data->name.c_str();
  node->namespace_ = data->namespace_.c_str();
  node->context = context;
  node->data = data.release();
  ++context->impl->nodes;
  return node;
}

rmw_ret_t rmw_destroy_node(rmw_node_t * node)
{
  CHECK_HANDLE(node);
  auto * data = static_cast<Node *>(node->data);
  --node->context->impl->nodes;
  nrmw_node_free(data->node);
  delete data;
  rmw_node_free(node);
  return RMW_RET_OK;
}

const rmw_guard_condition_t * rmw_node_get_graph_guard_condition(const rmw_node_t * node)
{
  RMW_CHECK_ARGUMENT_FOR_NULL(node, nullptr);
  CHECK_OURS(node, return nullptr);
  return &static_cast<Node *>(node->data)->graph;
}

rmw_guard_condition_t * rmw_create_guard_condition(rmw_context_t * context)
{
  RMW_CHECK_ARGUMENT_FOR_NULL(context, nullptr);
  CHECK_OURS(context, return nullptr);
  auto * guard = new rmw_guard_condition_t;
  guard->implementation_identifier = rmw_noctule_identifier;
  guard->context = context;
  guard->data = nrmw_guard_new();
  return guard;
}

rmw_ret_t rmw_destroy_guard_condition(rmw_guard_condition_t * guard_condition)
{
  CHECK_HANDLE(guard_condition);
  nrmw_guard_free(static_cast<nrmw_waitable *>(guard_condition->data));
  delete guard_condition;
  return RMW_RET_OK;
}

rmw_ret_t rmw_trigger_guard_condition(const rmw_guard_condition_t * guard_condition)
{
  CHECK_HANDLE(guard_condition);
  nrmw_waitable_set(static_cast<nrmw_waitable *>(guard_condition->data));
  return RMW_RET_OK;
}

}  // extern "C"
