// Shortest paths from vertex 0 over a directed graph with weights, as Bellman and Ford find them: in each round, a thread
// looks whether one of the edges that end at its vertex makes the way there shorter.
//
// The edges that end at vertex v are those from first_edges[v] up to those of the next vertex. A round reads the distances
// of the round before and writes others, so the result does not depend on the order of the threads.

#define UNREACHED 0xffffffffu

extern "C" __global__ void sssp_initialise(unsigned *distances, unsigned vertices)
{
    const unsigned vertex = blockIdx.x * blockDim.x + threadIdx.x;
    if (vertex < vertices) {
        distances[vertex] = vertex == 0 ? 0 : UNREACHED;
    }
}

extern "C" __global__ void sssp_relax(
    const unsigned *first_edges, const unsigned *sources, const unsigned *weights, const unsigned *distances,
    unsigned *next_distances, unsigned *changed, unsigned vertices, unsigned edges)
{
    const unsigned vertex = blockIdx.x * blockDim.x + threadIdx.x;
    if (vertex >= vertices) {
        return;
    }
    const unsigned before = distances[vertex];
    const unsigned end = vertex + 1 < vertices ? first_edges[vertex + 1] : edges;
    unsigned shortest = before;
    for (unsigned edge = first_edges[vertex]; edge < end; edge++) {
        const unsigned distance = distances[sources[edge]];
        if (distance != UNREACHED) {
            shortest = min(shortest, distance + weights[edge]);
        }
    }
    next_distances[vertex] = shortest;
    if (shortest != before) {
        *changed = 1;
    }
}
