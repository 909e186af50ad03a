// Marks a function to be compiled once per instruction set, the best of which is chosen
// when the program is loaded: vector code without a build for one machine only. For leaf
// functions: OpenMP regions inside would not be compiled for the set of their function.
#pragma once

#if defined(__x86_64__)
#define TIDE_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TIDE_CLONES
#endif

// Inlined into whichever clone calls it.
#define TIDE_INLINE inline __attribute__((always_inline))
