#include "backend/cpu/program.h"

#include "backend/cpu/context.h"

namespace tide::cpu {
namespace {

std::size_t aligned(std::size_t bytes) { return Bytes(static_cast<std::int64_t>(bytes)).aligned(kAlignment).size(); }

// A primitive with memory objects that are pointed at the operands when it runs. Uses the
// C interface: the C++ one would fill a hash map in every run.
class Call {
 public:
  Call(const dnnl::primitive_desc_base& description, const std::vector<Argument>& arguments,
       std::shared_ptr<Context> context)
      : context_(std::move(context)), primitive_(description.get()) {
    for (const Argument& argument : arguments) {
      memories_.push_back(dnnl::memory(argument.layout, context_->engine(), nullptr));
      arguments_.push_back({argument.id, memories_.back().get()});
      places_.push_back(argument.place);
      bound_.push_back(nullptr);
    }
  }

  void run(const Launch& launch) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      std::byte* address = places_[i].address(launch);
      if (address == bound_[i]) continue;  // setting it would also write the layout's padding
      check(dnnl_memory_set_data_handle(arguments_[i].memory, address));
      bound_[i] = address;
    }
    check(dnnl_primitive_execute(primitive_.get(), context_->stream().get(), static_cast<int>(arguments_.size()),
                                 arguments_.data()));
  }

 private:
  static void check(dnnl_status_t status) {
    if (status != dnnl_success) throw Error("oneDNN failed with status {}", static_cast<int>(status));
  }

  std::shared_ptr<Context> context_;
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
  std::vector<Place> places_;
  std::vector<std::byte*> bound_;
};

}  // namespace

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

Place Program::reserve(std::size_t bytes) {
  const Place place{true, reserved_};
  reserved_ += aligned(bytes);
  return place;
}

void Program::call(const dnnl::primitive_desc_base& primitive, std::vector<Argument> arguments, std::size_t slack) {
  scratch_ = std::max(scratch_, aligned(primitive.scratchpad_desc().get_size() + slack));
  stages_.push_back({primitive, std::move(arguments), {}});
}

void Program::reorder(const dnnl::memory::desc& from, Place source, const dnnl::memory::desc& to, Place target,
                      bool accumulate) {
  dnnl::primitive_attr attributes = user_scratchpad();
  if (accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    attributes.set_post_ops(sum);
  }
  const dnnl::reorder::primitive_desc description(engine_, from, engine_, to, attributes);
  call(description, {{DNNL_ARG_FROM, from, source}, {DNNL_ARG_TO, to, target}});
}

void Program::call(OwnKernel kernel) { stages_.push_back({{}, {}, std::move(kernel)}); }

Kernel Program::make_kernel(const std::shared_ptr<Context>& context) const {
  struct State {
    std::shared_ptr<Context> context;
    std::vector<Call> calls;        // in the order of the stages that are primitives
    std::vector<OwnKernel> stages;  // empty: the next call
  };
  const auto state = std::make_shared<State>();
  state->context = context;
  for (const Stage& stage : stages_) {
    state->stages.push_back(stage.own);
    if (stage.own) continue;
    std::vector<Argument> arguments = stage.arguments;
    const dnnl::memory::desc scratchpad = stage.description.scratchpad_desc();
    if (scratchpad.get_size() > 0) arguments.push_back({DNNL_ARG_SCRATCHPAD, scratchpad, {true, reserved_}});
    state->calls.emplace_back(stage.description, arguments, context);
  }
  return [state](const Launch& launch) {
    state->context->use_threads();
    auto call = state->calls.begin();
    for (const OwnKernel& own : state->stages) {
      if (own)
        own(launch, state->context->threads());
      else
        (call++)->run(launch);
    }
  };
}

}  // namespace tide::cpu
