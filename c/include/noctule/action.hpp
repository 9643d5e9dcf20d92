// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Actions in C++17: clients and servers, with messages as bytes of CDR. Included by noctule.hpp. What it is all about: docs/guide/actions.md.
#ifndef NOCTULE_ACTION_HPP
#define NOCTULE_ACTION_HPP

#include <noctule/noctule.h>
#include <noctule/request.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace noctule {

// The number of a goal, a UUID; all zero: none.
using GoalId = std::array<std::uint8_t, 16>;

// Where a goal is.
enum class GoalStatus : int {
    unknown = NOCTULE_GOAL_UNKNOWN,
    accepted = NOCTULE_GOAL_ACCEPTED,
    executing = NOCTULE_GOAL_EXECUTING,
    canceling = NOCTULE_GOAL_CANCELING,
    succeeded = NOCTULE_GOAL_SUCCEEDED,
    canceled = NOCTULE_GOAL_CANCELED,
    aborted = NOCTULE_GOAL_ABORTED,
};

// As noctule_action_options_t, and with its defaults.
struct ActionOptions {
    std::string type_name;  // "package/action/Name"
    std::uint64_t send_goal_request_hash = 0;
    std::uint64_t send_goal_response_hash = 0;
    std::uint64_t get_result_request_hash = 0;
    std::uint64_t get_result_response_hash = 0;
    std::uint64_t feedback_hash = 0;
    std::uint32_t payload_bytes_max = 65536;
    nanoseconds deadline = std::chrono::seconds(5);           // Of a client.
    nanoseconds result_deadline = std::chrono::hours(24);     // Of a client.
    nanoseconds keep_results = std::chrono::seconds(10);      // Of a server.
    std::vector<std::uint8_t> empty_result;                   // Of a server.
    std::function<bool(const GoalId &)> on_cancel;            // Of a server: false lets the goal go on. It must not throw.

    noctule_action_options_t given() const noexcept {
        noctule_action_options_t given = {};
        given.type_name = type_name.c_str();
        given.send_goal_request_hash = send_goal_request_hash;
        given.send_goal_response_hash = send_goal_response_hash;
        given.get_result_request_hash = get_result_request_hash;
        given.get_result_response_hash = get_result_response_hash;
        given.feedback_hash = feedback_hash;
        given.payload_bytes_max = payload_bytes_max;
        given.deadline_ns = deadline.count();
        given.result_deadline_ns = result_deadline.count();
        given.keep_results_ns = keep_results.count();
        given.empty_result = empty_result.empty() ? nullptr : empty_result.data();
        given.empty_result_bytes = empty_result.size();
        return given;
    }
};

// Event in the life of a goal.
struct GoalEvent {
    int kind = 0;  // NOCTULE_EVENT_...
    GoalId goal = {};
    GoalStatus status = GoalStatus::unknown;
    int cancel_code = 0;           // Of NOCTULE_EVENT_CANCEL.
    nanoseconds stamp{0};          // Of NOCTULE_EVENT_ACCEPTED.
    std::vector<std::uint8_t> bytes;  // Of feedback and results, CDR.
    std::optional<Age> age;
    std::optional<Error> error;  // Why it failed, or was not answered.
};

// Sends goals of one action and follows them. One thread at a time.
class ActionClient {
public:
    ActionClient(const noctule_node_t *node, const std::string &action, const ActionOptions &options) {
        noctule_action_client_t *client = nullptr;
        const noctule_action_options_t given = options.given();
        detail::check(noctule_action_client_open(node, action.c_str(), &given, &client));
        client_ = decltype(client_)(client);
    }

    // Sends a goal, a ..._SendGoal_Request, and gives its number.
    GoalId start(const void *bytes, std::size_t length_bytes, nanoseconds result_deadline = nanoseconds(0)) {
        GoalId goal = {};
        detail::check(noctule_action_send(client_.get(), bytes, length_bytes, result_deadline.count(), goal.data()));
        return goal;
    }

    // The next event of a goal; none if the time is over or no goal is followed.
    std::optional<GoalEvent> next(std::optional<nanoseconds> timeout = std::nullopt) {
        noctule_goal_event_t event;
        const int status = noctule_action_next(client_.get(), timeout ? timeout->count() : -1, &event);
        if (status == NOCTULE_NOTHING) return std::nullopt;
        if (status < 0 && event.kind == 0) throw Error(status);
        GoalEvent known;
        known.kind = event.kind;
        std::copy_n(event.goal, known.goal.size(), known.goal.begin());
        known.stamp = nanoseconds(event.stamp_ns);
        if (status < 0) {
            known.error = Error(status);
        } else if (event.kind == NOCTULE_EVENT_CANCEL) {
            known.cancel_code = event.status;
        } else {
            known.status = static_cast<GoalStatus>(event.status);
        }
        if (event.message != nullptr) {
            const detail::Received<noctule_goal_message_t, noctule_goal_message_release> message(event.message, event.info);
            known.bytes.assign(message.bytes().begin(), message.bytes().end());
            known.age = message.age();
        }
        return known;
    }

