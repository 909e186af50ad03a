// When a search stops, all in one place: how many times the time of the same tasks with unlimited memory is close
// enough that trying more ways is not worth it.
#pragma once

namespace tide::enough {

// auto: not even another policy can be faster.
inline constexpr double kNothingIsFaster = 1 + 1e-12;
// auto: with all policies tried, joint planning can hardly be faster. moDNN: more guesses, or sub-batches, can hardly
// be.
inline constexpr double kHardlyFaster = 1.001;
// auto: cutting the batch can hardly be faster.
inline constexpr double kNoNeedToCut = 1.01;
// auto: no need for the runtimes, which are for budgets near the floor.
inline constexpr double kNoNeedForRuntimes = 1.2;
// Fusing less is for budgets that fusing all makes slow.
inline constexpr double kNoNeedToFuseLess = 1.1;
// Parameters rest where the step is slow without. The second: where plans take long to make.
inline constexpr double kNoNeedToRest = 1;
inline constexpr double kNoNeedToRestInHurry = 1.3;
// Nothing moves, and nothing rests, for a few percent.
inline constexpr double kWorthMoving = 1.05;
// Joint planning: a draft whose copies wait so little needs no room to run ahead. Of the time its tasks take.
inline constexpr double kHardlyWaits = 1.005;
// Joint planning: forecasts are not exact, so that a draft is surely worse only where the best plan is this much below.
inline constexpr double kSurelyWorse = 0.975;

}  // namespace tide::enough
