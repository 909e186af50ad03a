// Ops are captured from the lanes' streams into one graph: events carry the waits between
// lanes and become edges, so that a launch costs the host one call whatever the step's length.
#include "backend/cuda/step_queue.h"

#include <exception>
#include <list>
#include <map>
#include <utility>

namespace tide::cuda {
namespace {

class GraphQueue final : public StepQueue {
 public:
  GraphQueue(ContextPtr context, bool record_times) : context_(std::move(context)), timed_(record_times) {
    if (timed_) start_ = make_event(true);
    root_ = make_event();
    context_->set_recording(true);
    check(cudaStreamBeginCapture(stream(Lane::compute), cudaStreamCaptureModeThreadLocal), "recording a step");
    recording_ = true;
    joined_[Lane::compute] = true;
    if (timed_) mark(start_, Lane::compute);
    check(cudaEventRecord(root_.get(), stream(Lane::compute)), "recording a step");
  }
  ~GraphQueue() override {
    cudaGraph_t graph = nullptr;
    if (recording_) static_cast<void>(stop_capture(graph));
    static_cast<void>(Graph(graph));  // what was recorded is let go
  }
  GraphQueue(const GraphQueue&) = delete;
  GraphQueue& operator=(const GraphQueue&) = delete;

  void wait(Lane lane, std::size_t op) override {
    const auto done = done_.find(op);
    if (done == done_.end()) throw Error("a recorded step waits for op {}, which comes later", op);
    join(lane);
    check(cudaStreamWaitEvent(stream(lane), done->second.get(), 0), "recording a wait");
  }

  void run(Lane lane, std::size_t op, const Kernel& kernel, const Launch& launch) override {
    join(lane);
    begin(op, lane);
    kernel(launch);
    end(op, lane);
  }

  void copy(Lane lane, std::size_t op, std::byte* to, const std::byte* from, Bytes bytes) override {
    join(lane);
    begin(op, lane);
    check(cudaMemcpyAsync(to, from, bytes.size(), cudaMemcpyDefault, stream(lane)), "recording a copy");
    end(op, lane);
  }

  void call(Lane lane, std::size_t op, std::function<void()> work) override {
    join(lane);
    begin(op, lane);
    calls_.push_back({std::move(work), &error_});
    check(cudaLaunchHostFunc(stream(lane), &Call::run, &calls_.back()), "recording what the host does");
    end(op, lane);
  }

  void finish() override {
    for (const Lane lane : kLaneTable)
      if (lane != Lane::compute && joined_[lane]) follow(Lane::compute, lane);
    const Graph graph = end_capture();
    cudaGraphExec_t made = nullptr;
    check(cudaGraphInstantiate(&made, graph.get(), 0), "making a graph of a step");
    executable_.reset(made);
    done_.clear();
  }

  void launch() override {
    if (executable_ == nullptr) throw Error("a recorded step was launched before it was finished");
    check(cudaGraphLaunch(executable_.get(), stream(Lane::compute)), "launching a step");
  }

  void synchronize() override {
    check(cudaStreamSynchronize(stream(Lane::compute)), "a step");
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

  [[nodiscard]] Span span(std::size_t op) const override {
    const auto times = times_.find(op);
    if (times == times_.end()) throw Error("no times were recorded for op {}", op);
    return {seconds_to(times->second.first), seconds_to(times->second.second)};
  }

 private:
  // Lanes run theirs in order, and only one lane has any, so that nobody else touches the error meanwhile.
  struct Call {
    std::function<void()> work;
    std::exception_ptr* error;
    static void run(void* call) noexcept {
      auto& self = *static_cast<Call*>(call);
      if (*self.error) return;  // the step has failed already
      try {
        self.work();
      } catch (...) {
        *self.error = std::current_exception();
      }
    }
  };

  [[nodiscard]] cudaStream_t stream(Lane lane) const { return context_->stream(lane); }

  // From here on `lane` comes behind what `before` has so far.
  void follow(Lane lane, Lane before) {
    marks_.push_back(make_event());
    check(cudaEventRecord(marks_.back().get(), stream(before)), "recording a step");
    check(cudaStreamWaitEvent(stream(lane), marks_.back().get(), 0), "recording a step");
  }

  // A stream is part of the capture from its first wait for one that is: for the beginning of
  // the step, since what the compute lane did meanwhile is no reason to wait.
  void join(Lane lane) {
    const cudaStream_t joining = stream(lane);
    bool& joined = joined_[lane];
    if (!joined) check(cudaStreamWaitEvent(joining, root_.get(), 0), "recording a step");
    joined = true;
  }

  // A node of the graph that takes the time in every launch.
  void mark(const Event& event, Lane lane) {
    check(cudaEventRecordWithFlags(event.get(), stream(lane), cudaEventRecordExternal), "recording a time");
  }

  void begin(std::size_t op, Lane lane) {
    if (!timed_ || times_.contains(op)) return;
    auto& times = times_[op];
    times = {make_event(true), make_event(true)};
    mark(times.first, lane);
  }

  void end(std::size_t op, Lane lane) {
    if (timed_) mark(times_[op].second, lane);
    Event& done = done_[op];
    done = make_event();
    check(cudaEventRecord(done.get(), stream(lane)), "recording a step");
  }

  cudaError_t stop_capture(cudaGraph_t& graph) noexcept {
    const cudaError_t status = cudaStreamEndCapture(stream(Lane::compute), &graph);
    context_->set_recording(false);
    recording_ = false;
    return status;
  }

  Graph end_capture() {
    cudaGraph_t graph = nullptr;
    check(stop_capture(graph), "recording a step");
    return Graph(graph);
  }

  [[nodiscard]] double seconds_to(const Event& event) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start_.get(), event.get()), "reading a time");
    return static_cast<double>(milliseconds) * 1e-3;
  }

  ContextPtr context_;
  bool timed_;
  bool recording_ = false;
  PerLane<bool> joined_;
  Event start_, root_;
  std::map<std::size_t, Event> done_;                     // by op, while recording
  std::map<std::size_t, std::pair<Event, Event>> times_;  // by op: begin and end
  std::vector<Event> marks_;
  std::list<Call> calls_;  // which the graph points to
  std::exception_ptr error_;
  GraphExec executable_;
};

}  // namespace

std::unique_ptr<StepQueue> make_step_queue(ContextPtr context, bool record_times) {
  return std::make_unique<GraphQueue>(std::move(context), record_times);
}

}  // namespace tide::cuda
