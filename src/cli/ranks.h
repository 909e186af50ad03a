// Several ranks on the command line: how they are started, what they must agree on, who prints.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "cluster/watch.h"
#include "train/session_options.h"

namespace tide {

struct RankArguments {
  std::optional<std::int64_t> devices;
  std::string bucket, reduce, reduce_type{"fp32"};
  std::string shard{shard_name(RankSettings{}.shard)}, least_to_shard;
  bool share_devices = false;
  bool sync_batch_norm = false;
  std::int64_t leaves = 0;  // of a fixed order; 0: none; below: none that there could be
  std::string lend, lend_rate, lend_device, peer_rate;
  double hang_timeout = WatchOptions{}.hang;
  std::string stagger{stagger_name(RankSettings{}.stagger)};
  std::string topology;  // empty: as the machines are built
  void add_to(CLI::App& app);
};

// What a rank has of the others, from the start of a job to its end.
class Ranks {
 public:
  // Where --devices asks for several and nobody has launched them, launches them and does not return. `on_stop`
  // is called when the job is asked to stop; from another thread.
  Ranks(const RankArguments& arguments, std::function<void()> on_stop);

  [[nodiscard]] int count() const { return communicator_->size(); }
  [[nodiscard]] bool is_first() const { return communicator_->rank() == 0; }
  // Where this rank prints: nowhere but on the first.
  [[nodiscard]] std::FILE* out(std::FILE* stream) const { return is_first() ? stream : silent_.get(); }
  // Whether that may redraw itself. A launcher gives its ranks terminals of their own, wherever its output goes.
  [[nodiscard]] bool may_redraw() const;
  [[nodiscard]] int threads(int asked) const;
  // By all ranks, before any of them uses a GPU: those of a machine take one each, if this one needs any.
  void take_gpu(bool is_needed) const;
  // By all ranks, with the GPU that each has. Throws an Error where another one has it too, unless they may share it.
  void require_own_gpu(const std::optional<std::string>& bus_id) const;
  [[nodiscard]] RankSettings settings() const;
  // Null where there is one rank.
  [[nodiscard]] Watch* watch() { return watch_.get(); }

  // Throws an Error where the ranks were told different things: which, and what.
  struct Fact {
    std::string what, value;
  };
  void require_same(const std::vector<Fact>& facts);
  // Of all ranks.
  [[nodiscard]] double largest(double own);
  [[nodiscard]] Bytes sum(Bytes own);

  // This rank cannot go on: with several ranks all end with that code, and one says why. Returns where there is one.
  void fail(const std::string& reason, int exit_code);
  // All ranks are through, and well.
  void finish();

 private:
  // What this rank lends, by the words behind an option.
  [[nodiscard]] Bytes lent(std::string_view option, const std::string& words) const;

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  const RankArguments& arguments_;
  std::unique_ptr<std::FILE, Close> silent_;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<Watch> watch_;           // null: there is one rank
  std::unique_ptr<Communicator> watched_;  // over communicator_; null likewise
};

}  // namespace tide
