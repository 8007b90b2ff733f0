// Products of matrices by cuBLAS, in single and half precision. Elements are small whole numbers: every order of sums gives the same bits.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct cublasContext *cublasHandle_t;
int cublasCreate_v2(cublasHandle_t *handle);
int cublasDestroy_v2(cublasHandle_t handle);
int cublasSgemm_v2(cublasHandle_t handle, int transa, int transb, int m, int n, int k, const float *alpha, const float *a, int lda,
                   const float *b, int ldb, const float *beta, float *c, int ldc);
int cublasHgemm(cublasHandle_t handle, int transa, int transb, int m, int n, int k, const uint16_t *alpha, const uint16_t *a, int lda,
                const uint16_t *b, int ldb, const uint16_t *beta, uint16_t *c, int ldc);
int cudaMalloc(void **pointer, size_t bytes);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);

enum { N = 64, HOST_TO_DEVICE = 1, DEVICE_TO_HOST = 2 };

// The half of a whole number below 2048 in size.
static uint16_t half_of(int number) {
    if (number == 0) return 0;
    uint16_t sign = number < 0 ? 0x8000 : 0;
    int size = abs(number), exponent = 0;
    while (size >> (exponent + 1)) exponent++;
    return sign | (uint16_t)((exponent + 15) << 10) | (uint16_t)((size << 10 >> exponent) & 0x3ff);
}

static void *on_device(const void *data, size_t bytes) {
    void *pointer = NULL;
    if (cudaMalloc(&pointer, bytes) || cudaMemcpy(pointer, data, bytes, HOST_TO_DEVICE)) exit(3);
    return pointer;
}

static void check(int code, const char *what) {
    if (code == 0) return;
    printf("FAIL %s: %d\n", what, code);
    exit(1);
}

int main(void) {
    static int a[N * N], b[N * N], expected[N * N];
    static float single_a[N * N], single_b[N * N], single_c[N * N];
    static uint16_t half_a[N * N], half_b[N * N], half_c[N * N];
    for (int i = 0; i < N * N; i++) {
        a[i] = i * 7 % 5 - 2;
        b[i] = i * 11 % 7 - 3;
        single_a[i] = a[i], single_b[i] = b[i];
        half_a[i] = half_of(a[i]), half_b[i] = half_of(b[i]);
    }
    for (int column = 0; column < N; column++)
        for (int row = 0; row < N; row++)
            for (int k = 0; k < N; k++) expected[row + column * N] += a[row + k * N] * b[k + column * N];

    cublasHandle_t handle;
    check(cublasCreate_v2(&handle), "cublasCreate");
    const float one = 1, zero = 0;
    float *dc = on_device(single_c, sizeof single_c);
    check(cublasSgemm_v2(handle, 0, 0, N, N, N, &one, on_device(single_a, sizeof single_a), N, on_device(single_b, sizeof single_b), N,
                         &zero, dc, N), "cublasSgemm");
    const uint16_t half_one = half_of(1), half_zero = 0;
    uint16_t *hc = on_device(half_c, sizeof half_c);
    check(cublasHgemm(handle, 0, 0, N, N, N, &half_one, on_device(half_a, sizeof half_a), N, on_device(half_b, sizeof half_b), N, &half_zero,
                      hc, N), "cublasHgemm");
    check(cudaMemcpy(single_c, dc, sizeof single_c, DEVICE_TO_HOST), "copy of singles");
    check(cudaMemcpy(half_c, hc, sizeof half_c, DEVICE_TO_HOST), "copy of halves");
    int wrong_singles = 0, wrong_halves = 0;
    for (int i = 0; i < N * N; i++) {
        wrong_singles += single_c[i] != expected[i];
        // Zero may have a sign.
        wrong_halves += half_c[i] != half_of(expected[i]) && (expected[i] != 0 || (half_c[i] & 0x7fff) != 0);
    }
    printf("%s single precision: %d of %d elements differ\n", wrong_singles ? "FAIL" : "PASS", wrong_singles, N * N);
    printf("%s half precision: %d of %d elements differ\n", wrong_halves ? "FAIL" : "PASS", wrong_halves, N * N);
    check(cublasDestroy_v2(handle), "cublasDestroy");
    return wrong_singles || wrong_halves;
}
