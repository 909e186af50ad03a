// The rows of several parts of the samples put together. The tree is that of the cpu backend: a range of parts is cut
// in the middle, so that what some ranks have added up goes on with what others have.
#include "backend/cuda/batch_norm.cuh"

namespace tide::cuda {
namespace {

// Of how many ranges, cut in the middle again and again, the right half ends with this part.
__device__ int ranges_ended_by(int part, int parts) {
  int begin = 0, end = parts, ended = 0;
  while (end - begin > 1) {
    const int middle = begin + (end - begin) / 2;
    if (part < middle) {
      end = middle;
      ended = 0;
    } else {
      begin = middle;
      ++ended;
    }
  }
  return ended;
}

// A thread's tree. What waits for its other half lies in scratch memory, `stride` apart.
template <typename Value, typename Of, typename Both>
__device__ Value over_parts(int parts, Value* waiting, std::int64_t stride, Of of, Both both) {
  std::int64_t size = 0;
  for (int part = 0;; ++part) {
    Value value = of(part);
    for (int ended = ranges_ended_by(part, parts); ended > 0; --ended) value = both(waiting[--size * stride], value);
    if (part + 1 == parts) return value;
    waiting[size++ * stride] = value;
  }
}

// How many values of a tree wait at once, at most.
std::int64_t most_waiting(std::int64_t parts) {
  std::int64_t levels = 1;
  while ((std::int64_t{1} << levels) < parts) ++levels;
  return levels;
}

// Mean, and squares around it, of so many numbers.
struct JoinedMoments {
  double count, mean, squares;
};

__global__ void join_statistics_kernel(PartRows s, const float* moments, BatchNormStatistics out,
                                       JoinedMoments* waiting) {
  const std::int64_t c = thread_index();
  if (c >= s.channels) return;
  const JoinedMoments all = over_parts(
      static_cast<int>(s.parts), waiting + c, s.channels,
      [&](int part) {
        const float* own = moments + static_cast<std::int64_t>(part) * 2 * s.channels + c;
        return JoinedMoments{static_cast<double>(s.rows), static_cast<double>(own[0]),
                             static_cast<double>(own[s.channels])};
      },
      [](const JoinedMoments& a, const JoinedMoments& b) {
        const double count = a.count + b.count, difference = b.mean - a.mean;
        return JoinedMoments{count, a.mean + difference * b.count / count,
                             a.squares + b.squares + difference * difference * a.count * b.count / count};
      });
  keep_statistics(out, c, all.count, all.mean, all.squares, static_cast<double>(out.running_mean[c]),
                  static_cast<double>(out.running_variance[c]));
}

// Of floats, as other gradients are.
__global__ void join_sums_kernel(PartRows s, const float* moments, PartSums out, float* waiting) {
  const std::int64_t i = thread_index(), width = 2 * s.channels;
  if (i >= width) return;
  const float sum = over_parts(
      static_cast<int>(s.parts), waiting + i, width,
      [&](int part) { return moments[static_cast<std::int64_t>(part) * width + i]; },
      [](float a, float b) { return a + b; });
  const bool of_scale = i < s.channels;
  float* target = of_scale ? out.d_scale + i : out.d_shift + (i - s.channels);
  *target = (of_scale ? out.add_scale : out.add_shift) ? sum + *target : sum;
}

}  // namespace

std::size_t join_statistics_bytes(const PartRows& s) {
  return static_cast<std::size_t>(most_waiting(s.parts) * s.channels) * sizeof(JoinedMoments);
}
std::size_t join_sums_bytes(const PartRows& s) {
  return static_cast<std::size_t>(most_waiting(s.parts) * 2 * s.channels) * sizeof(float);
}

cudaError_t launch_join_statistics(cudaStream_t stream, const PartRows& s, const float* moments,
                                   const BatchNormStatistics& statistics, std::byte* workspace) {
  join_statistics_kernel<<<blocks_for(s.channels), kThreads, 0, stream>>>(s, moments, statistics,
                                                                          reinterpret_cast<JoinedMoments*>(workspace));
  return cudaGetLastError();
}

cudaError_t launch_join_sums(cudaStream_t stream, const PartRows& s, const float* moments, const PartSums& sums,
                             std::byte* workspace) {
  join_sums_kernel<<<blocks_for(2 * s.channels), kThreads, 0, stream>>>(s, moments, sums,
                                                                        reinterpret_cast<float*>(workspace));
  return cudaGetLastError();
}

}  // namespace tide::cuda
