// Clients and services.
#include <cstring>
#include <memory>
#include <vector>

#include "topic_name.hpp"
#include "types.hpp"

using rmw_noctule::Client;
using rmw_noctule::MessageType;
using rmw_noctule::Service;
using rmw_noctule::ServiceType;

namespace
{

Client * of(const rmw_client_t * client) {return static_cast<Client *>(client->data);}
Service * of(const rmw_service_t * service) {return static_cast<Service *>(service->data);}

nrmw_service service_of(
  nrmw_node * node, const char * name, const ServiceType & type, const rmw_qos_profile_t & qos)
{
  nrmw_service service{};
  service.name = name;
  service.request_name = type.request.name().c_str();
  service.request_hash = nrmw_node_describe(node, type.request.description().c_str());
  service.response_name = type.response.name().c_str();
  service.response_hash = nrmw_node_describe(node, type.response.description().c_str());
  service.rihs01 = type.rihs01();
  service.quality = rmw_noctule::quality_of(qos);
  return service;
}

void fill(const nrmw_message & message, rmw_service_info_t & info)
{
  info.source_timestamp = message.source_ns == INT64_MIN ? message.received_ns : message.source_ns;
  info.received_timestamp = message.received_ns;
  info.request_id.sequence_number = message.number;
  std::memcpy(info.request_id.writer_guid, message.gid, sizeof(message.gid));
}

rmw_ret_t read(nrmw_message & message, const MessageType & type, void * ros_message, rmw_service_info_t * info, bool * taken)
{
  *taken = type.read(message.bytes, message.length, ros_message);
  if (*taken) {
    fill(message, *info);
  }
  nrmw_message_free(&message);
  return *taken ? RMW_RET_OK : RMW_RET_ERROR;
}

bool write(const MessageType & type, const void * ros_message, std::vector<uint8_t> & bytes)
{
  bytes.resize(type.bytes_of(ros_message));
  bytes.resize(type.write(ros_message, bytes.data(), bytes.size()));
  return !bytes.empty();
}

// Checks and preparation that both creations share.
template<typename Data>
std::unique_ptr<Data> prepare(
  const rmw_node_t * node, const rosidl_service_type_support_t * type_support, const char * name,
  const rmw_qos_profile_t * qos_profile)
{
  RMW_CHECK_ARGUMENT_FOR_NULL(node, nullptr);
  CHECK_OURS(node, return nullptr);
  RMW_CHECK_ARGUMENT_FOR_NULL(type_support, nullptr);
  RMW_CHECK_ARGUMENT_FOR_NULL(name, nullptr);
  RMW_CHECK_ARGUMENT_FOR_NULL(qos_profile, nullptr);
  if (!rmw_noctule::is_topic_name(name, *qos_profile)) {
    return nullptr;
  }
  auto data = std::make_unique<Data>();
  rmw_qos_profile_t asked = *qos_profile;
  // Of a service, what is best available is the default.
  if (asked.reliability == RMW_QOS_POLICY_RELIABILITY_BEST_AVAILABLE) {
    asked.reliability = RMW_QOS_POLICY_RELIABILITY_RELIABLE;
  }
  if (asked.durability == RMW_QOS_POLICY_DURABILITY_BEST_AVAILABLE) {
    asked.durability = RMW_QOS_POLICY_DURABILITY_VOLATILE;
  }
  if (!data->type.init(type_support) || !rmw_noctule::decide(asked, node, name, true, data->qos)) {
    return nullptr;
  }
  data->name = name;
  return data;
}

}  // namespace

