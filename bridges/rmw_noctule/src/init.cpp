// Identity, options and contexts.
#include <memory>
#include <vector>

#include "rcutils/logging_macros.h"
#include "rcutils/strdup.h"
#include "rmw/features.h"
#include "rmw/init.h"
#include "rmw/init_options.h"
#include "types.hpp"

extern "C" const char * const rmw_noctule_identifier = "rmw_noctule";

namespace
{

// A notice of the library, as ROS logs.
void log_notice(bool is_warning, const char * text)
{
  if (is_warning) {
    RCUTILS_LOG_WARN_NAMED("rmw_noctule", "%s", text);
  } else {
    RCUTILS_LOG_DEBUG_NAMED("rmw_noctule", "%s", text);
  }
}

bool is_local(const rmw_init_options_t & options)
{
  const auto range = options.discovery_options.automatic_discovery_range;
  return options.localhost_only == RMW_LOCALHOST_ONLY_ENABLED ||
         range == RMW_AUTOMATIC_DISCOVERY_RANGE_LOCALHOST || range == RMW_AUTOMATIC_DISCOVERY_RANGE_OFF;
}

}  // namespace

extern "C"
{

const char * rmw_get_implementation_identifier(void) {return rmw_noctule_identifier;}

const char * rmw_get_serialization_format(void) {return "cdr";}

bool rmw_feature_supported(rmw_feature_t feature)
{
  return feature == RMW_FEATURE_MESSAGE_INFO_PUBLICATION_SEQUENCE_NUMBER ||
         feature == RMW_FEATURE_MESSAGE_INFO_RECEPTION_SEQUENCE_NUMBER;
}

rmw_ret_t rmw_set_log_severity(rmw_log_severity_t severity)
{
  // Notices go through rcutils, whose level the caller sets itself; the library logs nothing else.
  switch (severity) {
    case RMW_LOG_SEVERITY_DEBUG: case RMW_LOG_SEVERITY_INFO: case RMW_LOG_SEVERITY_WARN:
    case RMW_LOG_SEVERITY_ERROR: case RMW_LOG_SEVERITY_FATAL:
      return RMW_RET_OK;
    default:
      RMW_SET_ERROR_MSG("this log severity is not known; it is one of DEBUG, INFO, WARN, ERROR, FATAL");
      return RMW_RET_INVALID_ARGUMENT;
  }
}

rmw_ret_t rmw_init_options_init(rmw_init_options_t * options, rcutils_allocator_t allocator)
{
  CHECK_GIVEN(options);
  RCUTILS_CHECK_ALLOCATOR(&allocator, return RMW_RET_INVALID_ARGUMENT);
  if (options->implementation_identifier != nullptr) {
    RMW_SET_ERROR_MSG("the options are initialized already; finalize them first");
    return RMW_RET_INVALID_ARGUMENT;
  }
  *options = rmw_get_zero_initialized_init_options();
  options->implementation_identifier = rmw_noctule_identifier;
  options->allocator = allocator;
  options->enclave = nullptr;
  options->domain_id = RMW_DEFAULT_DOMAIN_ID;
  options->security_options = rmw_get_default_security_options();
  options->localhost_only = RMW_LOCALHOST_ONLY_DEFAULT;
  options->discovery_options = rmw_get_zero_initialized_discovery_options();
  return rmw_discovery_options_init(&options->discovery_options, 0, &allocator);
}

rmw_ret_t rmw_init_options_copy(const rmw_init_options_t * from, rmw_init_options_t * to)
{
  CHECK_GIVEN(from);
  CHECK_GIVEN(to);
  RMW_CHECK_FOR_NULL_WITH_MSG(
    from->implementation_identifier, "the options to copy are not initialized", return RMW_RET_INVALID_ARGUMENT);
  CHECK_OURS(from, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  if (to->implementation_identifier != nullptr) {
    RMW_SET_ERROR_MSG("the options to copy to are initialized already; finalize them first");
    return RMW_RET_INVALID_ARGUMENT;
  }
  rcutils_allocator_t allocator = from->allocator;
  RCUTILS_CHECK_ALLOCATOR(&allocator, return RMW_RET_INVALID_ARGUMENT);
  rmw_init_options_t copy = *from;
  copy.enclave = rcutils_strdup(from->enclave, allocator);
  if (from->enclave != nullptr && copy.enclave == nullptr) {
    RMW_SET_ERROR_MSG("no memory for the enclave's name");
    return RMW_RET_BAD_ALLOC;
  }
  copy.security_options = rmw_get_zero_initialized_security_options();
  rmw_ret_t done = rmw_security_options_copy(&from->security_options, &allocator, &copy.security_options);
  if (done == RMW_RET_OK) {
    copy.discovery_options = rmw_get_zero_initialized_discovery_options();
    // The source of the copy is not changed; rmw's function does not say so.
    auto * discovery = const_cast<rmw_discovery_options_t *>(&from->discovery_options);
    done = rmw_discovery_options_copy(discovery, &allocator, &copy.discovery_options);
    if (done != RMW_RET_OK) {
      rmw_ret_t finished = rmw_security_options_fini(&copy.security_options, &allocator);
      static_cast<void>(finished);
    }
  }
  if (done != RMW_RET_OK) {
    allocator.deallocate(copy.enclave, allocator.state);
    return done;
  }
  *to = copy;
  return RMW_RET_OK;
}

rmw_ret_t rmw_init_options_fini(rmw_init_options_t * options)
{
  CHECK_GIVEN(options);
  RMW_CHECK_FOR_NULL_WITH_MSG(
    options->implementation_identifier, "the options are not initialized", return RMW_RET_INVALID_ARGUMENT);
  CHECK_OURS(options, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  rcutils_allocator_t allocator = options->allocator;
  RCUTILS_CHECK_ALLOCATOR(&allocator, return RMW_RET_INVALID_ARGUMENT);
  allocator.deallocate(options->enclave, allocator.state);
  rmw_ret_t done = rmw_security_options_fini(&options->security_options, &allocator);
  const rmw_ret_t also = rmw_discovery_options_fini(&options->discovery_options);
  *options = rmw_get_zero_initialized_init_options();
  return done != RMW_RET_OK ? done : also;
}

rmw_ret_t rmw_init(const rmw_init_options_t * options, rmw_context_t * context)
{
  CHECK_GIVEN(options);
  CHECK_GIVEN(context);
  RMW_CHECK_FOR_NULL_WITH_MSG(
    options->implementation_identifier, "the options are not initialized", return RMW_RET_INVALID_ARGUMENT);
  CHECK_OURS(options, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  RMW_CHECK_FOR_NULL_WITH_MSG(options->enclave, "the options name no enclave", return RMW_RET_INVALID_ARGUMENT);
  if (context->implementation_identifier != nullptr) {
    RMW_SET_ERROR_MSG("the context is initialized already; finalize it first");
    return RMW_RET_INVALID_ARGUMENT;
  }
  const size_t domain = options->domain_id == RMW_DEFAULT_DOMAIN_ID ? 0u : options->domain_id;
  std::vector<const char *> peers;
  for (size_t at = 0; at < options->discovery_options.static_peers_count; ++at) {
    peers.push_back(options->discovery_options.static_peers[at].peer_address);
  }
  rmw_context_t made = rmw_get_zero_initialized_context();
  made.instance_id = options->instance_id;
  made.implementation_identifier = rmw_noctule_identifier;
  made.actual_domain_id = domain;
  const rmw_ret_t copied = rmw_init_options_copy(options, &made.options);
  if (copied != RMW_RET_OK) {
    return copied;
  }
  auto impl = std::make_unique<rmw_context_impl_s>();
  nrmw_error error{};
  impl->context = nrmw_context_new(
    static_cast<uint32_t>(domain), is_local(*options), peers.data(), peers.size(), options->enclave,
    log_notice, &error);
  if (impl->context == nullptr) {
    rmw_noctule::fail("the context cannot be opened", error);
    const rmw_ret_t finished = rmw_init_options_fini(&made.options);
    static_cast<void>(finished);
    return RMW_RET_ERROR;
  }
  made.impl = impl.release();
  *context = made;
  return RMW_RET_OK;
}

rmw_ret_t rmw_shutdown(rmw_context_t * context)
{
  CHECK_GIVEN(context);
  RMW_CHECK_FOR_NULL_WITH_MSG(context->impl, "the context is not initialized", return RMW_RET_INVALID_ARGUMENT);
  CHECK_OURS(context, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  context->impl->is_shut_down = true;
  return RMW_RET_OK;
}

rmw_ret_t rmw_context_fini(rmw_context_t * context)
{
  CHECK_GIVEN(context);
  RMW_CHECK_FOR_NULL_WITH_MSG(context->impl, "the context is not initialized", return RMW_RET_INVALID_ARGUMENT);
  CHECK_OURS(context, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  if (!context->impl->is_shut_down) {
    RMW_SET_ERROR_MSG("the context is not shut down; shut it down first");
    return RMW_RET_INVALID_ARGUMENT;
  }
  if (context->impl->nodes != 0) {
    RMW_SET_ERROR_MSG("nodes of the context are open; destroy them first");
    return RMW_RET_ERROR;
  }
  const rmw_ret_t done = rmw_init_options_fini(&context->options);
  nrmw_context_free(context->impl->context);
  delete context->impl;
  *context = rmw_get_zero_initialized_context();
  return done;
}

}  // extern "C"
