#include "train/rank_swaps.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "cluster/link_groups.h"
#include "planner/ranks/link_share.h"

namespace tide {
namespace {

// Ranks that are alone need nobody.
std::vector<std::string> gathered(const RankSettings& ranks, const std::string& own) {
  return ranks.communicator == nullptr ? std::vector{own} : ranks.communicator->gather(own);
}

double link_rate(const CostModel& cost, Tier from, Tier to) {
  const Bytes much(std::int64_t{64} << 20);
  const double seconds = cost.copy_seconds(much, from, to) - cost.copy_seconds(Bytes(), from, to);
  constexpr double kNoTime = 1e15;  // of a link that the model does not have
  return seconds > 0 ? static_cast<double>(much.count()) / seconds : kNoTime;
}

Topology topology_of(const std::vector<std::vector<std::size_t>>& hosts, const TreeLink& link) {
  // Sums in host memory take the same time in every way that is compared.
  constexpr double kMemory = 60e9;
  Topology topology{.name = "this machine's", .hosts = {}};
  for (const std::vector<std::size_t>& groups : hosts) {
    HostSlot host{.network = link, .memory_bytes_per_second = kMemory, .peer_to_peer = true, .switches = {}};
    for (const std::size_t devices : groups)
      host.switches.push_back({link, std::vector<DeviceSlot>(devices, DeviceSlot{.link = link})});
    topology.hosts.push_back(std::move(host));
  }
  return topology;
}

class Agreement {
 public:
  explicit Agreement(const SwapRequest& request)
      : request_(request),
        step_(request.build({})),
        plans_{.step = &step_,
               .plan = [this](const Policy& policy, const PlannerOptions& options,
                              const CostModel& cost) { return search_plan(policy, request_.build, cost, options); },
               .cost = &request.cost,
               .topology = &request.links.topology,
               .road = request.road} {}

  std::optional<RankWay> paper() {
    if (request_.policy.swappable == nullptr)
      throw Error("policy {} swaps no layers that could be staggered; use vdnn-conv or vdnn-all, or --stagger auto",
                  request_.policy.name);
    const std::int32_t all = request_.policy.swappable(step_, request_.options);
    const std::int32_t layers = fewest_layers(layer_counts(all));
    std::vector<RankWay> ways;
    if (is_first()) {
      // The paper's triggers, unless vDNN's own are faster.
      RankPlans plain = plan_staggered(plans_, request_.policy, request_.options, layers);
      RankPlans triggered =
          layers > 0 ? plan_staggered(plans_, request_.policy, request_.options, layers, true) : plain;
      if (triggered.seconds > plain.seconds) std::swap(triggered, plain);
      for (RankPlans* const set : {&triggered, &plain}) {
        if (!set->fits()) continue;
        RankWay& way = set->ways.front();
        way.name = fmt::format("paper{}, {} of {} layers", way.early.empty() ? "" : " with triggers", layers, all);
        ways.push_back(way);
      }
    }
    return first_for_all(ways);
  }

  std::optional<RankWay> fastest() {
    std::vector<RankWay> ways;
    if (is_first()) ways = plan_ranks(plans_, request_.policy, request_.options, Stagger::automatic).ways;
    return first_for_all(ways);
  }

 private:
  [[nodiscard]] bool is_first() const { return request_.ranks.rank() == 0; }

  // In which this rank has a plan.
  [[nodiscard]] bool fits(const RankWay& way) const {
    const PlannerOptions options = options_at(way, request_.options, request_.links.place_of(request_.ranks.rank()));
    const LinkShare share(request_.cost, way.link_share);
    return search_plan(find_policy(way.policy), request_.build, share, options).plan.has_value();
  }

  // Each rank's fewest, no fewer than anybody else's, until that changes nothing. Where none does, all.
  std::int32_t fewest_layers(const std::vector<std::int32_t>& counts) const {
    std::size_t agreed = 0;
    while (true) {
      std::size_t own = agreed;
      const auto fits_with = [&](std::size_t at) {
        return fits({.name = "", .policy = std::string(request_.policy.name), .layers = counts[at]});
      };
      while (own + 1 < counts.size() && !fits_with(own)) ++own;
      const std::size_t before = agreed;
      for (const std::string& text : gathered(request_.ranks, fmt::format("{}", own)))
        agreed = std::max(agreed, static_cast<std::size_t>(std::stoull(text)));
      if (agreed == before) return counts[agreed];
    }
  }

