#include "report/reproduce/superneurons.h"

#include <array>

namespace tide::reproduce {

std::span<const Experiment> superneurons_experiments() {
  static constexpr std::array<Experiment, 12> kExperiments{{
      {"figure2", "Memory of whole networks, and what workspaces bring", superneurons::figure2},
      {"figure8", "Time and memory by type of layer", superneurons::figure8},
      {"table1", "Recomputations and peak by strategy", superneurons::table1},
      {"figure10", "Memory step by step on AlexNet", superneurons::figure10},
      {"table2", "Memory pool against cudaMalloc and cudaFree", superneurons::table2},
      {"table3", "Communication with and without the tensor cache", superneurons::table3},
      {"figure11", "Speed with and without the tensor cache", superneurons::figure11},
      {"figure12", "Convolution workspaces in a pool of 3 GB", superneurons::figure12},
      {"table4", "Going deeper: the deepest ResNet in 12 GB", superneurons::table4},
      {"table5", "Going wider: the largest batch in 12 GB", superneurons::table5},
      {"figure13", "Going wider: the memory that these batches stand for", superneurons::figure13},
      {"figure14", "Speed by batch on a Titan Xp", superneurons::figure14},
  }};
  return kExperiments;
}

}  // namespace tide::reproduce
