#include "backend/cpu/context.h"
#include "backend/cpu/convolution_problem.h"
#include "backend/cpu/pointwise.h"
#include "backend/cpu/recipe.h"

namespace tide::cpu {
namespace {

using Layout = dnnl::memory::desc;

// Puts the weights into the layout that the primitive wants, where that is another.
Place weights_place(Program& program, std::size_t position, const Layout& stored, const Layout& wanted) {
  if (stored == wanted) return operand_place(position);
  const Place copy = program.reserve(wanted.get_size());
  program.reorder(stored, operand_place(position), wanted, copy);
  return copy;
}

ProgramPtr forward_program(const TaskView& view, const ConvolutionProblem& problem, const Layout& stored,
                           const dnnl::engine& engine, int threads) {
  Program program(engine);
  const dnnl::primitive_desc primitive = problem.forward(engine);
  const Layout wanted = primitive.query_md(dnnl::query::weights_md);
  const Place weights = weights_place(program, view.read(Role::weight), stored, wanted);
  std::vector<Argument> arguments{{DNNL_ARG_SRC, problem.x(), operand_place(view.read(Role::x))},
                                  {DNNL_ARG_WEIGHTS, wanted, weights},
                                  {DNNL_ARG_DST, problem.y(), operand_place(view.written(Role::y))}};
  if (problem.options.bias) arguments.push_back({DNNL_ARG_BIAS, problem.bias(), operand_place(view.read(Role::bias))});
  program.call(primitive, std::move(arguments), problem.scratch_slack(threads));
  return std::make_shared<const Program>(std::move(program));
}

ProgramPtr backward_data_program(const TaskView& view, const ConvolutionProblem& problem, const Layout& stored,
                                 const dnnl::engine& engine, int threads) {
  Program program(engine);
  const Place dy = operand_place(view.read(Role::dy)), dx = operand_place(view.written(Role::dx));
  const bool mirrored = problem.is_mirrored();
  const dnnl::primitive_desc primitive = mirrored ? problem.mirrored().forward(engine) : problem.backward_data(engine);
  const Layout wanted = primitive.query_md(dnnl::query::weights_md);
  const Layout source = mirrored ? stored.permute_axes({1, 0, 2, 3}) : stored;
  const Place weights = weights_place(program, view.read(Role::weight), source, wanted);
  program.call(primitive,
               {{mirrored ? DNNL_ARG_SRC : DNNL_ARG_DIFF_DST, problem.y(), dy},
                {DNNL_ARG_WEIGHTS, wanted, weights},
                {mirrored ? DNNL_ARG_DST : DNNL_ARG_DIFF_SRC, problem.x(), dx}},
               problem.scratch_slack(threads));
  return std::make_shared<const Program>(std::move(program));
}

ProgramPtr backward_weights_program(const TaskView& view, const ConvolutionProblem& problem, const Layout& stored,
                                    const dnnl::engine& engine, int threads) {
  Program program(engine);
  const dnnl::primitive_desc primitive = problem.backward_weights(engine);
  const Layout made = primitive.query_md(dnnl::query::diff_weights_md);
  const Place target = operand_place(view.written(Role::d_weight));
  const bool accumulate = view.accumulates(target.value);
  const bool direct = made == stored && !accumulate;
  const Place weights = direct ? target : program.reserve(made.get_size());
  std::vector<Argument> arguments{{DNNL_ARG_SRC, problem.x(), operand_place(view.read(Role::x))},
                                  {DNNL_ARG_DIFF_DST, problem.y(), operand_place(view.read(Role::dy))},
                                  {DNNL_ARG_DIFF_WEIGHTS, made, weights}};

  Place bias_target, bias;
  if (problem.options.bias) {
    bias_target = operand_place(view.written(Role::d_bias));
    bias = view.accumulates(bias_target.value) ? program.reserve(problem.bias().get_size()) : bias_target;
    arguments.push_back({DNNL_ARG_DIFF_BIAS, problem.bias(), bias});
  }
  program.call(primitive, std::move(arguments), problem.scratch_slack(threads));
  const auto add = [&program](Place to, Place from, std::size_t bytes) {
    program.call([=](const Launch& launch, int team) {
      add_floats(reinterpret_cast<float*>(to.address(launch)), reinterpret_cast<const float*>(from.address(launch)),
                 static_cast<std::int64_t>(bytes / sizeof(float)), team);
    });
  };
  if (made != stored)
    program.reorder(made, weights, stored, target, accumulate);
  else if (accumulate)
    add(target, weights, made.get_size());
  if (bias.in_workspace) add(bias_target, bias, problem.bias().get_size());
  return std::make_shared<const Program>(std::move(program));
}

}  // namespace

Recipe convolution_recipe(const TaskView& view, const ContextPtr& context) {
  const Layer& layer = view.layer();
  const NetworkPtr& network = view.step().network;
  const auto problem = ConvolutionProblem::of(layer, network->shape(layer.inputs[0]), view.samples());
  const WeightLayout& layout = *context->weight_layout(network, layer.parameter(ParameterRole::weight));

  Signature signature = problem.signature();
  signature.insert(signature.end(), layout.signature.begin(), layout.signature.end());
  append_task(signature, view);
  const ProgramPtr program = context->program(signature, [&] {
    if (view.is_forward()) return forward_program(view, problem, layout.stored, context->engine(), context->threads());
    if (view.kind() == TaskKind::backward_data)
      return backward_data_program(view, problem, layout.stored, context->engine(), context->threads());
    return backward_weights_program(view, problem, layout.stored, context->engine(), context->threads());
  });
  return {program->workspace(), [program, context] { return program->make_kernel(context); }};
}

Recipe transposed_convolution_recipe(const TaskView& view, const ContextPtr& context) {
  return convolution_recipe(view, context);
}

}  // namespace tide::cpu