  // Of the first rank's ways.
  std::optional<RankWay> first_for_all(const std::vector<RankWay>& own) const {
    const std::vector<RankWay> ways = ways_from_text(gathered(request_.ranks, ways_to_text(own)).front());
    for (const RankWay& way : ways) {
      const std::vector<std::string> answers = gathered(request_.ranks, fits(way) ? "fits" : "");
      if (std::ranges::none_of(answers, &std::string::empty)) return way;
    }
    return std::nullopt;
  }

  const SwapRequest& request_;
  Step step_;
  RankRequest plans_;
};

}  // namespace

std::int32_t RankLinks::place_of(int rank) const {
  return static_cast<std::int32_t>(device_places(topology)[device_of[static_cast<std::size_t>(rank)]].device_in_switch);
}

RankLinks find_links(const RankSettings& ranks, const Backend& backend, const CostModel& cost) {
  const auto count = static_cast<std::size_t>(ranks.count());
  RankLinks links;
  if (ranks.topology) {
    links.topology = first_devices(*ranks.topology, count);
    for (std::size_t rank = 0; rank < count; ++rank) links.device_of.push_back(rank);
    return links;
  }
  const std::optional<std::string> bus_id = backend.pci_bus_id();
  const std::string key = bus_id && count > 1 ? find_link_key(*bus_id) : "host memory";
  const std::vector<LinkPlace> places =
      ranks.communicator == nullptr ? std::vector<LinkPlace>(1) : exchange_links(*ranks.communicator, key);
  // Hosts in the order of their first ranks, each with its groups in theirs.
  std::map<std::string, std::size_t> host_numbers;
  std::map<std::size_t, std::pair<std::size_t, std::size_t>> at;  // by group: its host, and which of that it is
  std::vector<std::vector<std::size_t>> hosts;                    // by host: the sizes of its groups
  for (std::size_t rank = 0; rank < count; ++rank) {
    const std::string name = ranks.communicator == nullptr ? "" : ranks.communicator->host(static_cast<int>(rank));
    const std::size_t host = host_numbers.try_emplace(name, hosts.size()).first->second;
    if (host == hosts.size()) hosts.emplace_back();
    const auto [group, is_new] = at.try_emplace(places[rank].group, host, hosts[host].size());
    if (is_new) hosts[host].push_back(0);
    ++hosts[host][group->second.second];
  }
  links.topology =
      topology_of(hosts, {link_rate(cost, Tier::device, Tier::host), link_rate(cost, Tier::host, Tier::device), 1, 0});
  const std::vector<DevicePlace> devices = device_places(links.topology);
  for (const LinkPlace& place : places) {
    const auto& [host, group] = at.at(place.group);
    links.device_of.push_back(static_cast<std::size_t>(std::ranges::find_if(devices,
                                                                            [&](const DevicePlace& device) {
                                                                              return device.host == host &&
                                                                                     device.switch_in_host == group &&
                                                                                     device.device_in_switch ==
                                                                                         place.index;
                                                                            }) -
                                                       devices.begin()));
  }
  return links;
}

std::optional<RankWay> agree_on_swaps(const SwapRequest& request) {
  Agreement agreement(request);
  return request.ranks.stagger == Stagger::paper ? agreement.paper() : agreement.fastest();
}

// A line for its name, one for the numbers, one for each list of layers and of triggers.
std::string ways_to_text(const std::vector<RankWay>& ways) {
  std::string text;
  for (const RankWay& way : ways) {
    text += fmt::format("{}\n{} {} {} {} {}\n", way.name, way.policy, way.link_share, way.layers, way.only.size(),
                        way.early.size());
    for (const auto* const lists : {&way.only, &way.early})
      for (const std::vector<std::int32_t>& list : *lists) text += fmt::format("{}\n", fmt::join(list, " "));
  }
  return text;
}

std::vector<RankWay> ways_from_text(const std::string& text) {
  std::istringstream lines(text);
  std::vector<RankWay> ways;
  for (std::string line; std::getline(lines, line);) {
    RankWay way;
    way.name = line;
    std::size_t only = 0, early = 0;
    std::getline(lines, line);
    std::istringstream(line) >> way.policy >> way.link_share >> way.layers >> only >> early;
    const auto read = [&](std::size_t lists, std::vector<std::vector<std::int32_t>>& into) {
      for (std::size_t i = 0; i < lists && std::getline(lines, line); ++i) {
        std::istringstream numbers(line);
        std::vector<std::int32_t>& list = into.emplace_back();
        for (std::int32_t number = 0; numbers >> number;) list.push_back(number);
      }
    };
    read(only, way.only);
    read(early, way.early);
    ways.push_back(std::move(way));
  }
  return ways;
}

}  // namespace tide
