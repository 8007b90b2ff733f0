// Distances of places on a map from one place, one thread a record, as Rodinia's nn computes them; the host picks the
// nearest. Intrinsics keep the compiler from fusing, so that a host can repeat every rounding.

struct Place {
    float latitude;
    float longitude;
};

extern "C" __global__ void nn_distances(
    const Place *places, float *distances, int count, float latitude, float longitude)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        const float north = __fsub_rn(latitude, places[i].latitude);
        const float east = __fsub_rn(longitude, places[i].longitude);
        distances[i] = __fsqrt_rn(__fmaf_rn(north, north, __fmul_rn(east, east)));
    }
}
