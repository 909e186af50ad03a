// What the Inception networks have in common.
#pragma once

#include "network/builder.h"

namespace tide::inception {

inline constexpr BatchNormOptions kNorm{.epsilon = 1e-3};

// Convolutions: of one position, of three that keep the size or halve it, and long ones.
inline const Window kOne = Window::square(1);
inline const Window kThree = Window::square(3, 1, 1);
inline const Window kThreeHalving = Window::square(3, 2);
inline const Window kWide7 = Window::rectangle(1, 7, 0, 3);
inline const Window kHigh7 = Window::rectangle(7, 1, 3, 0);
inline const Window kWide3 = Window::rectangle(1, 3, 0, 1);
inline const Window kHigh3 = Window::rectangle(3, 1, 1, 0);

}  // namespace tide::inception
