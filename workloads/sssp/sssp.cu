// Shortest paths from vertex 0 over a directed graph with weights, by rounds of two launches: the vertices of the frontier offer ways to
// their neighbours, then each vertex takes the best offer, and is in the next frontier where it is better than what it had.
//
// The edges of vertex v are those from first_edges[v] up to those of the next vertex. Offers are minima of what a round reads, so the
// result does not depend on the order of the threads.

#define UNREACHED 0xffffffffu

extern "C" __global__ void sssp_initialise(
    unsigned char *frontier, unsigned *distances, unsigned *offers, unsigned vertices)
{
    const unsigned vertex = blockIdx.x * blockDim.x + threadIdx.x;
    if (vertex < vertices) {
        frontier[vertex] = vertex == 0;
        distances[vertex] = vertex == 0 ? 0 : UNREACHED;
        offers[vertex] = vertex == 0 ? 0 : UNREACHED;
    }
}

extern "C" __global__ void sssp_offer(
    const unsigned *first_edges, const unsigned *targets, const unsigned *weights, unsigned char *frontier,
    const unsigned *distances, unsigned *offers, unsigned vertices, unsigned edges)
{
    const unsigned vertex = blockIdx.x * blockDim.x + threadIdx.x;
    if (vertex >= vertices || !frontier[vertex]) {
        return;
    }
    frontier[vertex] = 0;
    const unsigned end = vertex + 1 < vertices ? first_edges[vertex + 1] : edges;
    for (unsigned edge = first_edges[vertex]; edge < end; edge++) {
        atomicMin(&offers[targets[edge]], distances[vertex] + weights[edge]);
    }
}

extern "C" __global__ void sssp_settle(
    unsigned char *frontier, unsigned *distances, unsigned *offers, unsigned vertices)
{
    const unsigned vertex = blockIdx.x * blockDim.x + threadIdx.x;
    if (vertex >= vertices) {
        return;
    }
    if (distances[vertex] > offers[vertex]) {
        distances[vertex] = offers[vertex];
        frontier[vertex] = 1;
    }
    offers[vertex] = distances[vertex];
}
