// K-means clustering with the kernels of Rodinia's kmeans: points are turned from rows of features into columns once;
// then each thread finds the nearest centre of its point, and the host moves the centres.

extern "C" __global__ void kmeans_transpose(const float *points, float *by_feature, int count, int features)
{
    const int point = blockIdx.x * blockDim.x + threadIdx.x;
    if (point < count) {
        for (int feature = 0; feature < features; feature++) {
            by_feature[feature * count + point] = points[point * features + feature];
        }
    }
}

extern "C" __global__ void kmeans_assign(
    const float *by_feature, const float *centres, int *nearest, int count, int features, int clusters)
{
    const int point = blockIdx.x * blockDim.x + threadIdx.x;
    if (point >= count) {
        return;
    }
    int best = 0;
    float least = 3.402823466e38f;
    for (int cluster = 0; cluster < clusters; cluster++) {
        float distance = 0.0f;
        for (int feature = 0; feature < features; feature++) {
            const float difference =
                __fsub_rn(by_feature[feature * count + point], centres[cluster * features + feature]);
            distance = __fmaf_rn(difference, difference, distance);
        }
        if (distance < least) {
            least = distance;
            best = cluster;
        }
    }
    nearest[point] = best;
}
