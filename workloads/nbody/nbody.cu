// Gravity between all pairs of bodies, tile by tile through shared memory. A body is x, y, z and its mass in w.

#define TILE 128

extern "C" __global__ void accelerate(const float4 *bodies, float4 *velocities, unsigned count, float softening,
                                      float timeStep)
{
    __shared__ float4 tile[TILE];
    const unsigned index = blockIdx.x * TILE + threadIdx.x;
    const float4 own = index < count ? bodies[index] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float3 sum = make_float3(0.0f, 0.0f, 0.0f);
    for (unsigned first = 0; first < count; first += TILE) {
        // Places past the last body hold bodies without mass.
        const unsigned source = first + threadIdx.x;
        tile[threadIdx.x] = source < count ? bodies[source] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        __syncthreads();
#pragma unroll 8
        for (unsigned other = 0; other < TILE; other++) {
            const float dx = tile[other].x - own.x;
            const float dy = tile[other].y - own.y;
            const float dz = tile[other].z - own.z;
            const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
            const float pull = tile[other].w * inverse * inverse * inverse;
            sum.x += dx * pull;
            sum.y += dy * pull;
            sum.z += dz * pull;
        }
        __syncthreads();
    }
    if (index < count) {
        float4 velocity = velocities[index];
        velocity.x += sum.x * timeStep;
        velocity.y += sum.y * timeStep;
        velocity.z += sum.z * timeStep;
        velocities[index] = velocity;
    }
}

extern "C" __global__ void drift(float4 *bodies, const float4 *velocities, unsigned count, float timeStep)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) {
        float4 body = bodies[index];
        const float4 velocity = velocities[index];
        body.x += velocity.x * timeStep;
        body.y += velocity.y * timeStep;
        body.z += velocity.z * timeStep;
        bodies[index] = body;
    }
}