extern "C"
{

rmw_client_t * rmw_create_client(
  const rmw_node_t * node, const rosidl_service_type_support_t * type_support, const char * service_name,
  const rmw_qos_profile_t * qos_policies)
{
  auto data = prepare<Client>(node, type_support, service_name, qos_policies);
  if (data == nullptr) {
    return nullptr;
  }
  const nrmw_service service =
    service_of(rmw_noctule::node_of(node), data->name.c_str(), data->type, data->qos);
  nrmw_error error{};
  data->client = nrmw_client_open(rmw_noctule::node_of(node), &service, &error);
  if (data->client == nullptr) {
    rmw_noctule::fail("the client cannot be opened", error);
    return nullptr;
  }
  auto * client = new rmw_client_t{};
  client->implementation_identifier = rmw_noctule_identifier;
  client->service_name = data->name.c_str();
  client->data = data.release();
  return client;
}

rmw_ret_t rmw_destroy_client(rmw_node_t * node, rmw_client_t * client)
{
  CHECK_GIVEN(node);
  CHECK_GIVEN(client);
  CHECK_OURS(node, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  CHECK_OURS(client, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  nrmw_client_free(of(client)->client);
  delete of(client);
  delete client;
  return RMW_RET_OK;
}

rmw_service_t * rmw_create_service(
  const rmw_node_t * node, const rosidl_service_type_support_t * type_support, const char * service_name,
  const rmw_qos_profile_t * qos_policies)
{
  auto data = prepare<Service>(node, type_support, service_name, qos_policies);
  if (data == nullptr) {
    return nullptr;
  }
  const nrmw_service described =
    service_of(rmw_noctule::node_of(node), data->name.c_str(), data->type, data->qos);
  nrmw_error error{};
  data->server = nrmw_server_open(rmw_noctule::node_of(node), &described, &error);
  if (data->server == nullptr) {
    rmw_noctule::fail("the service cannot be opened", error);
    return nullptr;
  }
  auto * service = new rmw_service_t{};
  service->implementation_identifier = rmw_noctule_identifier;
  service->service_name = data->name.c_str();
  service->data = data.release();
  return service;
}

rmw_ret_t rmw_destroy_service(rmw_node_t * node, rmw_service_t * service)
{
  CHECK_GIVEN(node);
  CHECK_GIVEN(service);
  CHECK_OURS(node, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  CHECK_OURS(service, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  nrmw_server_free(of(service)->server);
  delete of(service);
  delete service;
  return RMW_RET_OK;
}

rmw_ret_t rmw_send_request(const rmw_client_t * client, const void * ros_request, int64_t * sequence_id)
{
  CHECK_HANDLE(client);
  CHECK_GIVEN(ros_request);
  CHECK_GIVEN(sequence_id);
  std::vector<uint8_t> bytes;
  if (!write(of(client)->type.request, ros_request, bytes)) {
    return RMW_RET_ERROR;
  }
  nrmw_error error{};
  const int64_t number = nrmw_client_send(of(client)->client, bytes.data(), bytes.size(), &error);
  if (number == 0) {
    rmw_noctule::fail("the request was not sent", error);
    return RMW_RET_ERROR;
  }
  *sequence_id = number;
  return RMW_RET_OK;
}

rmw_ret_t rmw_take_response(
  const rmw_client_t * client, rmw_service_info_t * request_header, void * ros_response, bool * taken)
{
  CHECK_HANDLE(client);
  CHECK_GIVEN(request_header);
  CHECK_GIVEN(ros_response);
  CHECK_GIVEN(taken);
  *taken = false;
  nrmw_message message{};
  if (!nrmw_client_take(of(client)->client, &message)) {
    return RMW_RET_OK;
  }
  return read(message, of(client)->type.response, ros_response, request_header, taken);
}

rmw_ret_t rmw_take_request(
  const rmw_service_t * service, rmw_service_info_t * request_header, void * ros_request, bool * taken)
{
  CHECK_HANDLE(service);
  CHECK_GIVEN(request_header);
  CHECK_GIVEN(ros_request);
  CHECK_GIVEN(taken);
  *taken = false;
  nrmw_message message{};
  if (!nrmw_server_take(of(service)->server, &message)) {
    return RMW_RET_OK;
  }
  return read(message, of(service)->type.request, ros_request, request_header, taken);
}

rmw_ret_t rmw_send_response(const rmw_service_t * service, rmw_request_id_t * request_header, void * ros_response)
{
  CHECK_HANDLE(service);
  CHECK_GIVEN(request_header);
  CHECK_GIVEN(ros_response);
  std::vector<uint8_t> bytes;
  if (!write(of(service)->type.response, ros_response, bytes)) {
    return RMW_RET_ERROR;
  }
  uint8_t gid[16];
  std::memcpy(gid, request_header->writer_guid, sizeof(gid));
  // A client that has gone is no error of the service's: the reply is dropped and counted.
  nrmw_error error{};
  constexpr int kTooLong = 2;
  const int done = nrmw_server_reply(
    of(service)->server, gid, request_header->sequence_number, bytes.data(), bytes.size(), &error);
  if (done == kTooLong) {
    rmw_noctule::fail("the response was not sent", error);
    return RMW_RET_ERROR;
  }
  return RMW_RET_OK;
}

rmw_ret_t rmw_service_server_is_available(const rmw_node_t * node, const rmw_client_t * client, bool * is_available)
{
  RMW_CHECK_FOR_NULL_WITH_MSG(node, "no node is given", return RMW_RET_ERROR);
  RMW_CHECK_FOR_NULL_WITH_MSG(client, "no client is given", return RMW_RET_ERROR);
  RMW_CHECK_FOR_NULL_WITH_MSG(is_available, "no place for the answer is given", return RMW_RET_ERROR);
  CHECK_OURS(node, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  CHECK_OURS(client, return RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
  *is_available = nrmw_client_servers(of(client)->client) > 0;
  return RMW_RET_OK;
}

rmw_ret_t rmw_client_request_publisher_get_actual_qos(const rmw_client_t * client, rmw_qos_profile_t * qos)
{
  CHECK_HANDLE(client);
  CHECK_GIVEN(qos);
  *qos = of(client)->qos;
  return RMW_RET_OK;
}

rmw_ret_t rmw_client_response_subscription_get_actual_qos(const rmw_client_t * client, rmw_qos_profile_t * qos)
{
  return rmw_client_request_publisher_get_actual_qos(client, qos);
}

rmw_ret_t rmw_service_response_publisher_get_actual_qos(const rmw_service_t * service, rmw_qos_profile_t * qos)
{
  CHECK_HANDLE(service);
  CHECK_GIVEN(qos);
  *qos = of(service)->qos;
  return RMW_RET_OK;
}

rmw_ret_t rmw_service_request_subscription_get_actual_qos(const rmw_service_t * service, rmw_qos_profile_t * qos)
{
  return rmw_service_response_publisher_get_actual_qos(service, qos);
}

rmw_ret_t rmw_get_gid_for_client(const rmw_client_t * client, rmw_gid_t * gid)
{
  CHECK_HANDLE(client);
  CHECK_GIVEN(gid);
  *gid = rmw_gid_t{};
  gid->implementation_identifier = rmw_noctule_identifier;
  nrmw_client_gid(of(client)->client, gid->data);
  return RMW_RET_OK;
}

rmw_ret_t rmw_compare_gids_equal(const rmw_gid_t * gid1, const rmw_gid_t * gid2, bool * result)
{
  CHECK_HANDLE(gid1);
  CHECK_HANDLE(gid2);
  CHECK_GIVEN(result);
  *result = std::memcmp(gid1->data, gid2->data, RMW_GID_STORAGE_SIZE) == 0;
  return RMW_RET_OK;
}

rmw_ret_t rmw_client_set_on_new_response_callback(
  rmw_client_t * client, rmw_event_callback_t callback, const void * user_data)
{
  CHECK_HANDLE(client);
  nrmw_waitable_listen(nrmw_client_waitable(of(client)->client), callback, user_data);
  return RMW_RET_OK;
}

rmw_ret_t rmw_service_set_on_new_request_callback(
  rmw_service_t * service, rmw_event_callback_t callback, const void * user_data)
{
  CHECK_HANDLE(service);
  nrmw_waitable_listen(nrmw_server_waitable(of(service)->server), callback, user_data);
  return RMW_RET_OK;
}

}  // extern "C"
