// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Clients and servers of actions for generated types of C++17. What becomes of a goal: docs/guide/actions.md. Header only.
//
// `Types` names the messages that ROS 2 derives of a .action, as the generator writes it for each action of topics.toml: type_name, SendRequest,
// SendResponse, GetRequest, GetResponse and FeedbackMessage.
#ifndef NOCTULE_TYPED_ACTION_HPP
#define NOCTULE_TYPED_ACTION_HPP

#include <noctule/service.hpp>

namespace noctule {
namespace detail {

template <typename Types>
ActionOptions of_action(const Node &node, ActionOptions options) {
    options.type_name = Types::type_name;
    options.send_goal_request_hash = Types::SendRequest::noctule_type_hash;
    options.send_goal_response_hash = Types::SendResponse::noctule_type_hash;
    options.get_result_request_hash = Types::GetRequest::noctule_type_hash;
    options.get_result_response_hash = Types::GetResponse::noctule_type_hash;
    options.feedback_hash = Types::FeedbackMessage::noctule_type_hash;
    const char *const descriptions[] = {
        description_of<typename Types::SendRequest>(nullptr), description_of<typename Types::SendResponse>(nullptr),
        description_of<typename Types::GetRequest>(nullptr), description_of<typename Types::GetResponse>(nullptr),
        description_of<typename Types::FeedbackMessage>(nullptr)};
    for (const char *description : descriptions) {
        // Without it other tools show bytes; all else is the same.
        if (description != nullptr) static_cast<void>(node.describe(description));
    }
    return options;
}

}  // namespace detail

// Event in the life of a goal; see GoalEvent.
template <typename Types>
struct TypedGoalEvent {
    GoalEvent event;
    std::optional<decltype(Types::FeedbackMessage::feedback)> feedback;  // Of NOCTULE_EVENT_FEEDBACK.
    std::optional<decltype(Types::GetResponse::result)> result;          // Of NOCTULE_EVENT_RESULT.
};

// Sends goals of one action and follows them. One thread at a time.
template <typename Types>
class TypedActionClient {
public:
    using Goal = decltype(Types::SendRequest::goal);

    TypedActionClient(const Node &node, const std::string &action, const ActionOptions &options = {})
        : client_(node.action_client(action, detail::of_action<Types>(node, options))) {}

    // Sends a goal and gives its number. std::invalid_argument for a value that breaks a bound of its type.
    GoalId start(const Goal &goal, nanoseconds result_deadline = nanoseconds(0)) {
        typename Types::SendRequest request;
        request.goal = goal;
        const auto bytes = detail::encoded(request);
        return client_.start(bytes.data(), bytes.size(), result_deadline);
    }

    // The next event of a goal; none if the time is over or no goal is followed. std::runtime_error for feedback or a result that is none.
    std::optional<TypedGoalEvent<Types>> next(std::optional<nanoseconds> timeout = std::nullopt) {
        auto event = client_.next(timeout);
        if (!event) return std::nullopt;
        TypedGoalEvent<Types> known;
        if (event->kind == NOCTULE_EVENT_FEEDBACK)
            known.feedback = detail::decoded<typename Types::FeedbackMessage>(event->bytes).feedback;
        if (event->kind == NOCTULE_EVENT_RESULT)
            known.result = detail::decoded<typename Types::GetResponse>(event->bytes).result;
        known.event = std::move(*event);
        return known;
    }

    // For all else: cancellations, waiting for a server.
    ActionClient &untyped() noexcept { return client_; }

private:
    ActionClient client_;
};

// A goal at its server. Destroying it rejects it if it was not accepted, and aborts it if it was not ended. One thread at a time.
template <typename Types>
class TypedGoal {
public:
    using Value = decltype(Types::SendRequest::goal);
    using Result = decltype(Types::GetResponse::result);
    using Feedback = decltype(Types::FeedbackMessage::feedback);

    TypedGoal(Goal goal, Value value) : goal_(std::move(goal)), value_(std::move(value)) {}

    const Value &value() const noexcept { return value_; }

    // Publishes feedback. std::invalid_argument for a value that breaks a bound of its type.
    void feedback(const Feedback &feedback) {
        typename Types::FeedbackMessage message;
        message.feedback = feedback;
        const auto bytes = detail::encoded(message);
        goal_.feedback(bytes.data(), bytes.size());
    }

    // Ends it: succeeded, aborted or, if it is to be canceled, canceled. std::invalid_argument as above; then it goes on.
    void end(GoalStatus status, const Result &result) {
        typename Types::GetResponse response;
        response.result = result;
        const auto bytes = detail::encoded(response);
        goal_.end(status, bytes.data(), bytes.size());
    }

    // For all else: to accept or reject it, its number, cancellation.
    Goal &untyped() noexcept { return goal_; }

private:
    Goal goal_;
    Value value_;
};

// Serves one action. A goal without an end has the result that its type begins with.
template <typename Types>
class TypedActionServer {
public:
    TypedActionServer(const Node &node, const std::string &action, const ActionOptions &options = {})
        : server_(node.action_server(action, detail::of_action<Types>(node, with_result(options)))) {}

    // The next goal; none if the time is over. One that cannot be read is rejected. Any thread may.
    std::optional<TypedGoal<Types>> next(std::optional<nanoseconds> timeout = std::nullopt) {
        while (auto goal = server_.next(timeout)) {
            const auto bytes = goal->bytes();
            if (auto request = cdr::decode<typename Types::SendRequest>(bytes.data(), bytes.size()))
                return std::optional<TypedGoal<Types>>(std::in_place, std::move(*goal), std::move(request->goal));
        }
        return std::nullopt;
    }

private:
    static ActionOptions with_result(ActionOptions options) {
        if (options.empty_result.empty()) {
            const auto bytes = detail::encoded(typename Types::GetResponse());
            options.empty_result.assign(bytes.begin(), bytes.end());
        }
        return options;
    }

    ActionServer server_;
};

}  // namespace noctule

#endif
