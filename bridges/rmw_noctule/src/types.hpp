// Data behind the handles of rmw in this implementation.
#ifndef TYPES_HPP_
#define TYPES_HPP_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "noctule_rmw.h"
#include "plain.hpp"
#include "rmw/error_handling.h"
#include "rmw/impl/cpp/macros.hpp"
#include "rmw/rmw.h"
#include "type_support.hpp"

extern "C" const char * const rmw_noctule_identifier;

// The implementation identifier of a handle is ours, or the function returns.
#define CHECK_OURS(handle, otherwise) \
  RMW_CHECK_TYPE_IDENTIFIERS_MATCH( \
    handle, (handle)->implementation_identifier, rmw_noctule_identifier, otherwise)
#define CHECK_GIVEN(argument) RMW_CHECK_ARGUMENT_FOR_NULL(argument, RMW_RET_INVALID_ARGUMENT)
// Both, for a handle of a function that returns rmw_ret_t.
#define CHECK_HANDLE(handle) \
  CHECK_GIVEN(handle); \
  CHECK_OURS(handle, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION)

struct rmw_context_impl_s
{
  nrmw_context * context = nullptr;
  std::atomic<bool> is_shut_down{false};
  // Nodes that are open.
  std::atomic<size_t> nodes{0};
};

namespace rmw_noctule
{

struct Node
{
  nrmw_node * node;
  rmw_guard_condition_t graph;
  std::string name;
  std::string namespace_;
};

struct Publisher
{
  nrmw_writer * writer;
  MessageType type;
  Plain plain;
  rmw_qos_profile_t qos;
  rmw_context_t * context;
  std::string topic;
};

// Messages that a subscription has lent.
class Loans
{
public:
  ~Loans();
  // The message where it lies, or a copy if it cannot be read there; nullptr: an error is set. It is freed when it is given back.
  void * lend(const MessageType & type, const Plain & plain, const nrmw_message & message);
  // False: it was not lent.
  bool give_back(void * message);

private:
  struct Loan
  {
    // Without an owner: there is a copy.
    nrmw_message message;
    std::unique_ptr<uint64_t[]> copy;
  };
  std::mutex mutex_;
  std::unordered_map<void *, Loan> out_;
};

struct Subscription
{
  nrmw_reader * reader;
  MessageType type;
  Plain plain;
  Loans loans;
  rmw_qos_profile_t qos;
  std::string topic;
};

struct Client
{
  nrmw_client * client;
  ServiceType type;
  rmw_qos_profile_t qos;
  std::string name;
};

struct Service
{
  nrmw_server * server;
  ServiceType type;
  rmw_qos_profile_t qos;
  std::string name;
};

// Data behind an rmw_event_t: one of the two.
struct EventSource
{
  nrmw_writer * writer;
  nrmw_reader * reader;
};

inline nrmw_context * context_of(const rmw_node_t * node) {return node->context->impl->context;}
inline nrmw_node * node_of(const rmw_node_t * node) {return static_cast<Node *>(node->data)->node;}

// Sets the error message of a call that failed.
inline void fail(const char * what, const nrmw_error & error)
{
  RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("%s: %s", what, error.text);
}

// The profile with every policy decided; `is_publisher` for what BEST_AVAILABLE becomes. False: not possible, and the error is set.
bool decide(
  const rmw_qos_profile_t & asked, const rmw_node_t * node, const char * topic, bool is_publisher,
  rmw_qos_profile_t & decided);
nrmw_quality quality_of(const rmw_qos_profile_t & qos);
rmw_qos_profile_t qos_of(const nrmw_quality & quality);

}  // namespace rmw_noctule

#endif  // TYPES_HPP_
