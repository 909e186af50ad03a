// Shares of times by which planners leave things out, all in one place.
#pragma once

namespace tide::enough {

// moDNN: more guesses, or sub-batches, can hardly be faster.
inline constexpr double kHardlyFaster = 1.001;
// superneurons: nothing moves for a few percent.
inline constexpr double kWorthMoving = 1.05;
// Joint planning: forecasts are not exact, so that a draft is left out only where it is forecast to take so many times
// as long as the best; and where its busiest lane does, nobody asks for the forecast.
inline constexpr double kForecastWorse = 1.04;
inline constexpr double kSurelyWorse = 1.1;

}  // namespace tide::enough
