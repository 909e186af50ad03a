#include "cost/devices.h"

#include <array>

namespace tide {
namespace {

constexpr std::int64_t kGiB = 1LL << 30;
constexpr double kTera = 1e12, kGiga = 1e9, kMicro = 1e-6;

// Peaks, memory and its bandwidth are the vendor's data sheets (boost clocks, Kepler's base
// clock, without sparsity). Links are practical rates. PCIe 3 of the Kepler years: 10 GB/s by
// bandwidthTest on a K40m, 8 in practice (SuperNeurons, section 3.3.2); later PCIe 3: 12 of
// 15.8, PCIe 4: 25 of 31.5; PCIe 5 is measured on an H200, 55 GB/s alone and 46.5 with both
// directions busy, a share of 0.845 that the others take over.
//
// Shares of the peak are set by published training times: Torch with cuDNN 5 at batch 16
// (J. Johnson's cnn-benchmarks; VGG16, VGG19, ResNet18 to 50 on K40c and Titan X) and
// PyTorch 2.11 with TF32 in NHWC on an H200 (ResNet50 and 152, VGG16). The model is within 15%
// of these, which it was fitted to; of others, Inception and DenseNet, many small tasks, come
// out up to 1.6 times too fast, and AlexNet a quarter too slow (K40c, SuperNeurons' Table 2).
// Winograd is taken to reach half of its usual share on Kepler, which fits VGG and ResNet
// together. Devices between take their neighbours' shares.
constexpr std::array<DeviceSheet, 13> kSheets{{
    // NVIDIA Tesla K40 board specification BD-06902: 2880 cores, 745 MHz, GDDR5.
    {"k40c", "Tesla K40c (Kepler, 2013)", 12 * kGiB, 4.29 * kTera, 0, 0, 288 * kGiga, 10 * kGiga, 8 * kGiga, 8 * kMicro,
     0.33, 0, 0.70, 0.5},
    {"k40m", "Tesla K40m (Kepler, 2013, passive)", 12 * kGiB, 4.29 * kTera, 0, 0, 288 * kGiga, 10 * kGiga, 8 * kGiga,
     8 * kMicro, 0.33, 0, 0.70, 0.5},
    // GeForce GTX TITAN X product page: 3072 cores, 1075 MHz, GDDR5.
    {"titan-x", "GeForce GTX Titan X (Maxwell, 2015)", 12 * kGiB, 6.60 * kTera, 0, 0, 336.5 * kGiga, 12 * kGiga,
     10.1 * kGiga, 6 * kMicro, 0.58, 0, 0.75},
    // TITAN Xp product page: 3840 cores, 1582 MHz, GDDR5X.
    {"titan-xp", "Titan Xp (Pascal, 2017)", 12 * kGiB, 12.15 * kTera, 0, 0, 547.7 * kGiga, 12 * kGiga, 10.1 * kGiga,
     5 * kMicro, 0.60, 0, 0.75},
    // Tesla P100 PCIe data sheet: 9.3 TFLOPS, 16 GB HBM2.
    {"p100", "Tesla P100 PCIe (Pascal, 2016)", 16 * kGiB, 9.3 * kTera, 0, 0, 732 * kGiga, 12 * kGiga, 10.1 * kGiga,
     5 * kMicro, 0.60, 0, 0.75},
    // V100 PCIe data sheet: 14 TFLOPS; its matrix units take half precision only.
    {"v100", "Tesla V100 PCIe (Volta, 2017)", 16 * kGiB, 14 * kTera, 0, 0, 900 * kGiga, 12 * kGiga, 10.1 * kGiga,
     4 * kMicro, 0.70, 0, 0.80},
    // A100 80GB SXM data sheet.
    {"a100", "A100 80GB SXM (Ampere, 2020)", 80 * kGiB, 19.5 * kTera, 156 * kTera, 312 * kTera, 2039 * kGiga,
     25 * kGiga, 21.1 * kGiga, 4 * kMicro, 0.70, 0.50, 0.80},
    // H100 SXM data sheet: 989 TFLOPS TF32 with sparsity, half of it without.
    {"h100", "H100 SXM (Hopper, 2022)", 80 * kGiB, 67 * kTera, 494.5 * kTera, 989 * kTera, 3350 * kGiga, 55 * kGiga,
     46.5 * kGiga, 3 * kMicro, 0.60, 0.45, 0.80},
    // H200 SXM data sheet: 141 GB HBM3e; link measured.
    {"h200", "H200 SXM (Hopper, 2023)", 141'000'000'000, 67 * kTera, 494.5 * kTera, 989 * kTera, 4800 * kGiga,
     55 * kGiga, 46.5 * kGiga, 3 * kMicro, 0.60, 0.45, 0.80},
    // GeForce RTX 3060 product page, and the GA102 white paper for TF32 (as fp32) and bf16 (twice that).
    {"rtx3060", "GeForce RTX 3060 12GB (Ampere, 2021)", 12 * kGiB, 12.7 * kTera, 12.7 * kTera, 25.5 * kTera,
     360 * kGiga, 25 * kGiga, 21.1 * kGiga, 4 * kMicro, 0.65, 0.80, 0.85},
    // GeForce RTX 3090 product page (10496 cores, 1695 MHz, GDDR6X), and the GA102 white paper for TF32 and bf16.
    {"rtx3090", "GeForce RTX 3090 (Ampere, 2020)", 24 * kGiB, 35.6 * kTera, 35.6 * kTera, 71 * kTera, 936 * kGiga,
     25 * kGiga, 21.1 * kGiga, 4 * kMicro, 0.65, 0.80, 0.85},
    // GeForce RTX 4090 product page, and the Ada white paper for TF32 and bf16.
    {"rtx4090", "GeForce RTX 4090 (Ada, 2022)", 24 * kGiB, 82.6 * kTera, 82.6 * kTera, 165.2 * kTera, 1008 * kGiga,
     25 * kGiga, 21.1 * kGiga, 3 * kMicro, 0.60, 0.75, 0.90},
    // Two cores of a current server with AVX2: no data sheet, rates as kernels reach them.
    {"generic-cpu", "two server cores: the default of plans", 0, 150 * kGiga, 0, 0, 15 * kGiga, 10 * kGiga, 10 * kGiga,
     5 * kMicro, 1, 0, 1},
}};

}  // namespace

Device DeviceSheet::rates() const {
  const double scalar = fp32_flops * fp32_efficiency;
  return {.name = std::string(name),
          .flops_per_second = std::max(scalar, tf32_flops * matrix_efficiency),
          .memory_bytes_per_second = memory_bytes_per_second * memory_efficiency,
          .launch_seconds = launch_seconds,
          .link_bytes_per_second = link_both,
          .disk_bytes_per_second = 1 * kGiga,
          .fp32_flops_per_second = scalar,
          .bf16_flops_per_second = bf16_flops * matrix_efficiency,
          .winograd_share = winograd_share,
          .memory = memory()};
}

std::span<const DeviceSheet> device_sheets() { return kSheets; }

const DeviceSheet& find_device(std::string_view name) {
  std::string known;
  for (const DeviceSheet& sheet : kSheets) {
    if (sheet.name == name) return sheet;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", sheet.name);
  }
  throw Error("unknown device '{}'; the devices are {}", name, known);
}

}  // namespace tide
