// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Clients and servers of services for generated types of C++17. What a call may end with: docs/guide/requests.md. Header only.
#ifndef NOCTULE_SERVICE_HPP
#define NOCTULE_SERVICE_HPP

#include <noctule/typed.hpp>

#include <stdexcept>

namespace noctule {
namespace detail {

template <typename Request, typename Response>
ServiceOptions of_types(ServiceOptions options) {
    options.request_type = Request::noctule_type_name;
    options.request_hash = Request::noctule_type_hash;
    options.response_type = Response::noctule_type_name;
    options.response_hash = Response::noctule_type_hash;
    options.request_description = description_of<Request>(nullptr);
    options.response_description = description_of<Response>(nullptr);
    return options;
}

// Throws for a value that breaks a bound of its type.
template <typename Type>
auto encoded(const Type &value) {
    auto bytes = cdr::encode(value);
    if (!bytes) throw std::invalid_argument(std::string("a value breaks a bound of ") + Type::noctule_type_name);
    return std::move(*bytes);
}

template <typename Type, typename Octets>
Type decoded(const Octets &bytes) {
    auto value = cdr::decode<Type>(bytes.data(), bytes.size());
    if (!value) throw std::runtime_error(std::string("the bytes are no ") + Type::noctule_type_name);
    return std::move(*value);
}

}  // namespace detail

// A response, and what is known of it.
template <typename Response>
struct TypedReply {
    Response value;
    std::optional<Age> age;  // Since the server answered. None: its clock is not known yet.
    NodeId server;
};

// Calls a service.
template <typename Request, typename Response>
class TypedClient {
public:
    TypedClient(const Node &node, const std::string &service, const ServiceOptions &options = {})
        : client_(node.client(service, detail::of_types<Request, Response>(options))) {}

    // Sends a request and waits for its response. Throws as Client::call does; std::invalid_argument for a value that breaks a bound of
    // its type, std::runtime_error for a response that is none.
    TypedReply<Response> call(const Request &request) {
        const auto bytes = detail::encoded(request);
        const Reply reply = client_.call(bytes.data(), bytes.size());
        return {detail::decoded<Response>(reply.bytes()), reply.age(), reply.publisher()};
    }

    // For all else.
    Client &untyped() noexcept { return client_; }

private:
    Client client_;
};

// Serves a service.
template <typename Request, typename Response>
class TypedServer {
public:
    TypedServer(const Node &node, const std::string &service, const ServiceOptions &options = {})
        : server_(node.server(service, detail::of_types<Request, Response>(options))) {}

    // Waits for a request and answers it with the response that handle(request) gives, or with what() of the exception that it throws; one that
    // cannot be read is answered so, too. False if the time is over.
    template <typename Handle>
    bool serve(std::optional<nanoseconds> timeout, Handle &&handle) {
        return server_.serve(timeout, [&](const noctule::Request &request) {
            return detail::encoded<Response>(handle(detail::decoded<Request>(request.bytes())));
        });
    }

    // For all else.
    Server &untyped() noexcept { return server_; }

private:
    Server server_;
};

}  // namespace noctule

#endif
