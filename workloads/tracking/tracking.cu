// Tracks points of an image from frame to frame by template matching, as heart-wall trackers do: for each point, the
// normalised cross-correlation of its template with the frame at every offset of a search window, and the best of them.
//
// A block a point. The template (the point's surroundings in the first frame) and the part of the frame that the window
// covers lie in shared memory; each thread takes some of the offsets, and a reduction finds the best. Pixels are whole
// numbers up to 255, so all sums are exact, and the order of additions does not matter.

#define TEMPLATE_RADIUS 5
#define TEMPLATE (2 * TEMPLATE_RADIUS + 1)
#define SEARCH_RADIUS 6
#define SEARCH (2 * SEARCH_RADIUS + 1)
#define PATCH (TEMPLATE + 2 * SEARCH_RADIUS)
#define BLOCK 128

// positions[2 * point] and [2 * point + 1] are the column and row of each point: where it was before, then where it is.
// Points start far enough from the frame's edges, and are kept so.
extern "C" __global__ void tracking_step(
    const unsigned char *templates, const unsigned char *frame, int *positions, float *scores, int columns, int rows)
{
    __shared__ int pattern[TEMPLATE][TEMPLATE];
    __shared__ int patch[PATCH][PATCH];
    __shared__ float best_score[BLOCK];
    __shared__ int best_offset[BLOCK];
    const int point = blockIdx.x;
    const int thread = threadIdx.x;
    const int x = positions[2 * point];
    const int y = positions[2 * point + 1];

    for (int i = thread; i < TEMPLATE * TEMPLATE; i += BLOCK) {
        pattern[i / TEMPLATE][i % TEMPLATE] = templates[point * TEMPLATE * TEMPLATE + i];
    }
    const int left = x - TEMPLATE_RADIUS - SEARCH_RADIUS;
    const int top = y - TEMPLATE_RADIUS - SEARCH_RADIUS;
    for (int i = thread; i < PATCH * PATCH; i += BLOCK) {
        patch[i / PATCH][i % PATCH] = frame[(top + i / PATCH) * columns + left + i % PATCH];
    }
    __syncthreads();

    float score = -2.0f;
    int chosen = 0;
    for (int offset = thread; offset < SEARCH * SEARCH; offset += BLOCK) {
        const int dx = offset % SEARCH;
        const int dy = offset / SEARCH;
        int sum = 0, squares = 0, pattern_sum = 0, pattern_squares = 0, products = 0;
        for (int row = 0; row < TEMPLATE; row++) {
            for (int column = 0; column < TEMPLATE; column++) {
                const int pixel = patch[dy + row][dx + column];
                const int wanted = pattern[row][column];
                sum += pixel;
                squares += pixel * pixel;
                pattern_sum += wanted;
                pattern_squares += wanted * wanted;
                products += pixel * wanted;
            }
        }
        // Each factor is TEMPLATE^2 times a variance or covariance, and fits 32 bits.
        const int count = TEMPLATE * TEMPLATE;
        const int covariance = count * products - sum * pattern_sum;
        const int variance = count * squares - sum * sum;
        const int pattern_variance = count * pattern_squares - pattern_sum * pattern_sum;
        const float norm = __fmul_rn(__fsqrt_rn((float)variance), __fsqrt_rn((float)pattern_variance));
        const float correlation = norm > 0.0f ? __fdiv_rn((float)covariance, norm) : 0.0f;
        if (correlation > score) {
            score = correlation;
            chosen = offset;
        }
    }
    best_score[thread] = score;
    best_offset[thread] = chosen;
    __syncthreads();

    // Of equal scores, the first offset's counts.
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (thread < half) {
            const float other = best_score[thread + half];
            const int other_offset = best_offset[thread + half];
            if (other > best_score[thread] || (other == best_score[thread] && other_offset < best_offset[thread])) {
                best_score[thread] = other;
                best_offset[thread] = other_offset;
            }
        }
        __syncthreads();
    }
    if (thread == 0) {
        const int margin = TEMPLATE_RADIUS + SEARCH_RADIUS;
        const int new_x = x - SEARCH_RADIUS + best_offset[0] % SEARCH;
        const int new_y = y - SEARCH_RADIUS + best_offset[0] / SEARCH;
        positions[2 * point] = min(max(new_x, margin), columns - 1 - margin);
        positions[2 * point + 1] = min(max(new_y, margin), rows - 1 - margin);
        scores[point] = best_score[0];
    }
}
