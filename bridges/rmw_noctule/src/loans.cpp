// Messages that a subscription has lent.
#include "types.hpp"

namespace rmw_noctule
{
namespace
{

// Loans of one subscription that may be out at once.
constexpr size_t kLoansMax = 256;

// A message in this host's byte order, where its type may lie.
bool lies_there(const Plain & plain, const nrmw_message & message)
{
  const uint8_t * body = message.bytes + kHeaderBytes;
  return message.is_lent && message.length >= kHeaderBytes + plain.bytes && message.bytes[0] == 0 &&
         message.bytes[1] == 1 && reinterpret_cast<uintptr_t>(body) % sizeof(uint64_t) == 0;
}

}  // namespace

Loans::~Loans()
{
  for (auto & [place, loan] : out_) {
    if (loan.message.owner != nullptr) {
      nrmw_message_free(&loan.message);
    }
  }
}

void * Loans::lend(const MessageType & type, const Plain & plain, const nrmw_message & message)
{
  Loan loan{message, nullptr};
  const std::lock_guard<std::mutex> lock(mutex_);
  if (out_.size() >= kLoansMax) {
    nrmw_message_free(&loan.message);
    RMW_SET_ERROR_MSG_WITH_FORMAT_STRING("%zu messages of this subscription are lent; give some back", kLoansMax);
    return nullptr;
  }
  // Only what fills a struct up at its end lies behind the message, in the same eight bytes. A program that takes it may only read it.
  void * place = const_cast<uint8_t *>(message.bytes) + kHeaderBytes;
  if (!lies_there(plain, message)) {
    loan.copy = std::make_unique<uint64_t[]>((plain.size + sizeof(uint64_t) - 1) / sizeof(uint64_t));
    place = loan.copy.get();
    const bool is_read = type.read(message.bytes, message.length, place);
    nrmw_message_free(&loan.message);
    loan.message.owner = nullptr;
    if (!is_read) {
      return nullptr;
    }
  }
  out_.emplace(place, std::move(loan));
  return place;
}

bool Loans::give_back(void * message)
{
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = out_.find(message);
  if (found == out_.end()) {
    return false;
  }
  if (found->second.message.owner != nullptr) {
    nrmw_message_free(&found->second.message);
  }
  out_.erase(found);
  return true;
}

}  // namespace rmw_noctule
