#include "cluster/watch_link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <sstream>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/stopwatch.h"

namespace tide {
namespace {

static_assert(std::is_trivially_copyable_v<WatchMessage>);

std::string system_error() { return std::strerror(errno); }

// A descriptor that is closed unless somebody takes it.
class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  [[nodiscard]] int get() const { return descriptor_; }
  [[nodiscard]] int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

// An address of either family.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

std::optional<SocketAddress> parse_address(const std::string& text, std::uint16_t port) {
  SocketAddress made;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  if (inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1) {
    std::memcpy(&made.storage, &four, sizeof(four));
    made.length = sizeof(four);
  } else if (inet_pton(AF_INET6, text.c_str(), &six.sin6_addr) == 1) {
    std::memcpy(&made.storage, &six, sizeof(six));
    made.length = sizeof(six);
  } else {
    return std::nullopt;
  }
  return made;
}

// Of this machine, as others may reach it. Addresses that hold for one link only need the name of an interface.
std::vector<std::string> own_addresses() {
  std::vector<std::string> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP) || (entry->ifa_flags & IFF_LOOPBACK)) continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    const int family = entry->ifa_addr->sa_family;
    if (family == AF_INET) {
      sockaddr_in four{};
      std::memcpy(&four, entry->ifa_addr, sizeof(four));
      inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
    } else if (family == AF_INET6) {
      sockaddr_in6 six{};
      std::memcpy(&six, entry->ifa_addr, sizeof(six));
      if (!IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr)) inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
    }
    if (text[0]) found.emplace_back(text.data());
  }
  freeifaddrs(list);
  return found;
}

