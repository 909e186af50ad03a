// The connections of a watch (watch.h): plain TCP between rank 0 and each other rank, beside whatever library the ranks
// compute with. Messages are of one size. Nothing here waits, once the ranks are connected.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cluster/blame.h"
#include "cluster/communicator.h"

namespace tide {

enum class WatchWord : std::uint32_t {
  hello,    // who connects, with the job's token as its text
  alive,    // how a rank is, with its operation as its text
  goodbye,  // it leaves in order
  failed,   // it leaves because it has failed; why, as its text
  asked,    // it has been sent SIGTERM
  verdict,  // the job ends, with the line that says why as its text
};

struct WatchMessage {
  WatchWord word = WatchWord::alive;
  std::int32_t rank = 0;
  std::int32_t exit_code = 1;
  std::int64_t step = -1;
  RankState state = {};
  std::array<char, 704> text{};  // ends in a zero

  void set_text(const std::string& new_text);
};

// One connection.
class WatchLink {
 public:
  explicit WatchLink(int descriptor) : descriptor_(descriptor) {}
  ~WatchLink();
  WatchLink(const WatchLink&) = delete;
  WatchLink& operator=(const WatchLink&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_; }
  // What does not fit because the other side does not read is left out; a message is sent as a whole or not at all.
  void send(const WatchMessage& message);
  // The messages that are here, the first ones of them: others are there the next time.
  [[nodiscard]] std::vector<WatchMessage> receive(std::size_t at_most = std::numeric_limits<std::size_t>::max());
  // The other side has closed the connection, or the system has given it up.
  [[nodiscard]] bool is_closed() const { return is_closed_; }

 private:
  bool flush();

  int descriptor_;
  bool is_closed_ = false;
  std::vector<char> unsent_, partial_;
};

// By all ranks: the connections by rank, of which rank 0 has one to each other and they have one to it. Throws an Error
// that names a rank where one cannot be reached within so many seconds.
[[nodiscard]] std::vector<std::unique_ptr<WatchLink>> connect_watch(Communicator& communicator, double seconds = 30);

}  // namespace tide
