// Prints the samples of the topic `hello`, and how old each was when it came.

#include <iostream>
#include <noctule/noctule.hpp>

int main() {
    const noctule::Node node("listener");
    auto subscriber = node.subscriber("hello");
    while (const auto sample = subscriber.receive())
        if (const auto age = sample->age())
            std::cout << sample->bytes().text() << ": " << age->value.count() << " ns old\n";
}
