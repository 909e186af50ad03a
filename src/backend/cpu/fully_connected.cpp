// Fully connected layers as matrix products. x is batch x inputs and y batch x outputs;
// the weights are kept as inputs x outputs.
#include "backend/cpu/context.h"
#include "backend/cpu/pointwise.h"
#include "backend/cpu/recipe.h"

namespace tide::cpu {
namespace {

using Layout = dnnl::memory::desc;

struct MatrixProblem {
  std::int64_t batch, inputs, outputs;

  static Layout matrix(std::int64_t rows, std::int64_t columns) {
    return {{rows, columns}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::ab};
  }
  // A matrix whose memory is that of its transpose.
  static Layout transposed(std::int64_t rows, std::int64_t columns) {
    return {{rows, columns}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::ba};
  }
};

void product(Program& program, const dnnl::engine& engine, const Layout& a, std::size_t a_position, const Layout& b,
             std::size_t b_position, const Layout& c, std::size_t c_position, bool accumulate,
             std::optional<std::size_t> bias = std::nullopt) {
  dnnl::primitive_attr attributes = user_scratchpad();
  if (accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    attributes.set_post_ops(sum);
  }
  std::vector<Argument> arguments{{DNNL_ARG_SRC, a, operand_place(a_position)},
                                  {DNNL_ARG_WEIGHTS, b, operand_place(b_position)},
                                  {DNNL_ARG_DST, c, operand_place(c_position)}};
  if (bias) {
    const Layout row = MatrixProblem::matrix(1, c.dims()[1]);
    arguments.push_back({DNNL_ARG_BIAS, row, operand_place(*bias)});
    program.call(dnnl::matmul::primitive_desc({a, b, row, c}, attributes, engine), std::move(arguments));
  } else {
    program.call(dnnl::matmul::primitive_desc({a, b, c}, attributes, engine), std::move(arguments));
  }
}

ProgramPtr make_program(const TaskView& view, const MatrixProblem& p, const dnnl::engine& engine) {
  Program program(engine);
  const Layout x = MatrixProblem::matrix(p.batch, p.inputs), y = MatrixProblem::matrix(p.batch, p.outputs);
  const Layout weights = MatrixProblem::matrix(p.inputs, p.outputs);
  if (view.is_forward()) {
    product(program, engine, x, view.read(Role::x), weights, view.read(Role::weight), y, view.written(Role::y), false,
            view.find_read(Role::bias));
  } else if (view.kind() == TaskKind::backward_data) {
    product(program, engine, y, view.read(Role::dy), MatrixProblem::transposed(p.outputs, p.inputs),
            view.read(Role::weight), x, view.written(Role::dx), false);
  } else {
    const std::size_t d_weight = view.written(Role::d_weight), dy = view.read(Role::dy);
    product(program, engine, MatrixProblem::transposed(p.inputs, p.batch), view.read(Role::x), y, dy, weights, d_weight,
            view.accumulates(d_weight));
    if (const auto d_bias = view.find_written(Role::d_bias)) {
      const bool accumulate = view.accumulates(*d_bias);
      program.call([=, position = *d_bias](const Launch& launch, int threads) {
        sum_rows(output_of<float>(launch, position), input_of<float>(launch, dy), p.batch, p.outputs, accumulate,
                 threads);
      });
    }
  }
  return std::make_shared<const Program>(std::move(program));
}

}  // namespace

Recipe fully_connected_recipe(const TaskView& view, const ContextPtr& context) {
  const MatrixProblem problem{view.samples(), view.input().per_sample(), view.output().channels()};
  constexpr std::int64_t kNotAConvolution = -1;
  Signature signature{kNotAConvolution, problem.batch, problem.inputs, problem.outputs};
  append_task(signature, view);
  const ProgramPtr program =
      context->program(signature, [&] { return make_program(view, problem, context->engine()); });
  return {program->workspace(), [program, context] { return program->make_kernel(context); }};
}

}  // namespace tide::cpu
