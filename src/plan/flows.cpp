#include "plan/flows.h"

#include <algorithm>

namespace tide::together {
namespace {

Path joined(std::initializer_list<std::pair<std::size_t, double>> links) {
  Path path;
  for (const auto& [link, latency] : links) {
    path.crossings.push_back({link, 1});
    path.latency_seconds += latency;
  }
  return path;
}

void append(Path& path, const Path& more) {
  path.crossings.insert(path.crossings.end(), more.crossings.begin(), more.crossings.end());
  path.latency_seconds += more.latency_seconds;
}

}  // namespace

// Even numbers go up or out, odd ones down or in.
std::size_t Roads::add(double there, double back, double both_share) {
  links_.push_back({there, there * both_share});
  links_.push_back({back, back * both_share});
  return links_.size() - 2;
}

Roads::Roads(const Topology& topology) : topology_(topology), places_(device_places(topology)) {
  const auto add_link = [&](const TreeLink& link) { return add(link.up, link.down, link.both_share); };
  for (const HostSlot& host : topology.hosts) {
    network_.push_back(add_link(host.network));
    for (const SwitchSlot& each : host.switches) {
      switch_.push_back(add_link(each.link));
      for (const DeviceSlot& device : each.devices) {
        own_.push_back(add_link(device.link));
        peer_.push_back(add(device.peer_bytes_per_second, device.peer_bytes_per_second, 1));
        const double latency = device.link.latency_seconds + each.link.latency_seconds;
        up_.push_back(joined({{own_.back(), latency}, {switch_.back(), 0}}));
        down_.push_back(joined({{switch_.back() + 1, latency}, {own_.back() + 1, 0}}));
      }
    }
  }
}

Path Roads::between_hosts(std::size_t from, std::size_t to) const {
  if (from == to) return {};
  return joined({{network_[from], topology_.hosts[from].network.latency_seconds},
                 {network_[to] + 1, topology_.hosts[to].network.latency_seconds}});
}

Path Roads::between(std::size_t from, std::size_t to) const {
  const DevicePlace &a = places_[from], &b = places_[to];
  const DeviceSlot &sender = slot_of(topology_, a), &receiver = slot_of(topology_, b);
  if (a.host == b.host && sender.peer_group >= 0 && sender.peer_group == receiver.peer_group)
    return joined({{peer_[from], sender.peer_latency_seconds}, {peer_[to] + 1, 0}});
  if (a.switch_in_all == b.switch_in_all && topology_.hosts[a.host].peer_to_peer)
    return joined({{own_[from], sender.link.latency_seconds}, {own_[to] + 1, receiver.link.latency_seconds}});
  Path path = up_[from];
  append(path, between_hosts(a.host, b.host));
  append(path, down_[to]);
  return path;
}

Path Roads::around(const std::vector<Path>& hops) const {
  std::vector<double> times(links_.size(), 0);
  Path ring;
  for (const Path& hop : hops) {
    for (const Crossing& crossing : hop.crossings) times[crossing.link] += crossing.times;
    ring.latency_seconds = std::max(ring.latency_seconds, hop.latency_seconds);
  }
  for (std::size_t link = 0; link < times.size(); ++link)
    if (times[link] > 0) ring.crossings.push_back({link, times[link]});
  return ring;
}

Path Roads::ring(std::size_t devices) const {
  std::vector<Path> hops;
  for (std::size_t d = 0; d < devices; ++d) hops.push_back(between(d, (d + 1) % devices));
  return around(hops);
}

Path Roads::ring_of_hosts() const {
  std::vector<Path> hops;
  for (std::size_t h = 0; h < hosts(); ++h) hops.push_back(between_hosts(h, (h + 1) % hosts()));
  return around(hops);
}

void share_fairly(const std::vector<OneWay>& links, const std::vector<Flow*>& flows) {
  std::vector<double> left(links.size()), wanted(links.size(), 0);  // by link: bytes per second; transfers that grow
  std::vector<std::size_t> used;
  for (const Flow* const flow : flows)
    for (const Crossing& crossing : flow->path.crossings) {
      if (wanted[crossing.link] == 0) used.push_back(crossing.link);
      wanted[crossing.link] += crossing.times;
    }
  for (const std::size_t link : used) left[link] = wanted[link ^ 1U] > 0 ? links[link].both : links[link].alone;
  std::vector<Flow*> growing = flows;
  while (!growing.empty()) {
    double level = std::numeric_limits<double>::infinity();
    std::size_t full = links.size();
    for (const std::size_t link : used)
      if (wanted[link] > 0 && left[link] / wanted[link] < level) {
        level = left[link] / wanted[link];
        full = link;
      }
    const auto stops = [&](const Flow* flow) {
      if (flow->cap <= level) return true;
      return std::ranges::any_of(flow->path.crossings, [&](const Crossing& c) { return c.link == full; });
    };
    // Those at their caps first: what they leave raises the level of the others.
    const bool capped = std::ranges::any_of(growing, [&](const Flow* flow) { return flow->cap <= level; });
    std::vector<Flow*> rest;
    for (Flow* const flow : growing) {
      if (capped ? flow->cap > level : !stops(flow)) {
        rest.push_back(flow);
        continue;
      }
      flow->rate = std::min(flow->cap, level);
      for (const Crossing& crossing : flow->path.crossings) {
        left[crossing.link] = std::max(0.0, left[crossing.link] - flow->rate * crossing.times);
        wanted[crossing.link] -= crossing.times;
      }
    }
    growing = std::move(rest);
  }
}

}  // namespace tide::together
