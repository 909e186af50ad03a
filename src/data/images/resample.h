// Parts of images at another size.
#pragma once

#include "data/images/image.h"

namespace tide {

// In pixels of an image, not only whole ones.
struct ResampleBox {
  double top = 0, left = 0, height = 0, width = 0;
};

// What the box shows, with so many rows and columns: each result is a weighted mean over the pixels around its place,
// of as many as the image is shrunk by (a triangle, as of bilinear interpolation, that grows with the step). Rounded to
// bytes. `from` may be whole or a part that holds the box, whose first pixel is at (top, left).
[[nodiscard]] Image resample(const Image& from, const ResampleBox& box, std::int64_t height, std::int64_t width);
// The pixel at each place, for masks.
[[nodiscard]] Image resample_nearest(const Image& from, const ResampleBox& box, std::int64_t height,
                                     std::int64_t width);

}  // namespace tide
