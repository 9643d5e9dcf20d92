// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Parameters in C++17: named values of a node that other programs read and set. Included by noctule.hpp. What they are:
// docs/guide/parameters.md.
#ifndef NOCTULE_PARAMETER_HPP
#define NOCTULE_PARAMETER_HPP

#include <noctule/noctule.h>
#include <noctule/sample.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace noctule {

// The value of a parameter: std::monostate is none. Its index is NOCTULE_PARAMETER_BOOL and so on.
using Parameter = std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::uint8_t>, std::vector<bool>,
                               std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>>;

// As noctule_parameter_options_t: the range that fits the value's type holds.
struct ParameterOptions {
    std::string description;
    std::string constraints;
    bool read_only = false;
    bool dynamic_typing = false;
    std::optional<std::pair<std::int64_t, std::int64_t>> integer_range;
    std::uint64_t integer_step = 0;
    std::optional<std::pair<double, double>> range;
    double step = 0.0;
};

namespace detail {

// A value for C, with what it points to.
class Given {
public:
    explicit Given(const Parameter &value) {
        shown_.type = static_cast<int>(value.index());
        std::visit([this](const auto &one) { set(one); }, value);
    }

    const noctule_parameter_value_t *get() const noexcept { return &shown_; }

private:
    void set(std::monostate) noexcept {}
    void set(bool value) noexcept { shown_.boolean = value; }
    void set(std::int64_t value) noexcept { shown_.integer = value; }
    void set(double value) noexcept { shown_.real = value; }
    void set(const std::string &value) noexcept { shown_.text = value.c_str(); }
    void set(const std::vector<bool> &values) {
        bools_.reset(new bool[values.size() + 1]);
        for (std::size_t i = 0; i < values.size(); i++) bools_[i] = values[i];
        list(bools_.get(), values.size());
    }
    void set(const std::vector<std::string> &values) {
        for (const std::string &value : values) texts_.push_back(value.c_str());
        list(texts_.data(), values.size());
    }
    template <typename T>
    void set(const std::vector<T> &values) noexcept {
        list(values.data(), values.size());
    }
    void list(const void *elements, std::size_t count) noexcept {
        shown_.elements = elements;
        shown_.count = count;
    }

    noctule_parameter_value_t shown_{};
    std::unique_ptr<bool[]> bools_;
    std::vector<const char *> texts_;
};

template <typename T>
std::vector<T> copied(const noctule_parameter_value_t &value) {
    const T *first = static_cast<const T *>(value.elements);
    return std::vector<T>(first, first + value.count);
}

inline Parameter parameter(const noctule_parameter_value_t &value) {
    switch (value.type) {
        case NOCTULE_PARAMETER_BOOL: return value.boolean;
        case NOCTULE_PARAMETER_INTEGER: return value.integer;
        case NOCTULE_PARAMETER_DOUBLE: return value.real;
        case NOCTULE_PARAMETER_STRING: return std::string(value.text);
        case NOCTULE_PARAMETER_BYTE_ARRAY: return copied<std::uint8_t>(value);
        case NOCTULE_PARAMETER_BOOL_ARRAY: return copied<bool>(value);
        case NOCTULE_PARAMETER_INTEGER_ARRAY: return copied<std::int64_t>(value);
        case NOCTULE_PARAMETER_DOUBLE_ARRAY: return copied<double>(value);
        case NOCTULE_PARAMETER_STRING_ARRAY: {
            const char *const *first = static_cast<const char *const *>(value.elements);
            return std::vector<std::string>(first, first + value.count);
        }
        default: return std::monostate();
    }
}

// Calls get and owns its result: none if the parameter is not declared.
template <typename Handle>
std::optional<Parameter> parameter_of(int (*get)(Handle, const char *, noctule_parameter_t **, noctule_parameter_value_t *),
                                      Handle handle, const std::string &name) {
    noctule_parameter_t *kept = nullptr;
    noctule_parameter_value_t value{};
    if (check(get(handle, name.c_str(), &kept, &value)) != NOCTULE_OK) return std::nullopt;
    const Owner<noctule_parameter_t, noctule_parameter_release> owner(kept);
    return parameter(value);
}

}  // namespace detail

