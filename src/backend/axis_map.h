// How the places of an output's axis are made of those of its input's: resizes, pads, crops and averages.
// Backends make y from it axis by axis, and the gradient by asking which outputs an input went into.
#pragma once

#include <cmath>
#include <cstdint>

#include "network/options.h"

#ifdef __CUDACC__
#define TIDE_EVERYWHERE __host__ __device__
#else
#define TIDE_EVERYWHERE
#endif

namespace tide {

struct AxisMap {
  enum class Kind : std::uint8_t { average, nearest, bilinear, constant, reflect, replicate };
  struct Range {
    int begin, end;
  };

  Kind kind = Kind::average;
  ResizeCoordinates coordinates = ResizeCoordinates::half_pixel;
  int in = 1, out = 1;
  int before = 0;    // of pads
  double scale = 1;  // of resizes: input per output

  TIDE_EVERYWHERE static int clamp(int value, int low, int high) {
    return value < low ? low : value > high ? high : value;
  }

  // Where the middle of an output lies, for resizes.
  [[nodiscard]] TIDE_EVERYWHERE double place(int o) const {
    if (coordinates == ResizeCoordinates::half_pixel) {
      const double at = (o + 0.5) * scale - 0.5;
      return at < 0 ? 0 : at;
    }
    return o * scale;
  }
  // The one that an output is taken from: of nearest, and of pads, where -1 is none.
  [[nodiscard]] TIDE_EVERYWHERE int source(int o) const {
    if (kind == Kind::nearest) {
      // In floats, as PyTorch does it.
      const float half = coordinates == ResizeCoordinates::half_pixel ? 0.5F : 0.0F;
      return clamp(static_cast<int>(floorf((static_cast<float>(o) + half) * static_cast<float>(scale))), 0, in - 1);
    }
    const int at = o - before;
    if (at >= 0 && at < in) return at;
    if (kind == Kind::replicate) return clamp(at, 0, in - 1);
    if (kind == Kind::reflect) return at < 0 ? -at : 2 * (in - 1) - at;
    return -1;
  }

  // The inputs of an output, and at least the outputs of an input: weight() is 0 for those that are none.
  [[nodiscard]] TIDE_EVERYWHERE Range sources(int o) const {
    if (kind == Kind::average)
      return {static_cast<int>(std::int64_t{o} * in / out),
              static_cast<int>((std::int64_t{o + 1} * in + out - 1) / out)};
    if (kind == Kind::bilinear) {
      const int first = clamp(static_cast<int>(place(o)), 0, in - 1);
      return {first, clamp(first + 2, 1, in)};
    }
    const int at = source(o);
    return at < 0 ? Range{0, 0} : Range{at, at + 1};
  }
  [[nodiscard]] TIDE_EVERYWHERE Range targets(int i) const {
    switch (kind) {
      case Kind::average:
        return {static_cast<int>(std::int64_t{i} * out / in),
                clamp(static_cast<int>((std::int64_t{i + 1} * out + in - 1) / in), 0, out)};
      case Kind::nearest:
      case Kind::bilinear: {
        if (scale <= 0) return {0, out};
        const int low = static_cast<int>(floor((i - 1) / scale)) - 2,
                  high = static_cast<int>(ceil((i + 1.5) / scale)) + 2;  // middles lie half a place further
        return {i == 0 ? 0 : clamp(low, 0, out), i == in - 1 ? out : clamp(high, 0, out)};
      }
      case Kind::constant: break;
      case Kind::reflect:
        if (i <= before || i >= in - 1 - (out - in - before)) return {0, out};
        break;
      case Kind::replicate:
        if (i == 0 || i == in - 1) return {i == 0 ? 0 : clamp(i + before, 0, out), i == in - 1 ? out : before + 1};
        break;
    }
    return {clamp(i + before, 0, out), clamp(i + before + 1, 0, out)};
  }
  [[nodiscard]] TIDE_EVERYWHERE float weight(int o, int i) const {
    if (kind == Kind::average) {
      const Range range = sources(o);
      return i >= range.begin && i < range.end ? 1.0F / static_cast<float>(range.end - range.begin) : 0.0F;
    }
    if (kind != Kind::bilinear) return source(o) == i ? 1.0F : 0.0F;
    const double at = place(o);
    const int first = clamp(static_cast<int>(at), 0, in - 1), second = clamp(first + 1, 0, in - 1);
    const double share = at - first > 1 ? 1 : at - first;
    return static_cast<float>((i == first ? 1 - share : 0) + (i == second ? share : 0));
  }
};

}  // namespace tide
