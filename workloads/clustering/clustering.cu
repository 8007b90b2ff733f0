// What a clustering would gain if one more point became a centre: the kernel of Rodinia's streamcluster. Each thread
// compares, for its point, the way to the candidate with the way to its present centre.
//
// Coordinates lie in columns: coordinate d of point p at coordinates[d * count + p]. A point that would move is marked,
// and its saving (negative) goes to the last column of `savings`; the others tell, in the column of their centre, what
// it would cost to close that centre and send them to the candidate.

extern "C" __global__ void clustering_gain(
    const float *coordinates, const float *weights, const float *costs, const int *columns, float *savings,
    unsigned char *moves, int count, int dimensions, int centres, int candidate)
{
    extern __shared__ float candidate_coordinates[];
    const int point = blockIdx.x * blockDim.x + threadIdx.x;
    for (int d = threadIdx.x; d < dimensions; d += blockDim.x) {
        candidate_coordinates[d] = coordinates[d * count + candidate];
    }
    __syncthreads();
    if (point >= count) {
        return;
    }

    float distance = 0.0f;
    for (int d = 0; d < dimensions; d++) {
        const float difference = __fsub_rn(coordinates[d * count + point], candidate_coordinates[d]);
        distance = __fmaf_rn(difference, difference, distance);
    }
    const float cost = __fmul_rn(distance, weights[point]);
    const float change = __fsub_rn(cost, costs[point]);
    float *row = savings + point * (centres + 1);
    if (change < 0.0f) {
        moves[point] = 1;
        row[centres] = change;
    } else {
        row[columns[point]] = change;
    }
}