// The parameters of a node, while this lives. Any thread may use it.
class Parameters {
public:
    explicit Parameters(noctule_parameters_t *parameters) noexcept : parameters_(parameters) {}

    // Declares a parameter of the type of this value.
    void declare(const std::string &name, const Parameter &value, const ParameterOptions &options = {}) {
        noctule_parameter_options_t given{};
        given.description = options.description.c_str();
        given.constraints = options.constraints.c_str();
        given.read_only = options.read_only;
        given.dynamic_typing = options.dynamic_typing;
        given.has_range = options.integer_range || options.range;
        if (options.integer_range) std::tie(given.integer_from, given.integer_to) = *options.integer_range;
        given.integer_step = options.integer_step;
        if (options.range) std::tie(given.from, given.to) = *options.range;
        given.step = options.step;
        const detail::Given shown(value);
        detail::check(noctule_parameters_declare(parameters_.get(), name.c_str(), shown.get(), &given));
    }

    // None if it is not declared.
    std::optional<Parameter> get(const std::string &name) const {
        return detail::parameter_of<const noctule_parameters_t *>(noctule_parameters_get, parameters_.get(), name);
    }

    // Sets a parameter as others do. Throws an Error with the reason if it is refused.
    void set(const std::string &name, const Parameter &value) {
        const detail::Given shown(value);
        detail::check(noctule_parameters_set(parameters_.get(), name.c_str(), shown.get()));
    }

    // Has callback(name, value) called before a parameter is set, by any thread; the sentence that it gives, or that of an exception, refuses. It may read the
    // parameters, but not set them. The last callback that was given is called.
    void on_set(std::function<std::optional<std::string>(const std::string &, const Parameter &)> callback) {
        callbacks_.push_back(std::make_unique<Callback>(std::move(callback)));
        detail::check(noctule_parameters_on_set(parameters_.get(), &called, callbacks_.back().get()));
    }

private:
    using Callback = std::function<std::optional<std::string>(const std::string &, const Parameter &)>;

    static int called(void *context, const char *name, const noctule_parameter_value_t *value, char *why, std::size_t why_bytes) {
        std::optional<std::string> reason;
        try {
            reason = (*static_cast<Callback *>(context))(name, detail::parameter(*value));
        } catch (const std::exception &error) {
            reason = error.what();
        }
        if (reason) std::snprintf(why, why_bytes, "%s", reason->c_str());
        return reason ? 1 : 0;
    }

    // All: one that was replaced may be running.
    std::vector<std::unique_ptr<Callback>> callbacks_;
    // After the callbacks, of which it calls the last until it is closed.
    detail::Owner<noctule_parameters_t, noctule_parameters_close> parameters_;
};

// Reads and sets the parameters of another node. One thread at a time.
class ParameterClient {
public:
    explicit ParameterClient(noctule_parameter_client_t *client) noexcept : client_(client) {}

    // Names, in the order of the alphabet.
    std::vector<std::string> list() {
        std::vector<std::string> names;
        const auto add = [](void *context, const char *name) { static_cast<std::vector<std::string> *>(context)->push_back(name); };
        detail::check(noctule_parameter_client_list(client_.get(), add, &names));
        return names;
    }

    // None if it is not declared.
    std::optional<Parameter> get(const std::string &name) {
        return detail::parameter_of<noctule_parameter_client_t *>(noctule_parameter_client_get, client_.get(), name);
    }

    // Throws an Error with the node's reason if it refuses.
    void set(const std::string &name, const Parameter &value) {
        const detail::Given shown(value);
        detail::check(noctule_parameter_client_set(client_.get(), name.c_str(), shown.get()));
    }

private:
    detail::Owner<noctule_parameter_client_t, noctule_parameter_client_close> client_;
};

}  // namespace noctule

#endif