    // Requests the cancellation of a goal of any client; the answer is an event.
    void cancel(const GoalId &goal) { detail::check(noctule_action_cancel(client_.get(), goal.data(), 0)); }

    // The same for all goals that were accepted at this time of day or before.
    void cancel_before(nanoseconds stamp) { detail::check(noctule_action_cancel(client_.get(), nullptr, stamp.count())); }

    // The same for all goals.
    void cancel_all() { detail::check(noctule_action_cancel(client_.get(), nullptr, 0)); }

    // False if the time is over before there is a server.
    bool wait_for_server(nanoseconds timeout) {
        return detail::check(noctule_action_wait_for_server(client_.get(), timeout.count())) == NOCTULE_OK;
    }

private:
    detail::Owner<noctule_action_client_t, noctule_action_client_close> client_;
};

// A goal at its server. Destroying it rejects it if it was not accepted, and aborts it if it was not ended. One thread at a time.
class Goal : public detail::Received<noctule_goal_t, noctule_goal_close> {
public:
    Goal(noctule_goal_t *goal, const noctule_sample_info_t &info) noexcept : Received(goal, info), goal_(goal) {}

    GoalId id() const {
        GoalId id = {};
        detail::check(noctule_goal_id(goal_, id.data()));
        return id;
    }

    // Accepts and executes it, or is to execute it later.
    void accept(bool is_begun = true) { detail::check(noctule_goal_accept(goal_, is_begun)); }

    void reject() { detail::check(noctule_goal_reject(goal_)); }

    // Executes a goal that was accepted for later.
    void execute() { detail::check(noctule_goal_execute(goal_)); }

    // Whether it is to be canceled; waits for that up to a time.
    bool wait_for_cancel(std::optional<nanoseconds> timeout = nanoseconds(0)) {
        return detail::check(noctule_goal_wait_for_cancel(goal_, timeout ? timeout->count() : -1)) == NOCTULE_OK;
    }

    // Publishes feedback, a ..._FeedbackMessage.
    void feedback(const void *bytes, std::size_t length_bytes) {
        detail::check(noctule_goal_feedback(goal_, bytes, length_bytes));
    }

    // Ends it with a ..._GetResult_Response.
    void end(GoalStatus status, const void *bytes, std::size_t length_bytes) {
        detail::check(noctule_goal_end(goal_, static_cast<int>(status), bytes, length_bytes));
    }

private:
    noctule_goal_t *goal_;
};

// Serves one action.
class ActionServer {
public:
    ActionServer(const noctule_node_t *node, const std::string &action, const ActionOptions &options) {
        noctule_action_options_t given = options.given();
        if (options.on_cancel) {
            on_cancel_ = std::make_unique<std::function<bool(const GoalId &)>>(options.on_cancel);
            given.context = on_cancel_.get();
            given.on_cancel = [](void *context, const std::uint8_t *goal) {
                GoalId id = {};
                std::copy_n(goal, id.size(), id.begin());
                return (*static_cast<std::function<bool(const GoalId &)> *>(context))(id) ? 0 : 1;
            };
        }
        noctule_action_server_t *server = nullptr;
        detail::check(noctule_action_server_open(node, action.c_str(), &given, &server));
        server_ = decltype(server_)(server);
    }

    // The next goal, a ..._SendGoal_Request; none if the time is over. Any thread may.
    std::optional<Goal> next(std::optional<nanoseconds> timeout = std::nullopt) {
        noctule_goal_t *goal = nullptr;
        noctule_sample_info_t info;
        const std::int64_t timeout_ns = timeout ? timeout->count() : -1;
        if (detail::check(noctule_action_server_next(server_.get(), timeout_ns, &goal, &info)) != NOCTULE_OK) return std::nullopt;
        return std::optional<Goal>(std::in_place, goal, info);
    }

private:
    // Before the server, which may call it until it is closed.
    std::unique_ptr<std::function<bool(const GoalId &)>> on_cancel_;
    detail::Owner<noctule_action_server_t, noctule_action_server_close> server_;
};

}  // namespace noctule

#endif
