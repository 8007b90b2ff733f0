// What the programs of this folder share: checks that say what is wrong, where, and end the program with exit code 1.
#pragma once
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

// The condition holds, or the program ends with the text.
#define REQUIRE(condition, ...)                                                  \
    do {                                                                         \
        if (!(condition)) {                                                      \
            fprintf(stderr, "%s:%d: %s is false: ", __FILE__, __LINE__, #condition); \
            fprintf(stderr, __VA_ARGS__);                                        \
            fprintf(stderr, "\n");                                               \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

// The call returns this code.
#define EXPECT(call, code)                                                             \
    do {                                                                               \
        const cudaError_t expected_ = (code), found_ = (call);                         \
        REQUIRE(found_ == expected_, "%s gave %d (%s), expected %d (%s)", #call,       \
                static_cast<int>(found_), cudaGetErrorName(found_),                    \
                static_cast<int>(expected_), cudaGetErrorName(expected_));             \
    } while (0)

// The call succeeds.
#define CHECK(call) EXPECT(call, cudaSuccess)

// The last line of a program whose checks have all held.
inline int passed(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("PASS ");
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    return 0;
}
