// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Requests in C++17: clients and servers of a service, with messages as bytes of CDR. Included by noctule.hpp. What a call may end with:
// docs/guide/requests.md.
#ifndef NOCTULE_REQUEST_HPP
#define NOCTULE_REQUEST_HPP

#include <noctule/noctule.h>
#include <noctule/sample.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace noctule {

// As noctule_service_options_t, and with its defaults.
struct ServiceOptions {
    std::string request_type = "bytes";
    std::uint64_t request_hash = 0;
    std::string response_type = "bytes";
    std::uint64_t response_hash = 0;
    const char *request_description = nullptr;  // Of the types, for tools that show messages as fields.
    const char *response_description = nullptr;
    std::uint32_t payload_bytes_max = 65536;
    nanoseconds deadline = std::chrono::seconds(5);  // Of a client.
    bool idempotent = false;                         // Of a client.

    noctule_service_options_t given() const noexcept {
        return {request_type.c_str(), request_hash, response_type.c_str(), response_hash, payload_bytes_max, deadline.count(),
                idempotent};
    }
};

namespace detail {

// A message with what is known of it.
template <typename Handle, auto release>
class Received {
public:
    Received(Handle *handle, const noctule_sample_info_t &info) noexcept : handle_(handle), info_(info) {}

    // CDR.
    Bytes bytes() const noexcept { return {info_.bytes, info_.length_bytes}; }

    std::optional<Age> age() const {
        if (info_.age_ns == INT64_MIN) return std::nullopt;
        return Age{nanoseconds(info_.age_ns), known(info_.bound_ns, -1), known(info_.sigma_ns, -1)};
    }

    // The node on the other side.
    NodeId publisher() const { return id(info_.publisher); }

    const Handle *get() const noexcept { return handle_.get(); }

private:
    Owner<Handle, release> handle_;
    noctule_sample_info_t info_;
};

}  // namespace detail

// A response; its age counts from the answer.
using Reply = detail::Received<noctule_reply_t, noctule_reply_release>;

// A request; its age counts from the call.
class Request : public detail::Received<noctule_request_t, noctule_request_release> {
public:
    Request(noctule_request_t *request, const noctule_sample_info_t &info, nanoseconds deadline) noexcept
        : Received(request, info), deadline_(deadline) {}

    // The age at which the caller waits no longer.
    nanoseconds deadline() const noexcept { return deadline_; }

private:
    nanoseconds deadline_;
};

// Calls one service. One thread at a time.
class Client {
public:
    explicit Client(noctule_client_t *client) noexcept : client_(client) {}

    // Sends a request and waits for its response. Throws an Error of status NOCTULE_ERROR_NO_REPLY if there is none.
    Reply call(const void *bytes, std::size_t length_bytes) {
        noctule_reply_t *reply = nullptr;
        noctule_sample_info_t info;
        detail::check(noctule_call(client_.get(), bytes, length_bytes, &reply, &info));
        return Reply(reply, info);
    }

    // Begins a call, with a deadline of its own if one is given, and gives its number. It goes on only in calls with this client.
    std::int64_t start(const void *bytes, std::size_t length_bytes, nanoseconds deadline = nanoseconds(0)) {
        std::int64_t call = 0;
        detail::check(noctule_call_start(client_.get(), bytes, length_bytes, deadline.count(), &call));
        return call;
    }

    // Calls back with the number of the next call that ends and its reply, or null and why there is none: done(call, reply, error). False if none
    // ended within the time, or for ever without one.
    template <typename Done>
    bool next(std::optional<nanoseconds> timeout, Done &&done) {
        noctule_reply_t *reply = nullptr;
        noctule_sample_info_t info;
        std::int64_t call = 0;
        const int status = noctule_call_next(client_.get(), timeout ? timeout->count() : -1, &call, &reply, &info);
        if (status < 0 && call == 0) throw Error(status);
        if (status == NOCTULE_NOTHING) return false;
        if (status < 0) {
            const Error error(status);
            done(call, static_cast<const Reply *>(nullptr), &error);
        } else {
            const Reply answer(reply, info);
            done(call, &answer, static_cast<const Error *>(nullptr));
        }
        return true;
    }

    // False if it has ended.
    bool cancel(std::int64_t call) { return detail::check(noctule_call_cancel(client_.get(), call)) == NOCTULE_OK; }

private:
    detail::Owner<noctule_client_t, noctule_client_close> client_;
};

// Serves one service. One thread at a time.
class Server {
public:
    explicit Server(noctule_server_t *server) noexcept : server_(server) {}

    // The next request; none if the time is over.
    std::optional<Request> receive(std::optional<nanoseconds> timeout = std::nullopt) {
        noctule_request_t *request = nullptr;
        noctule_sample_info_t info;
        std::int64_t deadline_ns = 0;
        const std::int64_t timeout_ns = timeout ? timeout->count() : -1;
        if (detail::check(noctule_server_receive(server_.get(), timeout_ns, &request, &info, &deadline_ns)) != NOCTULE_OK) {
            return std::nullopt;
        }
        return Request(request, info, nanoseconds(deadline_ns));
    }

    // Answers a request, once, in any order.
    void reply(const Request &request, const void *bytes, std::size_t length_bytes) {
        detail::check(noctule_server_reply(server_.get(), request.get(), bytes, length_bytes));
    }

    // Answers with the reason why there is no response.
    void fail(const Request &request, const std::string &why) {
        detail::check(noctule_server_fail(server_.get(), request.get(), why.c_str()));
    }

    // The client does not wait for the answer any more; a cancellation is seen by receive.
    bool is_cancelled(const Request &request) {
        return detail::check(noctule_server_is_cancelled(server_.get(), request.get())) == 1;
    }

    // Waits for a request and answers it with the container of bytes that handle(request) gives, or with what() of the exception that it
    // throws. False if the time is over.
    template <typename Handle>
    bool serve(std::optional<nanoseconds> timeout, Handle &&handle) {
        const std::optional<Request> request = receive(timeout);
        if (!request) return false;
        std::string why;
        try {
            const auto response = handle(*request);
            reply(*request, response.data(), response.size());
            return true;
        } catch (const Error &) {
            throw;
        } catch (const std::exception &error) {
            why = error.what();
        }
        fail(*request, why);
        return true;
    }

private:
    detail::Owner<noctule_server_t, noctule_server_close> server_;
};

}  // namespace noctule

#endif
