// Function multiversioning: one binary, the widest vectors of the machine it runs on.
#pragma once

// Sanitizers resolve ifuncs before their runtime is ready, so sanitized builds use the baseline code.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(CERTIFIT_SANITIZE)
#define CERTIFIT_CLONES \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CERTIFIT_CLONES
#endif