void set_up(int descriptor) {
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// On a port that the system chooses, on all interfaces, of both families where there are both.
Socket listen_anywhere(int backlog, std::uint16_t& port) {
  for (const int family : {AF_INET6, AF_INET}) {
    Socket listener(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (listener.get() < 0) continue;
    const int off = 0;
    if (family == AF_INET6) setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    SocketAddress address = *parse_address(family == AF_INET6 ? "::" : "0.0.0.0", 0);
    if (bind(listener.get(), address.get(), address.length) != 0 || listen(listener.get(), backlog) != 0) continue;
    getsockname(listener.get(), address.get(), &address.length);
    port = ntohs(family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port
                                    : reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
    set_up(listener.get());
    return listener;
  }
  throw Error("ranks cannot watch each other: no port can be listened on: {}", system_error());
}

bool wait_for(int descriptor, short events, double seconds) {
  pollfd entry{descriptor, events, 0};
  return poll(&entry, 1, std::max(1, static_cast<int>(seconds * 1000))) > 0;
}

// Strangers do not know it.
std::string new_token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

std::optional<WatchMessage> wait_for_message(WatchLink& link, double seconds) {
  const Stopwatch waited;
  while (!link.is_closed() && waited.seconds() < seconds) {
    if (!wait_for(link.descriptor(), POLLIN, seconds - waited.seconds())) continue;
    // What follows the answer, even at once, is for the watch.
    const std::vector<WatchMessage> messages = link.receive(1);
    if (!messages.empty()) return messages.front();
  }
  return std::nullopt;
}

// To one address; nothing where nobody answers there, or somebody else does.
std::unique_ptr<WatchLink> try_address(const SocketAddress& address, const WatchMessage& hello) {
  constexpr double kSeconds = 2;
  Socket made(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (made.get() < 0) return nullptr;
  set_up(made.get());
  if (connect(made.get(), address.get(), address.length) != 0) {
    if (errno != EINPROGRESS || !wait_for(made.get(), POLLOUT, kSeconds)) return nullptr;
    int result = 0;
    socklen_t length = sizeof(result);
    if (getsockopt(made.get(), SOL_SOCKET, SO_ERROR, &result, &length) != 0 || result != 0) return nullptr;
  }
  auto link = std::make_unique<WatchLink>(made.release());
  link->send(hello);
  const std::optional<WatchMessage> answer = wait_for_message(*link, kSeconds);
  if (!answer || answer->word != WatchWord::hello || answer->text != hello.text) return nullptr;
  link->send(hello);  // this is the connection that is kept: others were given up before their answers came
  return link;
}

std::unique_ptr<WatchLink> reach_rank0(const Communicator& communicator, const std::string& whereabouts,
                                       double seconds) {
  std::istringstream words(whereabouts);
  std::uint16_t port = 0;
  std::string token;
  words >> port >> token;
  std::vector<std::string> addresses;
  if (communicator.host(0) == communicator.host(communicator.rank())) addresses.emplace_back("127.0.0.1");
  for (std::string address; words >> address;) addresses.push_back(address);
  if (addresses.empty()) addresses.emplace_back("127.0.0.1");
  WatchMessage hello{.word = WatchWord::hello, .rank = communicator.rank()};
  hello.set_text(token);
  for (const Stopwatch tried; tried.seconds() < seconds; std::this_thread::sleep_for(std::chrono::milliseconds(50)))
    for (const std::string& address : addresses)
      if (const std::optional<SocketAddress> parsed = parse_address(address, port))
        if (std::unique_ptr<WatchLink> link = try_address(*parsed, hello)) return link;
  std::string list;
  for (const std::string& address : addresses) list += (list.empty() ? "" : ", ") + address;
  throw Error("rank {} on host {} cannot reach rank 0 on host {} at {} port {}: allow TCP between the machines",
              communicator.rank(), communicator.host(communicator.rank()), communicator.host(0), list, port);
}

std::vector<std::unique_ptr<WatchLink>> accept_all(const Communicator& communicator, const Socket& listener,
                                                   const std::string& token, double seconds) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  struct Stranger {
    std::unique_ptr<WatchLink> link;
    bool was_answered = false;
  };
  std::vector<std::unique_ptr<WatchLink>> links(ranks);
  std::vector<Stranger> strangers;
  std::size_t connected = 1;
  for (const Stopwatch waited; connected < ranks;) {
    if (waited.seconds() > seconds) {
      const auto missing = std::find(links.begin() + 1, links.end(), nullptr) - links.begin();
      throw Error("rank {} on host {} does not reach rank 0 on host {}: allow TCP between the machines", missing,
                  communicator.host(static_cast<int>(missing)), communicator.host(0));
    }
    std::vector<pollfd> entries{{listener.get(), POLLIN, 0}};
    for (const Stranger& stranger : strangers) entries.push_back({stranger.link->descriptor(), POLLIN, 0});
    poll(entries.data(), entries.size(), 100);
    for (auto& [link, was_answered] : strangers) {
      const std::vector<WatchMessage> messages = link->receive(1);
      if (messages.empty()) continue;
      const WatchMessage& hello = messages.front();
      const auto rank = static_cast<std::size_t>(hello.rank);
      if (hello.word != WatchWord::hello || hello.text.data() != token || hello.rank <= 0 || rank >= ranks) continue;
      if (!std::exchange(was_answered, true)) {
        link->send(hello);
      } else {
        if (!links[rank]) ++connected;
        links[rank] = std::move(link);
      }
    }
    std::erase_if(strangers, [](const Stranger& stranger) { return !stranger.link || stranger.link->is_closed(); });
    for (int made = 0; (made = accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      set_up(made);
      strangers.push_back({std::make_unique<WatchLink>(made)});
    }
  }
  return links;
}

}  // namespace

void WatchMessage::set_text(const std::string& new_text) {
  text.fill(0);
  std::copy_n(new_text.begin(), std::min(new_text.size(), text.size() - 1), text.begin());
}

WatchLink::~WatchLink() { close(descriptor_); }

bool WatchLink::flush() {
  const ssize_t sent = ::send(descriptor_, unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent > 0) unsent_.erase(unsent_.begin(), unsent_.begin() + sent);
  return unsent_.empty();
}

void WatchLink::send(const WatchMessage& message) {
  // Messages are small beside a socket's buffer: what is still unsent is for a side that does not read.
  if (!unsent_.empty() && !flush()) return;
  unsent_.resize(sizeof(message));
  std::memcpy(unsent_.data(), &message, sizeof(message));
  if (!flush() && unsent_.size() == sizeof(message)) unsent_.clear();
}

std::vector<WatchMessage> WatchLink::receive(std::size_t at_most) {
  std::vector<WatchMessage> messages;
  std::array<char, 8192> bytes{};
  for (;;) {
    const ssize_t count = recv(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) is_closed_ = true;
    if (count <= 0) break;
    partial_.insert(partial_.end(), bytes.begin(), bytes.begin() + count);
  }
  std::size_t used = 0;
  for (; messages.size() < at_most && partial_.size() - used >= sizeof(WatchMessage); used += sizeof(WatchMessage)) {
    WatchMessage& message = messages.emplace_back();
    std::memcpy(&message, partial_.data() + used, sizeof(message));
    message.text.back() = 0;
  }
  partial_.erase(partial_.begin(), partial_.begin() + static_cast<std::ptrdiff_t>(used));
  return messages;
}

std::vector<std::unique_ptr<WatchLink>> connect_watch(Communicator& communicator, double seconds) {
  std::vector<std::unique_ptr<WatchLink>> links(static_cast<std::size_t>(communicator.size()));
  if (communicator.size() == 1) return links;
  Socket listener;
  std::string whereabouts, token;
  if (communicator.rank() == 0) {
    std::uint16_t port = 0;
    listener = listen_anywhere(communicator.size(), port);
    token = new_token();
    whereabouts = fmt::format("{} {}", port, token);
    for (const std::string& address : own_addresses()) whereabouts += " " + address;
  }
  whereabouts = communicator.gather(whereabouts).front();
  if (communicator.rank() == 0) return accept_all(communicator, listener, token, seconds);
  links.front() = reach_rank0(communicator, whereabouts, seconds);
  return links;
}

}  // namespace tide
