// keep_all DOMAIN: the writer of keep_all.c in C++.
#include <noctule/noctule.hpp>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <vector>

using namespace std::chrono_literals;

static void write_all(noctule::Node &node) {
    constexpr std::uint32_t samples = 300;
    noctule::PublisherOptions offered;
    offered.qos.reliability = noctule::Reliability::reliable;
    offered.qos.keep_last = 16;
    offered.keep_all = true;
    offered.linger = 60s;
    noctule::Publisher publisher = node.publisher("rows", offered);
    while (publisher.readers() == 0) publisher.wait_for_room(1, 0s);
    std::vector<char> bytes(3000);
    int held_up = 0, thrown = 0;
    for (std::uint32_t number = 0; number < samples; number++) {
        std::memcpy(bytes.data(), &number, sizeof number);
        while (!publisher.try_publish(bytes.data(), bytes.size())) {
            held_up++;
            try {
                // There may be room by now; then this was it.
                publisher.publish(bytes);
                break;
            } catch (const noctule::Error &error) {
                if (error.status() != NOCTULE_ERROR_WOULD_BLOCK) throw;
                thrown++;
            }
            if (!publisher.wait_for_room(bytes.size(), 60s)) throw std::runtime_error("there is never room");
        }
    }
    if (!publisher.wait_for_acknowledgments(60s)) throw std::runtime_error("not all is acknowledged");
    if (publisher.counters().given_up != 0) throw std::runtime_error("some were given up");
    if (held_up == 0 || thrown == 0) throw std::runtime_error("it was never held up");
    std::cout << "C++: " << samples << " samples, held up " << held_up << " times\n";
}

int main(int count, char **arguments) {
    if (count != 2) return 2;
    try {
        noctule::NodeOptions options;
        options.domain = static_cast<std::uint32_t>(std::strtoul(arguments[1], nullptr, 10));
        noctule::Node node("write", options);
        write_all(node);
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
