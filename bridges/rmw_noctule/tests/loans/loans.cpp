// Publishes loans and takes loans, and prints where they lay.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "loans/msg/gap.hpp"
#include "loans/msg/plain.hpp"
#include "rcl/subscription.h"
#include "rclcpp/rclcpp.hpp"

using loans::msg::Gap;
using loans::msg::Plain;

namespace
{

// The name of the mapping in which an address is.
std::string mapping_of(const void * address)
{
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line); ) {
    unsigned long long first = 0, end = 0;
    int name = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx %*s %*s %*s %*s %n", &first, &end, &name) < 2) {
      continue;
    }
    const auto at = reinterpret_cast<uintptr_t>(address);
    if (first <= at && at < end) {
      return line.substr(name);
    }
  }
  return "";
}

bool is_shared(const void * address) {return mapping_of(address).find("memfd:") != std::string::npos;}

struct Count
{
  int written_in_place = 0;
  int read_in_place = 0;
  int right = 0;
};

void fill(Plain & message, int number)
{
  message.kind = static_cast<uint8_t>(number);
  message.value = number + 0.5;
  message.parts[2].second = static_cast<uint8_t>(number + 1);
  message.data.front() = message.data.back() = static_cast<uint8_t>(number + 2);
  message.last = static_cast<uint16_t>(number + 3);
}

bool is_right(const Plain & message, int number)
{
  return message.kind == number && message.value == number + 0.5 && message.parts[2].second == number + 1 &&
         message.data.front() == number + 2 && message.data.back() == number + 2 && message.last == number + 3;
}

// The next message, lent; waits up to 10 s.
Plain * take(rclcpp::SubscriptionBase & subscription)
{
  for (int attempt = 0; attempt < 10'000; ++attempt) {
    void * message = nullptr;
    rmw_message_info_t info{};
    if (rcl_take_loaned_message(subscription.get_subscription_handle().get(), &message, &info, nullptr) == RCL_RET_OK) {
      return static_cast<Plain *>(message);
    }
    rcl_reset_error();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return nullptr;
}

}  // namespace

int main(int argc, char ** argv)
{
  constexpr int kMessages = 100;
  rclcpp::init(argc, argv);
  const auto node = std::make_shared<rclcpp::Node>("loans");
  const auto quality = rclcpp::QoS(10).reliable();
  const auto publisher = node->create_publisher<Plain>("plain", quality);
  const auto gap = node->create_publisher<Gap>("gap", quality);
  const auto subscription =
    node->create_subscription<Plain>("plain", quality, [](const std::shared_ptr<const Plain> &) {});
  while (publisher->get_subscription_count() == 0 || subscription->get_publisher_count() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  Count count;
  for (int number = 0; number < kMessages; ++number) {
    auto loan = publisher->borrow_loaned_message();
    fill(loan.get(), number);
    count.written_in_place += is_shared(&loan.get());
    publisher->publish(std::move(loan));
    Plain * taken = take(*subscription);
    if (taken == nullptr) {
      break;
    }
    count.read_in_place += is_shared(taken);
    count.right += is_right(*taken, number);
    (void)!rcl_return_loaned_message_from_subscription(subscription->get_subscription_handle().get(), taken);
  }
  std::printf(
    "{\"plain\": %d, \"gap\": %d, \"written_in_place\": %d, \"read_in_place\": %d, \"right\": %d}\n",
    publisher->can_loan_messages(), gap->can_loan_messages(), count.written_in_place, count.read_in_place, count.right);
  rclcpp::shutdown();
  return 0;
}
