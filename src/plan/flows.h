// Internal to simulate_together: a topology's links one way at a time, the paths over them, and how flows share them.
#pragma once

#include <limits>
#include <vector>

#include "cost/topology.h"

namespace tide::together {

// A link, one way. Its other way is the number with the last bit turned over.
struct OneWay {
  double alone = 0, both = 0;  // bytes per second while the other way is idle, and while it is busy
};

// How often a flow crosses a link: more than once where it stands for several transfers in step.
struct Crossing {
  std::size_t link = 0;
  double times = 1;
};

struct Path {
  std::vector<Crossing> crossings;
  double latency_seconds = 0;
};

class Roads {
 public:
  explicit Roads(const Topology& topology);

  [[nodiscard]] const std::vector<OneWay>& links() const { return links_; }
  [[nodiscard]] const Path& up(std::size_t device) const { return up_[device]; }  // to the memory of its host
  [[nodiscard]] const Path& down(std::size_t device) const { return down_[device]; }
  // Over a direct link where they have one; else up to the first switch or host that both are below.
  [[nodiscard]] Path between(std::size_t from, std::size_t to) const;
  // From the memory of one host to that of another.
  [[nodiscard]] Path between_hosts(std::size_t from, std::size_t to) const;
  // All transfers to the next in a ring, in step: bytes per transfer, and the latency of the slowest.
  [[nodiscard]] Path ring(std::size_t devices) const;
  [[nodiscard]] Path ring_of_hosts() const;
  [[nodiscard]] std::size_t host_of(std::size_t device) const { return places_[device].host; }
  [[nodiscard]] std::size_t hosts() const { return network_.size(); }

 private:
  std::size_t add(double there, double back, double both_share);
  [[nodiscard]] Path around(const std::vector<Path>& hops) const;

  const Topology& topology_;
  std::vector<DevicePlace> places_;
  std::vector<OneWay> links_;
  std::vector<Path> up_, down_;                // by device
  std::vector<std::size_t> own_, peer_;        // by device: its link to the switch, its direct link
  std::vector<std::size_t> switch_, network_;  // by switch of all, by host
};

struct Flow {
  Path path;
  double cap = std::numeric_limits<double>::infinity();  // bytes per second that its ends can do
  double rate = 0;
};

// Max-min fair: all rates grow together until a link is full or a flow at its cap; those stop there, the others go on.
void share_fairly(const std::vector<OneWay>& links, const std::vector<Flow*>& flows);

}  // namespace tide::together
