// Publishes each line of standard input on the topic `hello`.

#include <iostream>
#include <noctule/noctule.hpp>

int main() {
    const noctule::Node node("talker");
    auto publisher = node.publisher("hello");
    for (std::string line; std::getline(std::cin, line);) publisher.publish(line);
}
